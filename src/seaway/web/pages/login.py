"""Logging in, with a token or at a provider."""

from __future__ import annotations

from html import escape
from urllib.parse import quote, urlsplit

from nicegui import ui
from starlette.requests import Request

from seaway.web import addresses, cookies
from seaway.web.brand import BRAND
from seaway.web.frame import dress
from seaway.web.words import Words, words_for


def add(provider: str) -> None:
    """Serve the page.

    Parameters
    ----------
    provider
        The address of who else lets people in; empty for nobody.
    """

    def handler(request: Request) -> None:
        words = words_for(request)
        dress(cookies.theme_of(request.cookies), words, words("Log in"))
        with ui.element("main").classes("login"):
            ui.html(BRAND, sanitize=False)
            ui.html(_form(request, words, provider), sanitize=False)

    ui.page(addresses.LOGIN)(handler)


def _form(request: Request, words: Words, provider: str) -> str:
    """Return the form: the browser sends it, and keeps what comes back where no script reads."""
    query = request.query_params
    why = query.get("why", "")
    said = ""
    if why:
        said = f'<p id="why" class="form-error" role="alert">{escape(why)}</p>'
    elif query.get("ended"):
        said = f'<p role="status">{escape(words("Your token does not hold any more."))}</p>'
    elif query.get("left"):
        said = f'<p role="status">{escape(words("You are logged out."))}</p>'
    wanted = escape(addresses.own(query.get("next", addresses.HOME)), quote=True)
    invalid = ' aria-invalid="true" aria-describedby="why"' if why else ""
    hint = words("A token looks like sw_…; the first one is in the file admin-token in the server's data folder.")
    elsewhere = ""
    if provider:
        said_where = words("Log in at {provider}", provider=urlsplit(provider).netloc or provider)
        href = f"{addresses.LOGIN_PROVIDER}?next={quote(addresses.own(query.get('next', addresses.HOME)))}"
        elsewhere = f'<a class="login-provider" href="{escape(href, quote=True)}">{escape(said_where)}</a>'
    return f"""
<form method="post" action="{addresses.LOGIN}" class="login-form">
  <h1>{escape(words("Log in to Seaway"))}</h1>
  {said}
  {elsewhere}
  <label for="token">{escape(words("Token"))}</label>
  <input id="token" name="token" type="password" autocomplete="current-password" required autofocus{invalid}>
  <input type="hidden" name="next" value="{wanted}">
  <p class="hint">{escape(hint)}</p>
  <button type="submit">{escape(words("Log in"))}</button>
</form>"""
