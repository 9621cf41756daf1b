"""The fewest events that show a miss, over histories of all sorts and every expectation."""

from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from conformance.test_judge import COMMON, LIST, Made
from relist.check import expect as x
from relist.check.expect import Expectation
from relist.check.history import RequestMatch
from support.least import check_least, missed

BOUNDED: dict[str, Any] = COMMON | {"since": "then"}

EXPECTATIONS: dict[str, tuple[Expectation, tuple[str, ...]]] = {
    "at least": (x.Requested(request=LIST, at_least=2, **COMMON), ("first page", "fence")),
    "at least, in time": (
        x.Requested(request=LIST, at_least=2, timed=True, **BOUNDED),
        ("first page", "second"),
    ),
    "at most": (
        x.Requested(request=LIST, at_least=0, at_most=1, **BOUNDED),
        ("first page", "notice"),
    ),
    "streams": (
        x.Requested(request=RequestMatch(method="GET"), at_least=0, at_most=0, **COMMON),
        ("get",),
    ),
    "never": (x.NeverRequested(methods=("tools/list", "ping"), **COMMON), ("first page", "ping")),
    "order": (
        x.Ordered(first=RequestMatch(method="ping"), then=LIST, **COMMON),
        ("first page", "ping"),
    ),
    "each": (
        x.Each(request=LIST, like=RequestMatch(page=1), **COMMON),
        ("first page", "page x"),
    ),
    "ids of a session": (x.DistinctIds(among="session", **COMMON), ("first page", "same id")),
    "open ids": (x.DistinctIds(among="open", **COMMON), ("first page", "same id", "last answer")),
    "well-formed": (x.WellFormed(**COMMON), ("response", "ping of the server")),
    "not cancelled": (x.Uncancelled(request=LIST, **BOUNDED), ("first page", "cancellation")),
    "cancelled": (x.Cancelled(request=LIST, **BOUNDED), ("first page", "fence", "cancellation")),
    "paced": (
        x.Paced(request=LIST, backoff=True, **COMMON),
        ("first page", "first page", "second", "half"),
    ),
    "full walk": (
        x.FullWalk(kind="tools", **COMMON),
        ("first page", "page x", "answer, more at x", "fence"),
    ),
    "last answer": (
        x.Answered(of="list", one_of=(("a@2", "b@2"),), **COMMON),
        ("a@1", "a@1, b@2", "truth 1", "truth 2"),
    ),
    "each answer": (
        x.Answered(of="list", one_of=((), ("a@2",)), which="every", **COMMON),
        ("a@1", "a@1, b@2", "truth 1", "truth 2"),
    ),
    "answer in time": (
        x.Answered(of="list", one_of=(("a@1",),), timed=True, **COMMON),
        ("need", "a@1, b@2", "truth 1"),
    ),
    "duplicates": (x.NoDuplicates(of="list", **COMMON), ("a@2 twice",)),
    "opinion": (x.Opinion(of="list", one_of=("stale",), **COMMON), ("fresh",)),
    "outcome": (x.Outcome(of="list", one_of=("refused",), **COMMON), ("called",)),
}
"""With each the acts that concern it most; it has to hold whatever else happens."""

NOTICE = {"method": "notifications/tools/list_changed"}


def _answered(made: Made) -> bool:
    """Whether the last request was: the referee answers none twice."""
    answers = (event.message for event in made.events if event.kind == "out")
    return any(answer is not None and answer.get("id") == made.ids for answer in answers)


ACTS: dict[str, Callable[[Made], Made]] = {
    "first page": lambda made: made.asked(),
    "page x": lambda made: made.asked("x"),
    "page y": lambda made: made.asked("y"),
    "answer, more at x": lambda made: made if _answered(made) else made.served("x"),
    "answer, more at y": lambda made: made if _answered(made) else made.served("y"),
    "last answer": lambda made: made if _answered(made) else made.served(),
    "error": lambda made: made if _answered(made) else made.refused(),
    "ping": lambda made: made.asked(method="ping"),
    "same id": lambda made: made.add("in", "c", {"id": made.ids, "method": "ping"}),
    "ping of the server": lambda made: made.add("out", "c", {"id": "p", "method": "ping"}),
    "response": lambda made: made.add("in", "c", {"id": "p", "result": {}}),
    "cancellation": lambda made: made.cancelled(made.ids),
    "notice": lambda made: made.add("out", "c", NOTICE),
    "get": lambda made: made.add("open", "g", channel_kind="get"),
    "close": lambda made: made.add("close", "c"),
    "cut": lambda made: made.add("cut", "c"),
    "ends": lambda made: made.add("step", op="end_subscriptions"),
    "odd": lambda made: made.add("out", "c", {"result": {}}, malformed=True),
    "need": lambda made: made.add("ask", op="need", **{"as": "list"}),
    "none": lambda made: made.offered(),
    "no list": lambda made: made.offered_nothing(),
    "a@1": lambda made: made.offered("a@1"),
    "a@1, b@2": lambda made: made.offered("a@1", "b@2"),
    "a@2 twice": lambda made: made.offered("a@2", "a@2"),
    "right": lambda made: made.offered("a@2", "b@2"),
    "fresh": lambda made: made.opined("fresh"),
    "called": lambda made: made.called("result"),
    "refused": lambda made: made.called("refused"),
    "truth 1": lambda made: made.truth(("a@1",), ("b@1",)),
    "truth 2": lambda made: made.truth(("a@2",), ("b@2",)),
    "mark": lambda made: made.mark(),
    "fence": lambda made: made.fence(),
    "second": lambda made: made.later(1_000),
    "half": lambda made: made.later(500),
}
ANOMALIES = st.sampled_from(x.ANOMALIES)


