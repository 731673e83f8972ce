"""What browsers ask for that is no page: to be let in and out, and preferences."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp

from seaway.client.calls import access
from seaway.domain.errors import ForbiddenError, SeawayError, UnauthenticatedError
from seaway.web import addresses, cookies
from seaway.web.asking import Asker
from seaway.web.provider import Begun, Provider
from seaway.web.words import LANGUAGES


def add_routes(app: FastAPI, api: ASGIApp, provider: Provider | None) -> None:
    """Serve them.

    Parameters
    ----------
    api
        The application that says who a token lets in.
    provider
        Where people may log in; None for nowhere else.
    """

    async def log_in(request: Request) -> Response:
        if not addresses.is_own_origin(request.headers):
            return _refused(ForbiddenError("this comes from another site's page"), addresses.HOME)
        form = await request.form(max_files=0, max_fields=4)
        wanted = addresses.own(str(form.get("next", "")))
        return await _let_in(request, api, [str(form.get("token", "")).strip()], wanted)

    async def log_out(_: Request) -> Response:
        response = RedirectResponse(f"{addresses.LOGIN}?left=1", 303)
        cookies.drop_token(response)
        return response

    async def prefer(request: Request) -> Response:
        query = request.query_params
        response = RedirectResponse(addresses.own(query.get("next", "")), 303)
        if query.get("language") in LANGUAGES:
            cookies.keep(response, cookies.LANGUAGE, query["language"])
        if query.get("theme") in cookies.THEMES:
            cookies.keep(response, cookies.THEME, query["theme"])
        return response

    for path, method, route in (
        (addresses.LOGIN, "POST", log_in),
        (addresses.LOGOUT, "GET", log_out),
        (addresses.PREFERENCES, "GET", prefer),
    ):
        app.add_api_route(path, route, methods=[method], include_in_schema=False)
    if provider is not None:
        _add_provider(app, api, provider)


def _add_provider(app: FastAPI, api: ASGIApp, provider: Provider) -> None:
    """Serve what leads to a provider and back."""

    async def begin(request: Request) -> Response:
        wanted = addresses.own(request.query_params.get("next", ""))
        try:
            address, begun = await provider.begin(wanted)
        except SeawayError as error:
            return _refused(error, wanted)
        response = RedirectResponse(address, 303)
        cookies.keep_begun(response, begun.text(), secure=_secure(request))
        return response

    async def finish(request: Request) -> Response:
        try:
            begun = Begun.read(request.cookies.get(cookies.BEGUN, ""))
            tokens = await provider.finish(request.url.query, begun)
        except SeawayError as error:
            return _refused(error, addresses.HOME)
        response = await _let_in(request, api, tokens, addresses.own(begun.wanted))
        cookies.keep_begun(response, "", secure=_secure(request))
        return response

    app.add_api_route(addresses.LOGIN_PROVIDER, begin, methods=["GET"], include_in_schema=False)
    app.add_api_route(addresses.LOGIN_CALLBACK, finish, methods=["GET"], include_in_schema=False)


async def _let_in(request: Request, api: ASGIApp, tokens: Sequence[str], wanted: str) -> Response:
    """Have a browser keep the first of some tokens that the API takes, and go where its visitor wanted."""
    refused: SeawayError = UnauthenticatedError("the provider gave no token that could be taken")
    for token in tokens:
        try:
            await Asker.of(request, api, token).ask(access.me())
        except SeawayError as error:
            refused = error
        else:
            response = RedirectResponse(wanted, 303)
            cookies.keep_token(response, token, secure=_secure(request))
            return response
    return _refused(refused, wanted)


def _refused(error: SeawayError, wanted: str) -> Response:
    """Lead to the page for logging in, with what was wrong."""
    return RedirectResponse(f"{addresses.LOGIN}?{urlencode({'next': wanted, 'why': str(error)})}", 303)


def _secure(request: Request) -> bool:
    return request.url.scheme == "https"
