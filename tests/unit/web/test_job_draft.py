"""A job while it is written, in a form and as YAML."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, cast

import pytest

from seaway.web.latest import Latest
from seaway.web.pages.jobs import job_form as job_draft
from seaway.web.pages.jobs.job_form import JobDraft
from seaway.web.visit import Visit
from seaway.wire.yaml import read_yaml

NO_ONE = cast(Visit, None)


def test_form_and_yaml_are_brought_together_off_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was typed last is what both have, with its lines; reading and writing it holds up no one."""
    threads: set[int] = set()

    def noted(plain: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def call(given: Any) -> Any:  # noqa: ANN401  # as it is given
            threads.add(threading.get_ident())
            return plain(given)

        return call

    for name in ("_read", "_write"):
        monkeypatch.setattr(job_draft, name, noted(getattr(job_draft, name)))

    async def test() -> None:
        draft, latest = JobDraft(), Latest(NO_ONE)
        draft.fill_in("resources.gpus", 2)
        assert await draft.settle(latest.begin())
        assert draft.text == "resources:\n  gpus: 2\n"
        draft.rewrite("# mine\nname: a\n")
        assert await draft.settle(latest.begin())
        assert draft.document == {"name": "a"}
        assert draft.lines == {"name": 2}
        assert draft.text == "# mine\nname: a\n"
        draft.rewrite("name: [")
        assert await draft.settle(latest.begin())
        assert draft.document is None

    asyncio.run(test())
    assert threading.get_ident() not in threads
    assert threads


@pytest.mark.parametrize("text", ["labels: {2024-01-01: x}", "a: !!binary aGk=", "a: !!set {x, y}", ""])
def test_a_draft_without_a_name_can_be_asked_about_with_one(text: str) -> None:
    """Whatever YAML may hold stays as it is, for the API to say what it thinks of that."""

    async def test() -> None:
        draft, latest = JobDraft(), Latest(NO_ONE)
        draft.rewrite(text)
        assert await draft.settle(latest.begin())
        assert read_yaml(await draft.named("job")) == {"name": "job", **(draft.document or {})}

    asyncio.run(test())


def test_what_is_typed_while_it_is_read_is_not_undone() -> None:
    """Anything that came of an older text is dropped, and the newer one is read the next time."""

    async def test() -> None:
        draft, latest = JobDraft(), Latest(NO_ONE)
        draft.rewrite("name: old")
        older = asyncio.create_task(draft.settle(latest.begin()))
        await asyncio.sleep(0)
        draft.rewrite("name: new")
        newer = latest.begin()
        assert not await older
        assert draft.document == {}
        assert await draft.settle(newer)
        assert draft.document == {"name": "new"}

    asyncio.run(test())