def histories(own: tuple[str, ...]) -> st.SearchStrategy[Made]:
    """What may happen after the mark that bounds."""
    act = st.sampled_from(own) | st.sampled_from(sorted(ACTS))
    acts = st.lists(act, min_size=3, max_size=25)
    return st.builds(_made, st.sampled_from(["post", "memory"]), acts)


def _made(kind: str, names: list[str]) -> Made:
    made = ACTS["mark"](Made().add("open", "c", channel_kind=kind))
    for name in names:
        ACTS[name](made)
    return made


@pytest.mark.parametrize("name", EXPECTATIONS)
def test_nothing_of_a_witness_can_be_left_out_and_nothing_smaller_would_do(name: str) -> None:
    about, own = EXPECTATIONS[name]

    @settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
    @given(histories(own), ANOMALIES, st.data())
    def owes(made: Made, anomaly: x.Anomaly, data: st.DataObject) -> None:
        expectation = evolve(about, anomaly=anomaly)
        found = missed(expectation, made.events)
        assume(found)
        for miss in found:
            witness = check_least(expectation, made.events, miss)
            if name != "paced":  # a few of many requests may look paced, or not
                some = data.draw(st.sets(st.integers(0, len(made.events) - 1)))
                seqs = {0, *some, *witness}
                kept = [e for e in made.events if e.seq in seqs or e.kind == "mark"]
                assert any(miss.is_like(one) for one in missed(expectation, kept))

    owes()


TOLD: dict[x.Anomaly, tuple[str, ...]] = {
    "lost notice": ("notice",),
    "late overwrite": ("last answer", "answer, more at x"),
    "cut walk": ("answer, more at x",),
    "starvation": ("notice",),
    "live-lock": ("notice",),
    "lost subscription": ("ends", "cut", "error"),
    "lost connection": ("cut",),
    "lost catalog": ("cut", "error"),
    "stale list": ("truth 2",),
    "wrong answer reused": ("last answer",),
    "wrong frame taken": ("odd", "notice"),
}
"""What a witness of this kind of harm holds besides the wrong answer."""


@pytest.mark.parametrize(
    ("anomaly", "name"), [(anomaly, name) for anomaly, names in TOLD.items() for name in names]
)
def test_a_witness_tells_its_story(anomaly: x.Anomaly, name: str) -> None:
    expectation = evolve(EXPECTATIONS["last answer"][0], anomaly=anomaly)
    made = _made("memory", ["truth 1", "first page", name, "fence"]).offered("c@1")
    (finding,) = made.held_against(expectation).findings
    assert finding.witness == (4, 6)
    # Where there is nothing of that sort, what the list was; what came later tells nothing.
    made = _made("memory", ["truth 1", "first page", "fence"]).offered("c@1")
    ACTS[name](made)
    (finding,) = made.held_against(expectation).findings
    assert finding.witness == (2, 5)


def test_of_many_lists_the_fewest_that_were_mixed_are_shown() -> None:
    made = Made().truth(("a@1",), ("b@3",)).truth(("c@5",))
    made.truth(("a@1",)).truth(("b@3",)).truth(("c@5",)).offered("a@1", "b@3", "c@5")
    (finding,) = made.held_against(EXPECTATIONS["last answer"][0]).findings
    assert (finding.anomaly, finding.witness) == ("torn listing", (0, 1, 5))


def test_what_did_not_come_in_time_is_shown_by_the_end_of_the_time() -> None:
    made = _made("memory", ["need", "truth 1", "get"])
    (finding,) = made.held_against(EXPECTATIONS["answer in time"][0]).findings
    assert finding.witness == (2, 3, 4)


def test_a_thousand_requests_are_shown_soon() -> None:
    many = Made()
    for _ in range(1_500):
        many.asked()
    seldom = x.Requested(request=LIST, at_least=0, at_most=1_200, **COMMON)
    assert many.held_against(seldom).findings[0].witness == tuple(range(1_201))
