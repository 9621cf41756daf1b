"""When walks begin by themselves: windows, gaps, storms, backoff (decision 0010)."""

import pytest

from relist.effects import DoubtList, Note
from relist.inputs import CapabilitiesChanged
from relist.machine import Hit
from relist.values import Doubt, Failure, Kind, Phase
from support.one import METHOD_NOT_FOUND, TRANSIENT, UNAUTHORIZED, One, fresh, policy, walking

rule = pytest.mark.rule


# --- windows and gaps -----------------------------------------------------------------------------


@rule("NOTE-03")
@rule("NOTE-19")
@rule("TTL-14")
@rule("NOTE-02")
@rule("NOTE-23")
def test_a_notice_makes_the_list_stale_at_once_whatever_its_lifetime() -> None:
    one = fresh(ttl_ms=10**6)
    one.notice()
    assert one.phase() is Phase.STALE
    assert one.look().hit is Hit.DOUBTED
    assert one.requests() == []
    assert one.wake() == one.policy.gather_ms
    assert len(one.requests()) == 1


@rule("ATOM-20")
def test_the_window_is_never_moved() -> None:
    one = fresh()
    one.notice()
    due = one.deadline_ms
    for _ in range(5):
        one.later(9)
        one.notice()
        assert one.deadline_ms == due


@rule("FAIL-02")
def test_a_complete_walk_ends_the_row_of_failures_though_it_was_spoiled() -> None:
    one = fresh()
    one.refresh()
    one.fail(TRANSIENT)
    one.wake()
    assert one.catalog.pacing.failures == 1
    one.notice()
    one.page("a", "b")
    assert one.catalog.pacing.failures == 0
    one.verify()  # the gap does not delay it
    assert len(one.requests()) == 1


@rule("FAIL-08")
@rule("CALL-08")
def test_a_call_rejected_again_and_again_does_not_list_again_and_again() -> None:
    one = fresh()
    one.later(one.policy.gap_max_ms)
    one.prove(1)
    waits = [one.wake()]
    for _ in range(20):
        one.page("a", "b")
        one.prove(1)
        waits.append(one.wake())
    assert waits[0] == 0
    assert waits[1] > 0
    assert waits == sorted(waits)
    assert waits[-1] == one.policy.gap_max_ms


@rule("SUB-35")
@rule("NOTE-06")
@rule("NOTE-08")
def test_a_further_notice_leaves_the_same_state_object() -> None:
    one = fresh()
    one.notice()
    before = one.catalog
    one.later(1)
    one.notice()
    assert one.catalog is before
    assert one.told == ()


@rule("ATOM-08")
@rule("NOTE-07")
@rule("NOTE-08")
def test_a_further_notice_during_a_walk_leaves_the_same_state_object() -> None:
    one = fresh()
    one.refresh()
    one.notice()
    before = one.catalog
    one.notice()
    assert one.catalog is before
    assert one.told == ()


def feedback(one: One) -> int:
    """A server that notifies after each listing: how long until it is listed again."""
    one.notice()
    assert one.phase() is Phase.STALE
    waited = one.wake()
    one.page("a", "b")
    assert one.phase() is Phase.FRESH
    return waited


def test_the_gap_grows_under_feedback_saturates_and_resets_after_a_quiet_one() -> None:
    one = fresh(policy(gather_ms=10, gap_base_ms=100, gap_max_ms=500))
    assert [feedback(one) for _ in range(6)] == [10, 100, 200, 400, 500, 500]
    one.later(501)
    assert feedback(one) == 10
    assert one.catalog.pacing.gap_exponent == 0


def test_lag_stays_bounded_by_the_longest_gap() -> None:
    one = fresh(policy(gap_max_ms=500))
    for _ in range(20):
        assert feedback(one) <= 500


