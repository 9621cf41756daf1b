"""When walks begin: windows, gaps, backoff, parking, wishes, storms (decisions 2, 3 and 9)."""

from collections.abc import Callable

import pytest

from relist.machine import Hit
from relist.values import Doubt, Era, Failure, Phase, Scope
from support.one import METHOD_NOT_FOUND, TRANSIENT, UNAUTHORIZED, One, fresh, policy, walking

rule = pytest.mark.rule


# --- windows and gaps -----------------------------------------------------------------------------


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


# --- parking --------------------------------------------------------------------------------------


def parked() -> One:
    one = fresh(scope=Scope.PRIVATE)
    one.refresh()
    one.fail(UNAUTHORIZED)
    assert one.phase() is Phase.STALE
    assert one.catalog.pacing.parked
    return one


@rule("FAIL-04")
def test_an_authorization_failure_parks() -> None:
    one = parked()
    assert one.deadline_ms is None
    assert one.names == ["a", "b"]
    one.later(10**9)
    for ask in (one.tick, one.notice, one.read, one.tick):
        ask()
        assert one.requests() == []


@rule("FAIL-04")
def test_a_new_link_does_not_unpark() -> None:
    one = parked()
    one.lose()
    one.link()
    one.cover()
    one.allow()
    assert one.phase() is Phase.STALE
    assert one.requests() == []


@rule("FAIL-06")
def test_other_credentials_unpark() -> None:
    one = parked()
    one.credentials("B")
    one.allow()
    assert len(one.requests()) == 1


@rule("FAIL-04")
def test_an_explicit_refresh_is_one_try() -> None:
    one = parked()
    one.refresh()
    assert len(one.requests()) == 1
    one.fail(UNAUTHORIZED)
    assert one.catalog.pacing.parked
    assert one.deadline_ms is None


# --- wishes ---------------------------------------------------------------------------------------


@rule("ATOM-24")
def test_a_refresh_during_a_walk_begins_one_more_afterwards() -> None:
    one = fresh()
    one.refresh()
    one.refresh()
    one.refresh()
    assert one.requests() == []
    one.page("a", "b")
    assert len(one.publications()) == 1
    assert len(one.requests()) == 1
    assert one.phase() is Phase.REFRESHING
    one.page("a", "b")
    assert one.phase() is Phase.FRESH


@rule("ATOM-24")
@pytest.mark.parametrize("failure", [TRANSIENT, UNAUTHORIZED])
def test_a_refresh_during_a_walk_survives_its_failure(failure: Failure) -> None:
    one = fresh()
    one.refresh()
    one.refresh()
    one.fail(failure)
    assert one.catalog.wanted


@rule("ATOM-07")
def test_a_read_joins_the_open_walk() -> None:
    one = fresh()
    one.refresh()
    before = one.catalog
    one.read()
    assert one.catalog is before
    one.page("a", "b")
    assert one.phase() is Phase.FRESH
    assert one.requests() == []


@pytest.mark.parametrize("ask", [One.read, One.refresh])
def test_a_wish_without_a_link_is_remembered(ask: Callable[[One], None]) -> None:
    """Even where the kept list would hold and nobody would list by himself."""
    one = _lazy_kept()
    ask(one)
    assert one.requests() == []
    one.link()
    one.allow()
    assert len(one.requests()) == 1


def _lazy_kept() -> One:
    one = One(policy(lazy=True))
    one.link()
    one.allow()
    one.read()
    one.page("a", "b")
    assert one.phase() is Phase.FRESH
    one.lose()
    return one


def test_a_wish_whose_walk_was_cut_off_is_remembered() -> None:
    one = _lazy_kept()
    one.link()
    one.allow()
    assert one.phase() is Phase.FRESH
    one.refresh()
    assert one.catalog.walk is not None
    one.lose()
    assert one.catalog.wanted
    one.link()
    one.allow()
    assert len(one.requests()) == 1


def test_lazy_lists_on_the_next_read_only() -> None:
    one = One(policy(lazy=True))
    one.link()
    one.cover()
    one.allow()
    assert one.phase() is Phase.STALE
    assert one.deadline_ms is None
    one.read()
    one.page("a")
    one.later(1_000)
    one.notice()
    assert one.deadline_ms is None
    one.later(1_000)
    one.tick()
    assert one.requests() == []
    one.read()
    assert len(one.requests()) == 1


def test_lazy_waits_for_the_window() -> None:
    one = One(policy(lazy=True, gather_ms=80))
    one.link()
    one.cover()
    one.allow()
    one.read()
    one.page("a")
    one.later(1_000)
    one.notice()
    one.read()
    assert one.requests() == []
    assert one.wake() == 80
    assert len(one.requests()) == 1


# --- links, versions, partitions ------------------------------------------------------------------


