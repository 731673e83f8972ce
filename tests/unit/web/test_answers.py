"""Anything that the API answers, in the language of a user who looks."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from string import Formatter

import pytest

from seaway.adapters.sqlalchemy.codec import event_row, read_event, read_reason, reason_text
from seaway.application.records import Event
from seaway.application.transitions import ELSEWHERE
from seaway.domain.reasons import TEXTS, Param, Reason, also, text, without
from seaway.web.words import Words, words_of
from seaway.wire.events import EventOut, event_fields

SENTENCE = "waits: 1 of 4 nodes fit"


def test_jobs_in_reasons_are_links_in_both_languages() -> None:
    """A job that a reason names has its ID beside it, also within other reasons. Names and texts are escaped."""
    by = Reason("job_of_queue", job="<b>hog", job_id="6gzx9takdjhgz", queue="a")
    link = '<a href="/jobs/6gzx9takdjhgz">&lt;b&gt;hog</a>'
    ends = (Reason("victim_ends", job="one", job_id="1"), Reason("victim_shrinks", job="two", job_id="2", count=1))
    several = Reason("waits", why=Reason("waits_until", what=Reason("both", one=ends[0], other=ends[1])))
    for reason, english in (
        (Reason("preempted", winner=by), f"preempted by job {link} of queue &#39;a&#39;"),
        (
            several,
            'waits: waits until job <a href="/jobs/1">one</a> has ended and job <a href="/jobs/2">two</a> '
            "has shrunk by 1 replica",
        ),
    ):
        shown = EventOut.model_validate(event_fields(Event(0, "state", reason, "seaway")))
        assert Words().coded(shown) == english
        assert all(each in words_of("zh").coded(shown) for each in re.findall("<a.*?</a>", english))
        assert "<" not in Words().plain(shown).replace("<b>hog", "")


def test_numbers_have_their_words_in_the_plural_where_needed() -> None:
    """Texts of pages count as reasons do; a number without a word stays as it is."""
    words = Words()
    assert [words("Cancel {n:job}?", n=n) for n in (0, 1, 1200)] == [
        "Cancel 0 jobs?",
        "Cancel 1 job?",
        "Cancel 1,200 jobs?",
    ]
    assert words("port {port}", port=8080) == "port 8080"
    assert words_of("zh")("{n:task}", n=1200) == "1,200 个任务"


PLURAL = re.compile(r"\{(?:count|found|times|trained|waiting)(?::d)?\} (?:[\w-]+ )?\w\w+s\b")
"""A number, then a word in the plural."""

MORE_THAN_ONE = {
    *("combinations_too_many", "equal_islands", "equal_scores", "exceeds_empty_fleet", "others_wait"),
    *("others_wait_for_room", "same_names", "too_many_errors", "too_many_in_one_cluster", "too_many_together"),
    *("tree_too_deep", "triggers_too_many"),
}
"""Codes whose number is never 1."""


def test_numbers_that_can_be_one_have_a_word_with_a_singular() -> None:
    """No text says "1 jobs": the number has its word as its format."""
    assert {code for code, text in TEXTS.items() if PLURAL.search(text)} == MORE_THAN_ONE


TIMES = {
    **dict.fromkeys(("starts_at", "until", "begin", "end"), "2026-11-27 14:05 UTC"),
    "ends_at": "2026-11-27 14:05:00 UTC",
}


def sample(name: str, form: str) -> Param:
    """Return a value for a parameter of a template, given its format."""
    if name in TIMES:
        return "2026-11-27T14:05:00Z"
    if form.endswith(("g", "f", "%")):
        return 2.0
    return 90 if name.endswith("_s") or form else f"a-{name}"


@pytest.mark.parametrize("code", TEXTS)
def test_reasons_of_the_catalogue_are_rendered_in_both_languages(code: str) -> None:
    """Each code has an English and a Chinese text, which contain all its parameters, with times to the minute."""
    params = {name: sample(name, form or "") for _, name, form, _ in Formatter().parse(TEXTS[code]) if name}
    english, chinese = (words.reason(code, params, text(code, params)) for words in (Words(), words_of("zh")))
    assert english == text(code, params)
    if re.sub(r"\{\w+\}", "", TEXTS[code]).strip():  # not only parameters
        assert chinese != english
    assert "lang=" not in chinese
    for name, value in params.items():
        if isinstance(value, str):
            assert TIMES.get(name, value) in english
            assert TIMES.get(name, value) in chinese


def coded(reason: Reason) -> str:
    """Return an event with a reason in Chinese, as a page has it after the API and the database."""
    event = read_event(event_row(Event(0, "state", reason, "seaway")))
    return words_of("zh").coded(EventOut.model_validate_json(json.dumps(event_fields(event)))).translate(HALF_WIDTH)


HALF_WIDTH = str.maketrans("\uff1a\uff1b\uff0c\uff08\uff09", ":;,()")


@pytest.mark.parametrize(
    ("reason", "english", "chinese"),
    [
        (
            Reason("active_after_loss", place="b", other="a", after=31.52, why=Reason("silent", cluster="a")),
            "b is active instead of a, 31.5 s after the last report of a: a does not answer",
            "b 代替 a 成为活动副本,距 a 最后一次上报 31.5 秒:a 无响应",
        ),
        (
            Reason("active_instead", place="b", other="a", why=Reason("requested", who="eve", why="a: <test>")),
            "b is active instead of a: requested by eve: a: <test>",
            "b 代替 a 成为活动副本:由 eve 请求:a: &lt;test&gt;",
        ),
        (
            Reason("standby_fits_nowhere", why="not enough free CPU"),
            "no cluster has room for a standby: not enough free CPU",
            "没有集群可容纳备用副本:空闲 CPU 不足",
        ),
        (
            also(
                Reason("shrinks", was=1400, now=1, why=Reason("drained", place="a/n")),
                Reason("elsewhere"),
                "text of eve",
            ),
            "shrinks from 1,400 to 1 replica: a/n is drained; it is queued for another place; text of eve",
            "从 1,400 个副本缩减到 1 个:a/n 正在排空;正在排队等待另行放置;text of eve",
        ),
        (
            also("OOMKilled", Reason("attempt_of_follows", number=2, most=4, pause=10)),
            "OOMKilled; attempt 2 of 4 follows in 10 s",
            "OOMKilled;10 秒后进行第 2 次尝试(共 4 次)",
        ),
        (
            Reason("tasks_ended", counts=tuple(Reason("count_of", count=2, state=each) for each in ("failed", "lost"))),
            "tasks: 2 failed, 2 lost",
            "任务:2 个失败、2 个失联",
        ),
        (
            also(
                Reason(
                    "chose_instead", policy="balanced", where=Reason("nodes_of", count=2, clusters="a, b"), other="x"
                ),
                Reason(
                    "first_replica",
                    what=Reason("decided_in_total", term="Price", score=9, lower=4, place="b/n2", total=95, less=49),
                ),
                Reason("data_at", places="b"),
                Reason("data_takes", size="200GB", times=(Reason("time_to", time="27 min", place="a"),)),
                Reason("learned", time_s=1200, count=1),
            ),
            "balanced chose 2 nodes of a, b in place of x; for its first replica, Price decided: 9 against 4 of b/n2, "
            "the next best (in total 95 against 49); its data is at b; 200GB take 27 min to a; "
            "expected to run for 20m, learned from 1 run",
            "balanced 代替 x 选择了 a, b 的 2 个节点;第一个副本:Price 起决定作用:9,次优的 b/n2 为 4"
            "(总分 95 对 49);其数据位于 b;传输 200GB:到 a 需 27 min;预计运行 20m,根据以往 1 次运行得出",
        ),
        (
            without(also(Reason("cluster_removed", cluster="a"), ELSEWHERE), ELSEWHERE),
            "a was removed",
            "a 已被移除",
        ),
    ],
)
def test_reasons_with_other_reasons_are_translated_after_they_were_stored(
    reason: Reason, english: str, chinese: str
) -> None:
    """Names and texts of users stay as they are, escaped; reasons and states among the parameters do not."""
    assert reason == english
    assert coded(reason) == chinese


def test_reasons_without_a_code_show_their_text() -> None:
    """Such as those of users, and those that earlier versions stored; English is marked."""
    stored = replace(read_event(event_row(Event(0, "state", "", "seaway"))), reason=read_reason("placed on a/n by x"))
    shown = EventOut.of(stored)
    assert (shown.message, shown.reason.code, shown.reason.params) == ("placed on a/n by x", "", {})
    assert words_of("zh").coded(shown) == '<span lang="en">placed on a/n by x</span>'
    assert read_reason(reason_text("a\x1fcode\x1f{}")) == "a code {}"


def made_in_code() -> Iterator[tuple[str, set[str]]]:
    """Yield the literal code and the names of parameters of the reasons that the sources make."""
    for file in Path(str(files("seaway"))).rglob("*.py"):
        source = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)) if "reasons import" in source or "import reasons" in source else ():
            name = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
            if isinstance(node, ast.Call) and name in ("Reason", "Coded", "resize_reason") and node.args:
                names = {each.arg or "" for each in node.keywords} | ({"was", "now"} if "resize" in name else set())
                if isinstance(code := node.args[0], ast.Constant) and "" not in names:
                    yield str(code.value), names


def test_reasons_have_the_parameters_of_their_texts() -> None:
    """A reason with another parameter would be an error where it is made. Each may have a `why`."""
    made = list(made_in_code())
    assert len(made) > 200
    for code, names in made:
        wanted = {name for _, name, _, _ in Formatter().parse(TEXTS[code]) if name}
        links = {"job_id"} if "job" in wanted else set()
        assert (code, names - links) in ((code, wanted), (code, wanted | {"why"}))


@pytest.mark.parametrize("code", ["", "of-a-newer-server"])
def test_what_has_no_words_of_its_own_stays_english_and_says_so(code: str) -> None:
    """Readers of screens change their voice there."""
    assert words_of("zh").reason(code, {}, SENTENCE) == f'<span lang="en">{SENTENCE}</span>'
    assert Words().reason(code, {}, SENTENCE) == SENTENCE