@rule("NOTE-07")
@rule("ATOM-09")
@rule("ATOM-10")
def test_a_notice_during_a_walk_leads_to_another_one() -> None:
    one = fresh()
    one.refresh()
    one.notice()
    one.page("old")
    assert one.phase() is Phase.STALE
    assert one.names == ["a", "b"]
    assert one.doubt is Doubt.NOTICED
    assert one.catalog.candidate is not None
    assert one.wake() == one.policy.gap_base_ms
    one.page("new")
    assert one.phase() is Phase.FRESH
    assert one.names == ["new"]
    assert one.doubt is None
    assert one.catalog.candidate is None


@rule("ATOM-15")
def test_a_storm_publishes_spoiled_and_stays_stale() -> None:
    one = walking()
    for number in range(one.policy.spoiled_in_row_max):
        assert one.publications() == []
        one.notice()
        one.page(f"a@{number}")
        assert one.phase() is Phase.STALE
        if number < one.policy.spoiled_in_row_max - 1:
            one.wake()
    (publish,) = one.publications()
    assert not publish.snapshot.clean
    assert one.names == ["a@2"]
    assert one.doubt is not None
    assert one.look().hit is Hit.DOUBTED
    assert one.deadline_ms is not None


@rule("ATOM-15")
def test_a_storm_that_goes_on_publishes_each_walk() -> None:
    one = walking(policy(spoiled_in_row_max=2))
    for number in range(5):
        one.notice()
        one.page(f"a@{number}")
        assert len(one.publications()) == (number > 0)
        one.wake()
    one.page("a@9")
    assert one.phase() is Phase.FRESH
    assert one.snapshot.clean
    assert one.catalog.pacing.spoiled_in_row == 0


def test_a_storm_is_listed_at_most_once_in_the_longest_gap() -> None:
    one = walking(policy(gap_max_ms=800))
    waits = []
    for _ in range(8):
        one.notice()
        one.page("a")
        waits.append(one.wake())
    assert waits == [100, 200, 400, 800, 800, 800, 800, 800]


# --- failure --------------------------------------------------------------------------------------


@rule("STATE-03")
@rule("TTL-13")
@rule("FAIL-01")
@rule("FAIL-03")
def test_a_failure_keeps_the_list_doubts_it_and_tries_again() -> None:
    one = fresh()
    one.refresh()
    one.fail()
    assert one.phase() is Phase.STALE
    assert one.names == ["a", "b"]
    assert one.doubt is Doubt.FAILED
    assert one.wake() == one.policy.backoff_base_ms
    assert len(one.requests()) == 1


@rule("FAIL-17")
def test_a_failure_in_the_middle_publishes_nothing() -> None:
    one = fresh()
    one.refresh()
    one.page("c", more="x")
    one.fail()
    assert one.names == ["a", "b"]
    assert one.publications() == []
    one.wake()
    (request,) = one.requests()
    assert request.cursor is None


@rule("FAIL-02")
def test_failures_in_a_row_double_the_delay_and_success_resets_it() -> None:
    one = fresh()
    one.refresh()
    waits = []
    for _ in range(3):
        one.fail()
        waits.append(one.wake())
    assert waits == [500, 1_000, 2_000]
    one.page("a", "b")
    assert one.catalog.pacing.failures == 0
    one.refresh()
    one.fail()
    assert one.wake() == 500


@rule("FAIL-20")
@rule("FAIL-02")
def test_a_notice_does_not_move_a_failure_backoff() -> None:
    one = fresh()
    one.refresh()
    one.fail()
    due, before = one.deadline_ms, one.catalog
    one.notice()
    assert one.deadline_ms == due
    assert one.catalog is before


def test_a_read_does_not_move_a_failure_backoff() -> None:
    one = fresh()
    one.refresh()
    one.fail()
    due = one.deadline_ms
    one.read()
    assert one.requests() == []
    assert one.deadline_ms == due


def test_an_explicit_refresh_breaks_a_failure_backoff_and_the_gap() -> None:
    one = fresh()
    one.refresh()
    one.fail()
    one.refresh()
    assert len(one.requests()) == 1
    one.notice()
    one.page("a")
    assert one.phase() is Phase.STALE
    one.refresh()
    assert len(one.requests()) == 1