@rule("REC-02")
def test_a_legacy_list_is_doubted_when_the_link_is_lost_and_listed_again() -> None:
    one = fresh(era=Era.LEGACY, covered=False)
    one.lose()
    assert one.look().hit is Hit.DOUBTED
    assert one.doubt is Doubt.DISCONNECTED
    one.link()
    one.allow()
    assert len(one.requests()) == 1
    assert one.names == ["a", "b"]


@rule("REC-05")
def test_a_modern_list_that_rests_on_its_lifetime_survives() -> None:
    one = fresh(covered=False, ttl_ms=10**6)
    before = one.snapshot
    one.lose()
    assert one.look().hit is Hit.HIT
    one.link()
    one.allow()
    assert one.phase() is Phase.FRESH
    assert one.requests() == []
    assert one.snapshot is before


@rule("REC-06")
def test_a_modern_list_that_push_vouched_for_does_not() -> None:
    one = fresh(covered=True, ttl_ms=10**6)
    one.lose()
    assert one.doubt is Doubt.DISCONNECTED
    one.link()
    one.cover()
    one.allow()
    assert len(one.requests()) == 1


@rule("REC-08")
def test_another_version_is_another_list() -> None:
    one = fresh(covered=False, ttl_ms=10**6)
    one.lose()
    one.link()
    one.allow(version="2027-01-01")
    assert one.doubt is Doubt.UNVOUCHED
    assert len(one.requests()) == 1


@rule("AUTH-03")
@rule("AUTH-06")
def test_other_credentials_withdraw_what_is_private_and_abandon_the_walk() -> None:
    one = fresh(scope=Scope.PRIVATE)
    one.refresh()
    one.credentials("B")
    assert [type(told).__name__ for told in one.told][:1] == ["AbandonWalk"]
    assert "Withdraw" in [type(told).__name__ for told in one.told]
    assert one.look().hit is Hit.MISS
    assert one.phase() is Phase.INITIALIZING


@rule("AUTH-03")
def test_a_public_list_stays() -> None:
    one = fresh(scope=Scope.PUBLIC)
    one.credentials("B")
    assert one.names == ["a", "b"]


@rule("ATOM-12")
@rule("AUTH-03")
def test_there_and_back_again_confuses_nothing() -> None:
    """A -> B -> A: an answer asked for under the first A is late under the second."""
    one = fresh(scope=Scope.PRIVATE)
    one.refresh()
    old = one.catalog.serial
    for partition in ("B", "A"):
        one.credentials(partition)
        one.allow()
    before = one.catalog
    one.page("stolen", serial=old)
    assert one.catalog is before
    assert one.notes() == ["ATOM-13"]
    one.page("a", "b", scope=Scope.PRIVATE)
    assert one.snapshot.generation == 2
    assert one.snapshot.partition == "A"


# --- coverage -------------------------------------------------------------------------------------


@rule("SUB-27")
def test_push_that_begins_after_the_listing_does_not_vouch_for_it() -> None:
    one = fresh(covered=False)
    one.cover()
    assert one.phase() is Phase.STALE
    assert one.doubt is Doubt.UNVOUCHED
    one.wake()
    one.page("a", "b")
    assert one.catalog.vouched


@rule("SUB-27")
def test_push_that_begins_during_a_walk_spoils_it() -> None:
    one = walking(covered=False)
    one.cover()
    one.page("a")
    assert one.phase() is Phase.STALE
    assert not one.catalog.vouched


@rule("SUB-28")
@rule("REC-06")
def test_push_that_ends_doubts_the_list_and_waits_a_grace_for_its_return() -> None:
    one = fresh()
    one.uncover()
    assert one.doubt is Doubt.UNCOVERED
    assert not one.catalog.vouched
    assert one.deadline_ms == one.now_ms + one.policy.uncovered_grace_ms
    one.later(100)
    one.cover()
    assert one.wake() == one.policy.gather_ms
    one.page("a", "b")
    assert one.catalog.vouched


def test_returning_push_does_not_shorten_a_failure_backoff() -> None:
    one = fresh()
    one.refresh()
    one.fail()
    one.uncover()
    due = one.deadline_ms
    one.cover()
    assert one.deadline_ms == due


@rule("CAP-19")
def test_a_notice_that_was_not_declared_starts_nothing() -> None:
    one = One()
    one.link()
    one.allow(push=False)
    one.page("a")
    one.notice()
    assert one.phase() is Phase.FRESH
    assert one.notes() == ["CAP-19"]


@rule("NOTE-12")
def test_a_notice_before_listing_is_allowed_is_remembered() -> None:
    one = fresh(covered=False, ttl_ms=10**6)
    one.lose()
    one.link()
    one.notice()
    assert one.doubt is Doubt.NOTICED
    one.allow()
    assert len(one.requests()) == 1
