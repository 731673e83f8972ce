"""Anything that the API answers, in the language of a user who looks."""

from __future__ import annotations

from string import Formatter

import pytest

from seaway.domain.reasons import TEXTS, text
from seaway.web.fragment import environment
from seaway.web.words import Words, words_of
from seaway.wire.explanations import FilteredOut

REFUSALS = [
    FilteredOut(plugin="NodeResources", reason="not enough free CPU", nodes=2, code="NodeResources.1"),
    FilteredOut(plugin="Theirs", reason="moon <too> low", nodes=1, code="Theirs.1"),
]
SENTENCE = "waits: 1 of 4 nodes fit"


def answered(words: Words, code: str, **parameters: str | int) -> str:
    """Return an answer as a page has it."""
    template = environment().get_template("reasons.html").make_module()
    said = template.answered(words, words.locale, SENTENCE, code, parameters, 4, REFUSALS)  # type: ignore[attr-defined]
    return " ".join(str(said).split())


@pytest.mark.parametrize("code", ["no_node_fits", "reserved_for_others", "reserved", "insufficient_capacity", ""])
def test_in_english_it_is_the_api_s_own_sentence(code: str) -> None:
    """Whatever kind of answer it is."""
    assert answered(Words(), code, where="a/n") == SENTENCE


def test_in_chinese_it_is_put_together_by_cause_kind_of_answer_it_is() -> None:
    """Figures and known reasons in Chinese; a reason of another user's plugin stays English, marked and escaped."""
    theirs = '<b>1</b> <span lang="en">moon &lt;too&gt; low</span>'
    said = f"4 个节点中有 1 个放得下。 <b>2</b> 空闲 CPU 不足, {theirs}"
    chinese = words_of("zh")
    assert answered(chinese, "no_node_fits") == said
    assert answered(chinese, "reserved_for_others") == said
    assert answered(chinese, "behind_earlier_jobs") == f"{said} 其队列不允许回填，而更早的作业放不下。"  # noqa: RUF001
    assert answered(chinese, "to_be_decided") == f"{said} 等待下一轮调度。"
    assert answered(chinese, "reserved", where="<a>") == f"它是队列中的第一个，&lt;a&gt; 为它预留。 {said}"  # noqa: RUF001
    assert answered(chinese, "policy_not_ready", policy="pilot") == "其队列的策略 pilot 正在准备。"
    limit = answered(chinese, "queue_limit", queue="vision", held="16", limit="16 gpus", requested="1")
    assert limit == "队列 vision 已占用 16，上限为 16 gpus。此作业请求 1。"  # noqa: RUF001
    shared = answered(chinese, "queue_limit", queue="vision", held="0", limit="1 gpus", requested="1", reserved="1")
    assert shared.endswith("此作业请求 1。 其中 1 为抢占了其他作业的作业预留。")
    figures = {"tenant": "a", "pool": "p", "held": "16", "limit": "16 gpus", "requested": "1"}
    quota = answered(chinese, "tenant_quota", **figures)
    assert quota == "租户 a 在池 p 中已占用 16，上限为 16 gpus。此作业请求 1。"  # noqa: RUF001
    quota = answered(chinese, "user_quota", user="ada", **figures)
    assert quota == "租户 a 的用户 ada 在池 p 中已占用 16，上限为 16 gpus。此作业请求 1。"  # noqa: RUF001
    assert answered(chinese, "gateway_unknown", gateway="gw") == "其网关 gw 不存在。"


@pytest.mark.parametrize("code", TEXTS)
def test_reasons_of_the_catalogue_are_rendered_in_both_languages(code: str) -> None:
    """Each code has an English and a Chinese text, which contain all its parameters, with times to the minute."""
    times = dict.fromkeys(("starts_at", "until", "begin", "end"), "2026-11-27T14:05:00Z")
    params = {name: times.get(name, f"a-{name}") for _, name, _, _ in Formatter().parse(TEXTS[code]) if name}
    english, chinese = (words.reason(code, params, text(code, params)) for words in (Words(), words_of("zh")))
    assert english == text(code, params)
    assert chinese != english
    assert "lang=" not in chinese
    for name in params:
        value = "2026-11-27 14:05 UTC" if name in times else f"a-{name}"
        assert value in english
        assert value in chinese


@pytest.mark.parametrize("code", ["insufficient_capacity", "backoff", "finished", "", "of-a-newer-server"])
def test_what_has_no_words_of_its_own_stays_english_and_says_so(code: str) -> None:
    """Readers of screens change their voice there."""
    assert answered(words_of("zh"), code) == f'<span lang="en">{SENTENCE}</span>'