def test_retry_after_is_honoured_and_capped() -> None:
    one = fresh(policy(retry_after_max_ms=10_000))
    one.refresh()
    one.fail_after(7_000)
    assert one.wake() == 7_000
    one.fail_after(10**9)
    assert one.wake() == 10_000
    one.fail_after(1)
    assert one.wake() == 2_000


@rule("FAIL-09")
def test_no_answer_in_time_is_cancelled_and_retried() -> None:
    one = fresh(policy(request_limit_ms=300))
    one.refresh()
    serial = one.catalog.serial
    assert one.wake() == 300
    assert [told.serial for told in one.abandoned()] == [serial]
    assert one.phase() is Phase.STALE
    assert one.doubt is Doubt.FAILED
    assert one.deadline_ms is not None


@rule("OBS-11")
@rule("CAP-16")
def test_method_not_found_on_a_declared_kind_is_unsupported_not_empty() -> None:
    one = fresh()
    one.refresh()
    one.fail(METHOD_NOT_FOUND)
    assert one.phase() is Phase.UNSUPPORTED
    assert one.look().hit is Hit.UNSUPPORTED
    assert one.look().snapshot is None
    assert one.notes() == ["CAP-16"]
    assert one.deadline_ms is None
    for ask in (one.read, one.refresh, one.notice, one.tick):
        ask()
        assert one.requests() == []


@rule("NOTE-24")
def test_quiet_begins_with_the_very_end_of_the_next_longer_gap() -> None:
    rules = policy(gather_ms=10, gap_base_ms=100, gap_max_ms=1_000)
    for after_ms, waits_ms in ((99, 10), (100, 10), (40, 60)):
        one = fresh(rules)
        one.now_ms = one.snapshot.listed_at_ms + after_ms
        one.notice()
        assert one.catalog.pacing.gap_exponent == (after_ms < 100)
        assert one.wake() == waits_ms


@rule("NOTE-12")
def test_a_notice_before_listing_is_told_of_a_kept_list_only() -> None:
    one = fresh(covered=False, ttl_ms=10**6)
    one.lose()
    one.link()
    one.notice()
    assert one.told == (DoubtList(Kind.TOOLS, Doubt.NOTICED),)
    none = One()
    none.link()
    before = none.catalog
    none.notice()
    assert none.catalog is before


@rule("SUB-27")
def test_push_that_begins_before_listing_does_not_vouch_for_a_kept_list() -> None:
    one = fresh(covered=False, ttl_ms=10**6)
    one.lose()
    one.link()
    one.cover()
    assert one.doubt is Doubt.UNVOUCHED
    assert one.told == (DoubtList(Kind.TOOLS, Doubt.UNVOUCHED),)


@rule("STATE-02")
def test_a_walk_that_spoils_itself_makes_the_list_suspect() -> None:
    one = fresh()
    one.refresh()
    one.page("a@1", more="x")
    one.page("a@2")
    assert (one.phase(), one.doubt) == (Phase.STALE, Doubt.SUSPECTED)
    assert one.told == (DoubtList(Kind.TOOLS, Doubt.SUSPECTED),)


@rule("FAIL-19")
def test_a_request_that_is_refused_as_such_is_noted_with_its_code() -> None:
    one = walking()
    serial = one.catalog.serial
    one.fail(Failure("x", code=-32600))
    text = "refused in a way that repeating does not mend"
    assert one.told == (Note("FAIL-19", text, (serial, -32600)),)
    assert one.catalog.pacing.due_at_ms is None


@rule("FAIL-04")
def test_a_kind_that_vanishes_for_a_while_stays_parked() -> None:
    one = fresh()
    one.refresh()
    one.fail(UNAUTHORIZED)
    one.hear(CapabilitiesChanged(False, False, one.now_ms))
    one.hear(CapabilitiesChanged(True, True, one.now_ms))
    assert (one.phase(), one.requests()) == (Phase.STALE, [])
