"""The judge on histories made by hand: what counts, what is missed, and what cannot be decided."""

from typing import Any

import pytest

from relist.check.expect import (
    Answered,
    Cancelled,
    Expectation,
    FullWalk,
    NeverRequested,
    NewIds,
    NoDuplicates,
    Opinion,
    Ordered,
    Outcome,
    Paced,
    Requested,
    Severity,
)
from relist.check.history import Event, EventKind, RequestMatch
from relist.check.judge import LAG_MAX_MS, Verdict, judge, labels, loud_beliefs

REVISION = "2026-07-28"
COMMON: dict[str, Any] = {
    "rule": {REVISION: "R-1"},
    "severity": {REVISION: "fail"},
    "anomaly": "lost notice",
}
LIST = RequestMatch(method="tools/list")
UNKNOWN = "inconclusive"


class Made:
    """A history under construction."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.ids = 0
        self.now_ms = 0

    def add(
        self, kind: EventKind, channel: str = "", message: Any = None, /, **data: Any
    ) -> "Made":
        self.events.append(Event(len(self.events), self.now_ms, kind, channel, message, data))
        return self

    def asked(self, cursor: str | None = None, method: str = "tools/list") -> "Made":
        self.ids += 1
        params = {} if cursor is None else {"params": {"cursor": cursor}}
        return self.add("in", "c", {"id": self.ids, "method": method, **params})

    def served(self, following: str | None = None) -> "Made":
        more = {} if following is None else {"nextCursor": following}
        return self.add("out", "c", {"id": self.ids, "result": {"tools": [], **more}})

    def refused(self) -> "Made":
        return self.add("out", "c", {"id": self.ids, "error": {"code": -32603, "message": "no"}})

    def offered(self, *labels: str, op: str = "need") -> "Made":
        items = [{"name": label.rpartition("@")[0], "description": label} for label in labels]
        named = {"as": "list", "kind": "tools"}
        return self.add("answer", op=op, **named, ok={"items": items})

    def offered_nothing(self, op: str = "need") -> "Made":
        return self.add("answer", op=op, **{"as": "list", "kind": "tools"}, ok={"items": None})

    def mark(self, name: str = "then") -> "Made":
        return self.add("mark", name=name)

    def later(self, ms: int) -> "Made":
        self.now_ms += ms
        return self

    def truth(self, *pages: tuple[str, ...]) -> "Made":
        return self.add("truth", pages={"tools": pages})

    def cancelled(self, request_id: object, channel: str = "c") -> "Made":
        params = {"requestId": request_id}
        return self.add("in", channel, {"method": "notifications/cancelled", "params": params})

    def called(self, outcome: str) -> "Made":
        return self.add("answer", op="call", **{"as": "list"}, ok={"outcome": outcome})

    def opined(self, state: str) -> "Made":
        return self.add("answer", op="need", **{"as": "list"}, ok={"items": [], "state": state})

    def fence(self, passed: bool = True) -> "Made":
        return self.add("fence", passed=passed)

    def held_against(self, *expectations: Expectation, lag_ms: float = 0) -> Verdict:
        return judge(expectations, self.events, REVISION, lag_ms)


def word(history: Made, expectation: Expectation) -> str:
    return history.held_against(expectation).word


REQUESTED = Requested(request=LIST, **COMMON)
EMPTY_CURSOR = Requested(request=RequestMatch(method="tools/list", cursor=""), **COMMON)
WALK = FullWalk(kind="tools", **COMMON)
OFFERED = Answered(of="list", one_of=(("a@1", "b@1"),), **COMMON)
EVERY = Answered(of="list", one_of=(("a@1",), ("a@2",)), which="every", **COMMON)
NEVER = NeverRequested(methods=("prompts/list",), **COMMON)


def test_a_request_that_came_needs_no_fence_and_one_that_did_not_needs_one() -> None:
    assert word(Made().asked(), REQUESTED) == "pass"
    assert word(Made(), REQUESTED) == UNKNOWN
    assert word(Made().fence(passed=False), REQUESTED) == UNKNOWN
    assert word(Made().fence(), REQUESTED) == "fail"


def test_what_is_timed_needs_no_fence() -> None:
    most = Requested(request=LIST, at_least=0, at_most=0, timed=True, **COMMON)
    never = NeverRequested(methods=("tools/list",), timed=True, **COMMON)
    for timed in (most, never):
        assert word(Made(), timed) == "pass"
        assert word(Made().asked(), timed) == "fail"
        assert Made().asked().held_against(timed, lag_ms=LAG_MAX_MS + 1).word == UNKNOWN


def test_requests_before_the_mark_do_not_count() -> None:
    since = Requested(request=LIST, since="then", **COMMON)
    assert word(Made().asked().mark().fence(), since) == "fail"
    assert word(Made().asked().fence().mark(), since) == UNKNOWN
    assert word(Made().mark().asked(), since) == "pass"
    assert word(Made().asked(), since) == UNKNOWN


def test_a_request_is_told_by_its_method_and_its_page() -> None:
    second = Requested(request=RequestMatch(method="tools/list", page=2), **COMMON)
    assert word(Made().asked(method="prompts/list").fence(), REQUESTED) == "fail"
    asked = {"id": 1, "method": "tools/list"}
    assert word(Made().add("in", "c", asked, page=2), second) == "pass"
    (found,) = Made().asked().fence().held_against(second).findings
    assert "tools/list for page 2" in found.text


def test_what_nobody_can_judge_is_a_fault_of_ours() -> None:
    with pytest.raises(TypeError, match="no judgement for Expectation"):
        judge((Expectation(**COMMON),), (), REVISION)


def test_too_many_requests() -> None:
    once = Requested(request=LIST, at_least=0, at_most=1, **COMMON)
    found = Made().asked().asked().held_against(once).findings[0]
    assert (found.witness, "at most 1" in found.text) == ((0, 1), True)


def test_the_empty_text_is_a_cursor_and_no_cursor_is_not() -> None:
    assert word(Made().asked("").fence(), EMPTY_CURSOR) == "pass"
    assert word(Made().asked().fence(), EMPTY_CURSOR) == "fail"


def test_a_full_walk_follows_each_served_cursor() -> None:
    assert word(Made().asked().served("x").asked("x").served("").asked("").served(), WALK) == "pass"
    assert word(Made().asked().served("x").asked("x").served("y").fence(), WALK) == "fail"
    assert word(Made().asked().served("x").asked("z").served().fence(), WALK) == "fail"
    assert word(Made().asked().refused().fence(), WALK) == "fail"
    assert word(Made().asked().served("x").fence(passed=False), WALK) == UNKNOWN


def test_a_page_that_failed_may_be_asked_again_by_its_cursor() -> None:
    def failed() -> Made:
        return Made().asked().served("x").asked("x").refused()

    assert word(failed().asked("x").served(), WALK) == "pass"
    assert word(failed().asked("x").served("y").asked("y").served(), WALK) == "pass"
    assert word(failed().asked("x").served("y").fence(), WALK) == "fail"
    renewed = failed().asked("x").served("y").asked("x").served("z").asked("z")
    assert word(renewed.served(), WALK) == "pass"


def test_a_page_that_was_asked_before_its_cursor_was_served_is_of_another_walk() -> None:
    assert word(Made().asked("x").served().asked().served("x").fence(), WALK) == "fail"


def test_a_walk_counts_from_the_mark_on_and_starts_at_the_first_page() -> None:
    since = FullWalk(kind="tools", since="then", **COMMON)
    assert word(Made().asked().mark().served().fence(), since) == "fail"
    assert word(Made().asked().served("x").mark().asked("x").served().fence(), since) == "fail"
    assert word(Made().mark().asked().served(), since) == "pass"


def test_interleaved_walks_are_told_apart() -> None:
    made = Made().asked().served("x").asked().served("y").asked("x").served("z").asked("y").served()
    assert word(made, WALK) == "pass"


def test_the_last_answer_counts_as_a_set() -> None:
    assert word(Made().offered("b@1", "a@1"), OFFERED) == "pass"
    assert word(Made().offered("a@1").offered("a@1", "b@1"), OFFERED) == "pass"
    assert word(Made().offered("a@1", "b@1").offered("a@1"), OFFERED) == "fail"
    assert word(Made().offered("a@1", "b@1", "b@1"), OFFERED) == "fail"
    assert word(Made().offered("a@2", "b@1"), OFFERED) == "fail"
    assert word(Made().offered_nothing(), OFFERED) == "fail"


def test_every_answer_counts_where_the_case_says_so() -> None:
    assert word(Made().offered("a@1").offered("a@2"), EVERY) == "pass"
    assert word(Made().offered("a@1").offered().offered("a@2"), EVERY) == "fail"
    assert word(Made(), EVERY) == "pass"


def test_no_list_can_be_what_is_expected() -> None:
    none = Answered(of="list", one_of=(None,), **COMMON)
    assert word(Made().offered_nothing(), none) == "pass"
    assert word(Made().offered(), none) == "fail"


def test_who_does_not_know_is_not_blamed() -> None:
    unknown = Made().offered_nothing(op="believe").held_against(OFFERED)
    assert (unknown.word, len(unknown.unjudged)) == ("pass", 1)
    failing = Made().add("answer", op="need", **{"as": "list"}, error="no connection")
    assert word(failing, OFFERED) == UNKNOWN
    assert word(Made(), OFFERED) == UNKNOWN


def test_an_error_in_place_of_each_answer_is_missed_where_the_case_says_so() -> None:
    wanted = Answered(of="list", one_of=(("a@1",),), or_error=False, **COMMON)
    failing = Made().add("answer", op="need", **{"as": "list"}, error="wrong lifetime")
    verdict = failing.held_against(wanted)
    assert [finding.text for finding in verdict.findings] == ["the client gave an error for 'list'"]
    assert word(failing.offered("a@1"), wanted) == "pass"
    assert word(Made(), wanted) == UNKNOWN


def test_an_item_described_by_another_text_is_another_item() -> None:
    items = [{"name": "a", "description": "b@1"}]
    made = Made().add("answer", op="need", **{"as": "list"}, ok={"items": items})
    found = made.held_against(Answered(of="list", one_of=(("b@1",),), **COMMON)).findings
    assert "a (b@1)" in found[0].text


def test_duplicates() -> None:
    unique = NoDuplicates(of="list", **COMMON)
    assert word(Made().offered("a@1", "b@1"), unique) == "pass"
    assert word(Made().offered("a@1").offered("a@1", "a@1"), unique) == "fail"


def test_absence_is_judged_behind_a_fence() -> None:
    assert word(Made().asked().fence(), NEVER) == "pass"
    assert word(Made().asked(), NEVER) == UNKNOWN
    assert word(Made().asked(method="prompts/list"), NEVER) == "fail"
    assert word(Made().fence().asked(method="prompts/list").fence(), NEVER) == "fail"
    since = NeverRequested(methods=("prompts/list",), since="then", **COMMON)
    assert word(Made().asked(method="prompts/list").mark().fence(), since) == "pass"


def test_what_the_run_did_not_come_to_is_not_judged() -> None:
    given = NeverRequested(methods=("tools/list",), given="then", **COMMON)
    verdict = Made().asked().fence().held_against(given)
    assert (verdict.word, verdict.unjudged) == ("pass", ("R-1: the run did not come to 'then'",))


@pytest.mark.parametrize(
    ("severities", "blocked", "expected"),
    [
        (["warn"], False, "warn"),
        (["warn", "fail"], False, "fail"),
        (["fail"], True, "fail"),
        (["warn"], True, "warn"),
        ([], True, "inconclusive"),
        ([], False, "pass"),
    ],
)
def test_the_worst_finding_is_the_verdict(
    severities: list[Severity], blocked: bool, expected: str
) -> None:
    made = Made().asked(method="prompts/list").fence()
    expectations: list[Expectation] = [
        NeverRequested(**(COMMON | {"severity": {REVISION: severity}}), methods=("prompts/list",))
        for severity in severities
    ]
    if blocked:
        expectations.append(Answered(of="nobody", one_of=((),), **COMMON))
    assert made.held_against(*expectations).word == expected


def test_a_finding_is_one_bounded_printable_line() -> None:
    hostile = "x\x1b[2J\n\u202e" * 1000
    made = Made().offered(*[f"{hostile}{number}@1" for number in range(500)])
    (found,) = made.held_against(OFFERED).findings
    assert found.text.isprintable()
    assert len(found.text) < 3000


def loud(made: Made) -> tuple[int, ...]:
    return loud_beliefs(made.events)


def test_a_belief_that_lists_is_noticed_only_where_nothing_else_can_be_the_cause() -> None:
    def idle() -> Made:
        return Made().add("ask", op="idle").add("answer", op="idle", ok={"idle": True})

    def believing(made: Made) -> Made:
        return made.add("ask", op="believe").asked().add("answer", op="believe", ok={"items": None})

    assert loud(believing(idle())) == (3,)
    assert loud(believing(Made())) == ()
    assert loud(believing(idle().add("out", "c", {"method": "notifications/x"}))) == ()
    assert loud(believing(idle().add("ask", op="need"))) == ()
    assert loud(idle().add("ask", op="believe").add("answer", op="believe").asked()) == ()
    marked = idle().add("ask", op="believe").mark().asked()
    assert loud(marked) == (4,), "a mark of the referee causes nothing"
    unsure = Made().add("ask", op="idle").add("answer", op="idle", ok={"idle": None})
    assert loud(believing(unsure)) == ()


# --- how often, in what order, and what is given up ---


def test_at_most_is_judged_behind_a_fence_and_shows_one_too_many() -> None:
    twice = Requested(request=LIST, at_least=0, at_most=2, **COMMON)
    assert word(Made().asked().fence(), twice) == "pass"
    assert word(Made().asked(), twice) == UNKNOWN
    assert Made().asked().asked().asked().asked().held_against(twice).findings[0].witness == (
        *(0, 1, 2),
    )


def test_what_came_after_the_second_mark_does_not_count() -> None:
    before = Requested(request=LIST, since="then", before="done", **COMMON)
    assert word(Made().mark().asked().mark("done"), before) == "pass"
    assert word(Made().mark().fence().mark("done").asked(), before) == "fail"
    assert word(Made().mark().mark("done").asked().fence(), before) == UNKNOWN


def test_requests_are_told_by_their_parameters_headers_and_principal() -> None:
    bobs = Requested(request=RequestMatch(method="tools/list", principal="bob"), **COMMON)
    sessions = Requested(request=RequestMatch(headers={"mcp-session-id": None}), **COMMON)
    filtered = Requested(
        request=RequestMatch(params={"notifications": {"toolsListChanged": True}}), **COMMON
    )
    listen = {"method": "l", "params": {"notifications": {"toolsListChanged": True, "x": 1}}}
    plain = Made().add("open", "c", channel_kind="stdio", headers={}).asked().fence()
    bob = Made().add("open", "c", headers={"mcp-session-id": "s"}, principal="bob").asked().fence()
    assert [word(made, bobs) for made in (plain, bob)] == ["fail", "pass"]
    assert [word(made, sessions) for made in (plain, bob)] == ["pass", "fail"]
    assert word(plain, filtered) == "fail"
    assert word(Made().add("in", "c", listen), filtered) == "pass"


def test_an_http_get_is_a_request_too() -> None:
    gets = Requested(request=RequestMatch(method="GET"), **COMMON)
    assert word(Made().add("open", "g", channel_kind="get"), gets) == "pass"
    assert word(Made().add("open", "g", channel_kind="post").fence(), gets) == "fail"


def test_order() -> None:
    probe, everything = RequestMatch(method="server/discover"), RequestMatch()
    ordered = Ordered(first=probe, then=everything, **COMMON)
    discover = "server/discover"
    assert word(Made().asked(method=discover).asked(), ordered) == "pass"
    assert word(Made(), ordered) == "pass"
    lists_last = Ordered(first=probe, then=LIST, **COMMON)
    assert word(Made().asked(method=discover).asked(), lists_last) == "pass"
    assert word(Made().asked().asked(method=discover), ordered) == "fail"
    assert Made().asked().held_against(ordered).findings[0].witness == (0,)


def test_a_cancellation_names_the_request_with_its_type_on_its_pipe() -> None:
    cancelled = Cancelled(request=LIST, **COMMON)
    assert word(Made().asked().cancelled(1), cancelled) == "pass"
    assert word(Made().asked().cancelled("1").fence(), cancelled) == "fail"
    assert word(Made().asked().cancelled(1, "d").fence(), cancelled) == "fail"
    assert word(Made().cancelled(1).asked().fence(), cancelled) == "fail"
    assert word(Made().asked(), cancelled) == UNKNOWN
    assert word(Made().fence(), cancelled) == UNKNOWN
    assert word(Made().asked().add("close", "c").fence(), cancelled) == "fail"


def test_over_http_the_end_of_the_stream_cancels() -> None:
    cancelled = Cancelled(request=LIST, **COMMON)
    made = Made().add("open", "c", channel_kind="post").asked()
    assert word(made.add("close", "c"), cancelled) == "pass"
    made = Made().add("open", "c", channel_kind="post").asked()
    assert word(made.cancelled(1, "another"), cancelled) == "pass"


def test_an_id_used_again_is_seen_with_its_type() -> None:
    ids = NewIds(request=LIST, **COMMON)
    told = {"method": "tools/list"}
    assert word(Made().asked().asked(), ids) == "pass"
    assert (
        word(Made().add("in", "c", {"id": 1, **told}).add("in", "c", {"id": "1", **told}), ids)
        == "pass"
    )
    assert (
        word(Made().add("in", "c", {"id": 1, **told}).add("in", "d", {"id": 1, **told}), ids)
        == "fail"
    )
    other = {"id": 1, "method": "ping"}
    assert word(Made().add("in", "c", {"id": 1, **told}).add("in", "c", other), ids) == "pass"


def test_an_answer_to_our_request_is_told_from_requests() -> None:
    replied = Requested(request=RequestMatch(reply="r"), **COMMON)
    assert word(Made().add("in", "c", {"id": "r", "result": {}}), replied) == "pass"
    assert word(Made().add("in", "c", {"id": "other", "result": {}}).fence(), replied) == "fail"
    assert word(Made().add("in", "c", {"id": "r", "method": "ping"}).fence(), replied) == "fail"
    anything = Ordered(first=LIST, then=RequestMatch(), **COMMON)
    assert word(Made().add("in", "c", {"id": "r", "result": {}}).asked(), anything) == "pass"


def test_many_requests_at_one_period_are_not_paced() -> None:
    paced = Paced(request=LIST, **COMMON)

    def every(*pauses_ms: int) -> Made:
        made = Made().asked()
        for pause_ms in pauses_ms:
            made.later(pause_ms).asked()
        return made

    assert word(every(100, 100, 100), paced) == "fail"
    assert word(every(1_000, 1_001, 1_000), paced) == "fail"
    assert word(every(100, 90, 110), paced) == "pass"
    assert word(every(100, 100), paced) == "pass"
    growing = Paced(request=LIST, backoff=True, **COMMON)
    assert word(every(100, 190, 420, 800), growing) == "pass"
    assert word(every(100, 120, 90, 110), growing) == "fail"


# --- what the driver said of calls and of itself ---


def test_the_order_of_items_counts_where_the_case_minds_it() -> None:
    ordered = Answered(of="list", one_of=(("a@1", "b@1"),), in_order=True, **COMMON)
    assert word(Made().offered("a@1", "b@1"), ordered) == "pass"
    assert word(Made().offered("b@1", "a@1"), ordered) == "fail"


def test_outcomes_of_calls() -> None:
    refused = Outcome(of="list", one_of=("refused", "error"), **COMMON)
    assert word(Made().called("refused").called("error"), refused) == "pass"
    assert word(Made().called("refused").called("result"), refused) == "fail"
    assert word(Made(), refused) == UNKNOWN


def test_opinions_are_judged_only_where_there_are_some() -> None:
    doubted = Opinion(of="list", one_of=("stale", "unknown"), **COMMON)
    assert word(Made().opined("stale"), doubted) == "pass"
    assert word(Made().opined("fresh"), doubted) == "fail"
    assert word(Made().offered("a@1"), doubted) == "pass"


# --- kinds of harm, and a harness that is late ---


@pytest.mark.parametrize(
    ("offered", "anomaly", "witness"),
    [
        (("a@1", "b@1"), "lost notice", (1, 3)),
        (("a@1", "b@2"), "torn listing", (0, 1, 3)),
        (("a@2",), "cut walk", (1, 3)),
        (("x@1",), "lost notice", (1, 3)),
        ((), "lost catalog", (1, 3)),
    ],
)
def test_the_items_say_what_kind_of_harm_it_is(
    offered: tuple[str, ...], anomaly: str, witness: tuple[int, ...]
) -> None:
    wanted = Answered(of="list", one_of=(("a@2", "b@2"),), **COMMON)
    made = Made().truth(("a@1",), ("b@1",)).truth(("a@2",), ("b@2",))
    made.add("truth", pages={"prompts": [offered]}).offered(*offered)
    (found,) = made.held_against(wanted).findings
    assert (found.anomaly, found.witness) == (anomaly, witness)


def test_a_harness_that_was_late_calls_nothing_absent() -> None:
    late = LAG_MAX_MS + 1
    missing = Made().fence()
    assert missing.held_against(REQUESTED, lag_ms=LAG_MAX_MS).word == "fail"
    verdict = missing.held_against(REQUESTED, lag_ms=late)
    assert (verdict.word, verdict.unjudged) == (UNKNOWN, ("R-1: the harness was 1001 ms late",))
    assert Made().fence().held_against(WALK, lag_ms=late).word == UNKNOWN
    assert Made().offered("a@1").held_against(OFFERED, lag_ms=late).word == UNKNOWN


def test_what_is_timed_needs_no_fence_and_no_answer() -> None:
    request = Requested(request=LIST, timed=True, **COMMON)
    assert word(Made().truth(), request) == "fail"
    assert word(Made(), request) == UNKNOWN
    twice = Requested(request=LIST, at_least=2, timed=True, **COMMON)
    assert Made().asked().truth().held_against(twice).findings[0].witness == (0, 1)
    assert word(Made().asked(), twice) == UNKNOWN
    answer = Answered(of="list", one_of=(("a@1",),), timed=True, **COMMON)
    assert word(Made().truth(), answer) == UNKNOWN
    waiting = Made().add("ask", op="need", **{"as": "list"})
    assert word(waiting, answer) == UNKNOWN
    waiting.truth()
    assert waiting.held_against(answer).findings[0].witness == (0, 1)
    failing = Made().add("answer", op="need", **{"as": "list"}, error="no connection")
    assert word(failing, answer) == UNKNOWN
    assert waiting.held_against(answer, lag_ms=LAG_MAX_MS + 1).word == UNKNOWN


def test_an_answer_after_the_mark_did_not_come_in_time() -> None:
    in_time = Answered(of="list", one_of=(("a@1",),), timed=True, before="then", **COMMON)
    asked = Made().add("ask", op="need", **{"as": "list"}).truth().mark()
    assert asked.offered("a@1").held_against(in_time).findings[0].witness == (0, 1)
    never = Made().truth().mark().add("ask", op="need", **{"as": "list"}).offered("a@1")
    assert word(never, in_time) == UNKNOWN


def test_a_harness_that_was_late_does_not_judge_what_rests_on_time() -> None:
    once = Requested(request=LIST, at_least=0, at_most=1, timed=True, **COMMON)
    made = Made().asked().asked().fence()
    assert made.held_against(once).word == "fail"
    assert made.held_against(once, lag_ms=LAG_MAX_MS + 1).word == UNKNOWN


def test_what_a_client_did_it_did_however_late_the_harness_was() -> None:
    late = LAG_MAX_MS + 1
    made = Made().asked(method="prompts/list").fence()
    assert made.held_against(NEVER, lag_ms=late).word == "fail"
    assert Made().offered("a@3").held_against(EVERY, lag_ms=late).word == "fail"
    assert Made().asked().fence().held_against(REQUESTED, lag_ms=late).word == "pass"


def test_a_text_that_was_read_is_offered_like_a_list_of_one() -> None:
    assert labels({"outcome": "result", "text": "r@1"}) == ("r@1",)
    assert labels({"outcome": "error"}) is None
