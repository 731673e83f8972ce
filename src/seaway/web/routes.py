"""What browsers ask for that is no page: to be let in and out, and preferences."""

from __future__ import annotations

from urllib.parse import urlencode

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp

from seaway.client.calls import access
from seaway.domain.errors import SeawayError
from seaway.web import addresses, cookies
from seaway.web.asking import Asker
from seaway.web.words import LANGUAGES


def add_routes(app: FastAPI, api: ASGIApp) -> None:
    """Serve them.

    Parameters
    ----------
    api
        The application that says who a token lets in.
    """

    async def log_in(request: Request) -> Response:
        form = await request.form(max_files=0, max_fields=4)
        token, wanted = str(form.get("token", "")).strip(), addresses.own(str(form.get("next", "")))
        try:
            await Asker(api, token, request.client.host if request.client else "").ask(access.me())
        except SeawayError as error:
            query = urlencode({"next": wanted, "why": str(error)})
            return RedirectResponse(f"{addresses.LOGIN}?{query}", 303)
        response = RedirectResponse(wanted, 303)
        cookies.keep_token(response, token, secure=request.url.scheme == "https")
        return response

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
