"""Tokens section: API tokens, with dialogs that create and revoke them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from nicegui import ui

from seaway.client.calls import service as access
from seaway.client.calls import tenancy
from seaway.web.fragment import Fragment
from seaway.web.parts.actions import on_act
from seaway.web.parts.form import Field, Form, confirm, dialog, tell
from seaway.web.visit import Visit

if TYPE_CHECKING:
    from nicegui.events import GenericEventArguments

    from seaway.wire.tokens import TokenList, TokenOut

SELDOM_S = 3.0

MOST = 200
"""Limit of tokens in the table; the search finds others."""

COPY = """(event) => {
  event.target.closest('.dialog').querySelector('.secret input').select();
  emit(document.execCommand('copy'));
}"""
"""JavaScript that copies a secret and reports the success. Over plain http browsers have no other clipboard."""


async def show_tokens(visit: Visit) -> None:
    """Show tokens, and follow changes."""
    page = _Tokens(visit)
    await visit.follow(access.tokens(), page.callback, SELDOM_S)


class _Tokens:
    """Tokens section of one visitor."""

    def __init__(self, visit: Visit) -> None:
        self._visit, words = visit, visit.words
        self._all: list[TokenOut] = []
        self._over, self._search = visit.query.get("over") == "1", visit.query.get("search", "")
        with ui.element("div").classes("panel-head"):
            ui.label(words("Tokens")).props("role=heading aria-level=2").classes("panel-title")
            with ui.element("div").classes("panel-tools"):
                ui.input(words("Search"), value=self._search, on_change=self._searched).props(
                    "outlined dense clearable debounce=200 autocomplete=off"
                )
                ui.switch(words("Include expired and revoked tokens"), value=self._over, on_change=self._switched)
                ui.button(words("New token"), on_click=self._new).props("unelevated no-caps")
        self._fragment = Fragment("tokens", words)
        on_act(self._fragment, self._act)

    def callback(self, value: TokenList) -> None:
        """Accept the list of tokens."""
        self._all = sorted(value.tokens, key=lambda each: each.created_at, reverse=True)
        self._draw()

    def _draw(self) -> None:
        rows = [{"token": each, "over": over_since(each)} for each in self._all]
        rows = [each for each in rows if self._over or not each["over"]]
        if wanted := self._search.casefold():
            rows = [each for each in rows if _has(each["token"], wanted)]  # type: ignore[arg-type]  # a token
        self._fragment.show(rows=rows[:MOST], left=max(0, len(rows) - MOST), searched=bool(wanted))

    def _searched(self, event: Any) -> None:  # noqa: ANN401  # event type of the library
        self._search = event.value or ""
        self._visit.keep(search=self._search)
        self._draw()

    def _switched(self, event: Any) -> None:  # noqa: ANN401  # event type of the library
        self._over = bool(event.value)
        self._visit.keep(over="1" if self._over else None)
        self._draw()

    def _act(self, act: str, name: str) -> None:
        token = next((each for each in self._all if each.id == name), None)
        if act != "revoke" or token is None:
            return
        words = self._visit.words

        async def revoke() -> None:
            await self._visit.ask(access.revoke_token(token.id))
            self._visit.ask_again(access.tokens())
            tell(words("Token {name} is revoked", name=token.name))

        title = words("Revoke token {name}?", name=token.name)
        text = words("The token stops working immediately. This cannot be undone.")
        confirm(words, title, text, words("Revoke"), revoke)

    async def _new(self) -> None:
        words = self._visit.words
        tenants = (await self._visit.ask(tenancy.tenants())).tenants
        roles = {
            "viewer": words("viewer"),
            "user": words("user"),
            "operator": words("operator"),
            "admin": words("admin"),
            "agent": words("agent"),
        }
        fields = [
            Field("name", words("Name"), hint=words("User or program")),
            Field("role", words("Role"), "user", roles),
            Field(
                "tenant",
                words("Tenant"),
                "default",
                {"": words("none"), **{each.name: each.name for each in tenants}},
                words("Needed for viewers and users; none for others"),
            ),
            Field("gateway", words("Gateway"), hint=words("For an agent: the gateway that it speaks for")),
            Field("expires_in", words("Lasts for"), hint=words("Like 90d or 12h; empty for no limit")),
        ]
        Form(words, words("New token"), fields, words("Make"), self._make)

    async def _make(self, given: dict[str, Any]) -> None:
        call = access.create_token(**{**given, "expires_in": given["expires_in"] or None})
        made = await self._visit.ask(call)
        self._visit.ask_again(access.tokens())
        show_secret(self._visit, made.name, made.secret)


def show_secret(visit: Visit, name: str, secret: str) -> None:
    """Show a new token's secret once, with a button that copies it."""
    words = visit.words
    with dialog(words("Token {name}", name=name)) as made:
        made.props("persistent")
        ui.label(words("Copy it now: it is shown only once.")).classes("dialog-text")
        shown = ui.input(words("Secret"), value=secret).props("outlined dense readonly").classes("dialog-field secret")
        shown.on("focus", js_handler="(event) => event.target.select()")
        with ui.element("div").classes("dialog-buttons"):

            def copied(event: GenericEventArguments) -> None:
                tell(words("Copied") if event.args else words("It is selected: copy it by hand."))

            copy = ui.button(words("Copy"), icon="content_copy").props("outline no-caps")
            copy.on("click", copied, js_handler=COPY)
            ui.button(words("Done"), on_click=made.close).props("unelevated no-caps")


def over_since(token: TokenOut) -> str:
    """Return ``revoked`` or ``expired``; empty for a valid token."""
    if token.revoked_at:
        return "revoked"
    expires = token.expires_at
    return "expired" if expires and datetime.fromisoformat(expires) <= datetime.now(UTC) else ""


def _has(token: TokenOut, wanted: str) -> bool:
    """Report whether a visible field of a token contains a text."""
    return any(wanted in each.casefold() for each in (token.name, token.id, token.role, token.tenant, token.gateway))
