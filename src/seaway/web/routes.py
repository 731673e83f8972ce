"""Log-in page, and HTTP routes of log-in, log-out and preferences."""

from __future__ import annotations

from importlib.resources import files
from urllib.parse import urlencode, urlsplit

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.types import ASGIApp

from seaway.client.calls import service as access
from seaway.domain.errors import RejectedError, SeawayError, UnauthenticatedError, UnavailableError
from seaway.web import addresses, cookies
from seaway.web.api_client import ApiClient
from seaway.web.cookies import Login
from seaway.web.plain import plain, status_of
from seaway.web.provider import PendingLogin, Provider, ProviderTokens
from seaway.web.renewals import Renewals
from seaway.web.words import LANGUAGES, words_for


def login_page(request: Request, provider: str, wanted: str, error: SeawayError | None = None) -> Response:
    """Return the log-in page.

    Parameters
    ----------
    provider
        Address of the identity provider; empty for none.
    wanted
        Address on this server to open after the log-in.
    error
        Reason why the log-in failed; None before the first try.
    """
    words, query = words_for(request), request.query_params
    said = ""
    if query.get("state") == addresses.LEFT:
        said = words("You are logged out.")
    elif query.get("ended"):
        said = words("Your token is not valid any more.")
    return plain(
        request,
        "login",
        status_of(error) if error else 200,
        here=f"{addresses.LOGIN}?{urlencode({'next': wanted})}",
        title=words("Log in"),
        to=addresses.LOGIN,
        wanted=wanted,
        why=str(words.error(error)) if error else "",
        said=said,
        provider=name_of(provider),
        provider_address=f"{addresses.LOGIN_PROVIDER}?{urlencode({'next': wanted})}",
    )


def name_of(provider: str) -> str:
    """Return the host name of a provider, or its address if it has none."""
    return urlsplit(provider).netloc or provider


