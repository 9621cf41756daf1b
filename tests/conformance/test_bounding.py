"""However much a client or a driver sends: what is kept is short, and no verdict is another."""

import json
from collections.abc import Mapping
from typing import Any

import anyio
import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.made import made_case, made_hello, made_result
from conformance.scripted_client import Fault, ScriptedDriver, Session
from conformance.test_judge import COMMON, REVISION, UNKNOWN
from conformance.test_play import CASES, LEGACY, MODERN, in_virtual_time, played, word
from conformance.test_referee import Bench, modern
from relist.check.expect import Answered, FullWalk, NoDuplicates, Requested
from relist.check.history import RequestMatch, exchanges
from relist.check.judge import judge
from relist_conformance import history as recorded
from relist_conformance.bounding import CUT, TEXT_MAX, bounded
from relist_conformance.history import Recorder, TooMuch
from relist_conformance.play import Played, play
from relist_conformance.report import data
from relist_conformance.report.data import Timing, report_of
from relist_conformance.script import Case

LONG = "x" * 200_000
MANY = {f"key {number}": number for number in range(20_000)}
LEAVES = st.none() | st.booleans() | st.integers() | st.text()
REPEATED = st.text(min_size=1).map(lambda text: text * 2_000) | LEAVES.map(
    lambda one: [one] * 3_000
)
VALUES = st.recursive(
    LEAVES | REPEATED,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@given(VALUES)
def test_what_is_kept_is_short_and_what_is_short_is_kept(value: Any) -> None:
    whole = json.dumps(value)
    kept = bounded(value, 3_000)
    assert kept.length == len(json.dumps(kept.value))
    assert kept.length <= 40_000
    if len(whole) <= 3_000:
        assert (kept.value, kept.missing) == (value, 0)


@given(st.text(max_size=6), st.text(max_size=6))
def test_texts_that_are_cut_are_equal_when_the_whole_ones_are(one: str, other: str) -> None:
    first, second = (bounded(LONG + end, 300_000).value for end in (one, other))
    assert (first == second) is (one == other)
    assert f"({len(LONG + one) - TEXT_MAX // 2} characters more, sha256 " in first


def test_what_is_missing_is_told() -> None:
    kept = bounded({"many": list(range(20_000)), "deep": _deep(200), "text": LONG}, 500_000)
    assert kept.value["many"][-1] == {CUT: "10000 more"}
    assert "nested too deep" in json.dumps(kept.value["deep"])
    assert kept.missing == 10_001
    assert bounded(MANY, 4_000_000).value[CUT] == "10000 more"


def _deep(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


# --- a run of giants ------------------------------------------------------------------------------


def test_a_run_holds_no_more_than_it_may() -> None:
    recorder = Recorder()
    items = [{"name": "a", "description": LONG[:60]}] * 5_000

    def say(times: int) -> None:
        for _ in range(times):
            recorder.add("answer", ok={"items": items})

    with pytest.raises(TooMuch, match="more than 8388608 characters"):
        say(100)
    kept = json.dumps([attrs.asdict(event) for event in recorder.events])
    assert len(kept) <= recorded.MAX_CHARS * 1.1


def test_giant_ids_are_paired_and_giant_pages_followed() -> None:
    bench = Bench({"await": {"request": {"method": "never"}}})
    channel = bench.opened()
    bench.said(channel, modern("tools/list", LONG + "1"))
    bench.said(channel, modern("tools/list", LONG + "2", cursor="never", more=MANY))
    first, second = exchanges(bench.referee.history)
    assert first.result is not None
    assert first.asked.message is not None
    assert second.asked.message is not None
    assert first.asked.message["id"] != second.asked.message["id"]
    cursor = first.result["nextCursor"]
    bench.said(channel, modern("tools/list", LONG + "3", cursor=cursor, more=MANY))
    walk = FullWalk(kind="tools", **COMMON)
    assert judge([walk], bench.referee.history, REVISION).word == "pass"


def _padded(**more: Any) -> Any:
    usual = Session.meta

    def meta(self: Session, params: Mapping[str, Any] | None) -> dict[str, Any]:
        return {**usual(self, params), **more}

    return meta


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
@pytest.mark.parametrize(
    "more", [{"more": LONG}, MANY, {"more": _deep(50)}], ids=["long", "many", "deep"]
)
def test_no_verdict_is_another_because_of_giant_frames(
    revision: str, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    faults: list[tuple[Fault, ...]] = [(), ("first-page-only", "asks-undeclared")]
    plain = {faults_: _words(revision, *faults_) for faults_ in faults}
    monkeypatch.setattr(Session, "meta", _padded(**more))
    for some, expected in plain.items():
        for case, found in _words(revision, *some).items():
            assert found in (expected[case], UNKNOWN), (some, case)


def _words(revision: str, *faults: Fault) -> dict[str, str]:
    cases = ("paging:every-page", "paging:empty-cursor", "capability:undeclared")
    return {name: word(played(CASES[name], revision, *faults)) for name in cases}


# --- what was cut, and matters --------------------------------------------------------------------


def test_a_request_is_not_missed_where_its_parameters_are_cut() -> None:
    recorder = Recorder()
    recorder.add("in", "c", modern("tools/call", name="a", arguments=MANY))
    recorder.add("fence", passed=True)
    for params, expected in (({"name": "b"}, UNKNOWN), ({}, "pass")):
        request = RequestMatch(method="tools/call", params=params)
        verdict = judge([Requested(request=request, **COMMON)], recorder.events, REVISION)
        assert verdict.word == expected
    other = RequestMatch(method="tools/list", params={"cursor": "x"})
    assert judge([Requested(request=other, **COMMON)], recorder.events, REVISION).word == "fail"


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([("a", "a@1")], "pass"),
        ([("a", LONG)], "fail"),
        ([("a", "a@1")] * 20_000, UNKNOWN),
        ([("a", "a@1"), ("a", "a@1")], "fail"),
    ],
)
def test_a_list_that_was_cut_is_not_judged(items: list[tuple[str, str]], expected: str) -> None:
    told = [{"name": name, "description": text} for name, text in items]
    recorder = Recorder()
    recorder.add("answer", op="need", **{"as": "list", "kind": "tools"}, ok={"items": told})
    offered = Answered(of="list", one_of=(("a@1",),), **COMMON)
    assert judge([offered], recorder.events, REVISION).word == expected
    unique = NoDuplicates(of="list", **COMMON)
    twice = "fail" if len(items) == 2 else "pass"
    found = judge([unique], recorder.events, REVISION).word
    assert found == (UNKNOWN if expected == UNKNOWN else twice)


class Talker(ScriptedDriver):
    """Right in all it says, and never short: after a while it has said too much."""

    async def ask(self, op: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer, with many words."""
        answer = dict(await super().ask(op, fields))
        if op == "need" and "detail" not in answer:
            answer["items"] = [{"name": "no", "description": LONG[:400]}] * 1_000
        return answer


def _talked(case: Case) -> Played:
    results: list[Played] = []

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            results.append(await play(case, LEGACY, "memory", Talker(tasks)))
            tasks.cancel_scope.cancel()

    in_virtual_time(run)
    return results[0]


def test_a_run_that_was_broken_off_calls_nothing_absent() -> None:
    case = made_case(
        steps=[{"connect": {}}, *({"need": {"kind": "tools", "as": "list"}} for _ in range(40))],
        expect=[{"answer": {"of": "list", "items": ["a@1"]}}],
    )
    result = _talked(case)
    assert result.verdict is not None
    assert (result.outcome.word, result.verdict.findings) == ("inconclusive", ())
    assert "more than 8388608 characters" in result.outcome.reason
    assert "the run was broken off" in result.verdict.unjudged[0]


# --- the result -----------------------------------------------------------------------------------


def test_a_result_holds_no_more_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "HISTORIES_MAX", 1_000)
    first, second = made_result("fail"), made_result("fail", "http")
    long = attrs.evolve(first.observed.history[2], message={"method": LONG})
    history = (*first.observed.history[:2], long)
    first = attrs.evolve(first, observed=attrs.evolve(first.observed, history=history))
    report = report_of(
        [first, second, made_result("pass")], made_hello(), Timing(1, 1, 0.0, 0.0), {}
    )
    whole, witness, none = (result.history for result in report.results)
    assert len(whole) == 3
    assert len(json.dumps(attrs.asdict(whole[2]))) < 20_000
    assert [event.data.get("left_out") for event in witness] == [None, 2]
    assert none == ()