class LoginRoutes:
    """Routes for log-in, log-out and preferences.

    Parameters
    ----------
    api
        Application that authenticates tokens.
    provider
        Additional identity provider; None for none.
    renewals
        Pages that wait for a new token.
    """

    def __init__(self, api: ASGIApp, provider: Provider | None, renewals: Renewals) -> None:
        self._api, self._provider, self._renewals = api, provider, renewals

    def add_to(self, app: FastAPI) -> None:
        """Register the routes."""
        routes = [
            (addresses.LOGIN, "GET", self._come),
            (addresses.LOGIN, "POST", self._log_in),
            (addresses.LOGOUT, "POST", self._log_out),
            (addresses.PREFERENCES, "GET", self._prefer),
            (addresses.DOWN, "GET", self._down),
            (addresses.DOWN_SCRIPT, "GET", self._down_script),
        ]
        if self._provider is not None:
            routes += [
                (addresses.LOGIN_PROVIDER, "GET", self._begin),
                (addresses.LOGIN_CALLBACK, "GET", self._finish),
                (addresses.LOGIN_RENEW, "POST", self._renew),
            ]
        for path, method, route in routes:
            app.add_api_route(path, route, methods=[method], include_in_schema=False)

    async def _come(self, request: Request) -> Response:
        """Show the log-in page, unless an expired log-in can be renewed or another tab has renewed it."""
        query, wanted = request.query_params, _wanted(request)
        if query.get("state") == addresses.LEFT or not query.get("ended"):
            return self._form(request, wanted)
        if await self._holds(request):
            return RedirectResponse(wanted, 303)
        try:
            login = await self._renewed(request)
        except UnavailableError as error:  # the refresh token may still be valid when the provider is available again
            return self._form(request, wanted, error)
        except SeawayError:
            response = self._form(request, wanted)
            cookies.drop_login(response, secure=cookies.is_secure(request))
            return response
        return self._retained(request, RedirectResponse(wanted, 303), login)

    async def _log_in(self, request: Request) -> Response:
        form = await request.form(max_files=0, max_fields=4)
        wanted, token = addresses.own(str(form.get("next", ""))), str(form.get("token", "")).strip()
        try:
            if len(token) > cookies.LONGEST:
                raise RejectedError(f"this token has {len(token)} characters, and a browser stores {cookies.LONGEST}")
            login = await self._login(request, ProviderTokens((token,)))
        except SeawayError as error:
            return self._form(request, wanted, error)
        return self._retained(request, RedirectResponse(wanted, 303), login)

    async def _log_out(self, request: Request) -> Response:
        """Delete the log-in's cookies. If the user logged in at the provider, also log out there."""
        response: Response = RedirectResponse(f"{addresses.LOGIN}?state={addresses.LEFT}", 303)
        hint = cookies.hint_of(request)
        if self._provider is not None and hint and (address := await self._provider.leave(hint)):
            words, name = words_for(request), name_of(self._provider.settings.issuer)
            response = plain(request, "leaving", title=words("Log out"), address=address, provider=name)
        cookies.drop_login(response, secure=cookies.is_secure(request))
        return response

    async def _prefer(self, request: Request) -> Response:
        query, secure = request.query_params, cookies.is_secure(request)
        response = RedirectResponse(_wanted(request), 303)
        if query.get("language") in LANGUAGES:
            cookies.keep(response, cookies.LANGUAGE, query["language"], secure=secure)
        if query.get("theme") in cookies.THEMES:
            cookies.keep(response, cookies.THEME, query["theme"], secure=secure)
        return response

    async def _down(self, request: Request) -> Response:
        """Return the page that a browser stores, and shows while the server does not answer."""
        words = words_for(request)
        return plain(request, "down", title=words("Server not reachable"), here=addresses.HOME)

    async def _down_script(self, _: Request) -> Response:
        """Return the script that does this. It is at the root, because it handles pages of its folder only."""
        return FileResponse(str(files("seaway.web") / "static" / "down.js"), headers={"cache-control": "no-cache"})

    async def _begin(self, request: Request) -> Response:
        assert self._provider is not None
        wanted = _wanted(request)
        try:
            address, begun = await self._provider.begin(wanted)
        except SeawayError as error:
            return self._form(request, wanted, error)
        response = RedirectResponse(address, 303)
        cookies.store_login(response, begun.text(), secure=cookies.is_secure(request))
        return response

    async def _finish(self, request: Request) -> Response:
        """Complete a log-in at the provider, and redirect to the requested page."""
        assert self._provider is not None
        wanted = addresses.HOME
        try:
            begun = PendingLogin.read(cookies.login_of(request))
            wanted = addresses.own(begun.wanted)
            login = await self._login(request, await self._provider.finish(request.url.query, begun))
        except SeawayError as error:
            return self._form(request, wanted, error)
        response = self._retained(request, RedirectResponse(wanted, 303), login)
        cookies.store_login(response, "", secure=cookies.is_secure(request))
        return response

    async def _renew(self, request: Request) -> Response:
        """Renew a page's token, in the page's visit and in the browser's cookies."""
        form = await request.form(max_files=0, max_fields=2)
        try:
            login = await self._renewed(request)
            who = await ApiClient.of(request, self._api, login.token).ask(access.me())
        except SeawayError:
            return Response(status_code=204)
        await self._renewals.renewed(str(form.get("page", "")), who, login.token)
        return self._retained(request, Response(status_code=204), login)

    async def _holds(self, request: Request) -> bool:
        """Report whether the API accepts the token in the cookies."""
        try:
            await ApiClient.of(request, self._api, cookies.token_of(request)).ask(access.me())
        except SeawayError:
            return False
        return True

    async def _renewed(self, request: Request) -> Login:
        """Renew the log-in in the cookies; raise the errors of `Provider.renew`."""
        renewal = cookies.renewal_of(request)
        if self._provider is None or not renewal:
            raise UnauthenticatedError("nothing renews this log-in")
        return await self._login(request, await self._provider.renew(renewal))

    async def _login(self, request: Request, given: ProviderTokens) -> Login:
        """Return a log-in with the first token that the API accepts.

        Raises
        ------
        SeawayError
            When the API accepts none.
        """
        refused: SeawayError = UnauthenticatedError("the token is missing")
        for token in given.tokens:
            try:
                await ApiClient.of(request, self._api, token).ask(access.me())
            except SeawayError as error:
                refused = error
            else:
                return Login(token, given.renewal, given.hint)
        raise refused

    def _retained(self, request: Request, response: Response, login: Login) -> Response:
        cookies.keep_login(response, login, secure=cookies.is_secure(request))
        return response

    def _form(self, request: Request, wanted: str, error: SeawayError | None = None) -> Response:
        return login_page(request, self._provider.settings.issuer if self._provider else "", wanted, error)


def _wanted(request: Request) -> str:
    return addresses.own(request.query_params.get("next", ""))
