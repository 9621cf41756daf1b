"""Parking, and what callers ask for: reads, refreshes, lazy policy (decision 0012)."""

from collections.abc import Callable

import pytest

from relist.rules.base import stronger
from relist.values import Doubt, Failure, Phase, Scope, Wish
from support.one import REFUSED, TRANSIENT, UNAUTHORIZED, One, fresh, policy

rule = pytest.mark.rule


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


@rule("FAIL-04")
def test_a_try_that_fails_otherwise_does_not_unpark() -> None:
    one = parked()
    one.refresh()
    one.fail(TRANSIENT)
    assert one.catalog.pacing.parked
    assert one.deadline_ms is None


@rule("FAIL-04")
def test_a_try_that_is_answered_unparks() -> None:
    one = parked()
    one.refresh()
    one.page("a")
    assert not one.catalog.pacing.parked


@rule("ATOM-24")
def test_a_refresh_during_the_try_gets_its_own() -> None:
    one = parked()
    one.refresh()
    one.refresh()
    one.fail(TRANSIENT)
    one.tick()
    assert len(one.requests()) == 1


@rule("FAIL-04")
@pytest.mark.parametrize("ask", [One.read, One.verify])
def test_a_parked_catalog_stays_so_over_a_new_link_though_read(ask: Callable[[One], None]) -> None:
    one = parked()
    ask(one)
    one.lose()
    ask(one)
    one.link()
    one.allow()
    assert one.requests() == []
    assert one.deadline_ms is None


@rule("FAIL-19")
def test_what_repeating_does_not_mend_is_not_repeated() -> None:
    one = fresh()
    one.refresh()
    one.fail(REFUSED)
    assert one.notes() == ["FAIL-19"]
    assert (one.doubt, one.names) == (Doubt.FAILED, ["a", "b"])
    assert one.deadline_ms is None
    one.later(10**9)
    for ask in (one.tick, one.notice, one.read, one.verify, one.tick):
        ask()
        assert one.requests() == []
    one.refresh()
    assert len(one.requests()) == 1


@rule("FAIL-19")
def test_a_new_link_may_mend_it() -> None:
    one = fresh()
    one.refresh()
    one.fail(REFUSED)
    one.lose()
    one.link()
    one.allow()
    assert len(one.requests()) == 1


def test_a_lazy_catalog_that_failed_before_the_link_went_is_verified_after_it() -> None:
    one = _lazy_kept()
    one.link()
    one.allow()
    one.refresh()
    one.fail(TRANSIENT)
    one.lose()
    one.link()
    one.allow()
    assert one.requests() == []
    one.verify()
    assert len(one.requests()) == 1


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
    assert one.requests() == []
    one.tick()
    assert len(one.requests()) == 1
    one.fail(failure)
    one.tick()
    assert one.requests() == []


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


@pytest.mark.parametrize("ask", [One.verify, One.refresh])
def test_a_wish_without_a_link_is_remembered(ask: Callable[[One], None]) -> None:
    """Even where the kept list would hold and nobody would list by himself."""
    one = _lazy_kept()
    ask(one)
    assert one.requests() == []
    one.link()
    one.allow()
    assert len(one.requests()) == 1


@rule("REC-05")
def test_a_read_without_a_link_is_served_by_a_list_that_holds() -> None:
    one = _lazy_kept()
    one.read()
    one.link()
    one.allow()
    assert one.requests() == []
    assert one.phase() is Phase.FRESH
    assert one.catalog.wanted is None


@rule("TTL-09")
def test_a_read_without_a_link_is_not_served_by_an_expired_list() -> None:
    one = _lazy_kept()
    one.read()
    expires_at_ms = one.snapshot.expires_at_ms
    assert expires_at_ms is not None
    one.later(expires_at_ms - one.now_ms)
    one.link()
    one.allow()
    assert len(one.requests()) == 1


@rule("FAIL-04")
def test_an_explicit_refresh_is_one_try_on_a_new_link_too() -> None:
    one = parked()
    one.lose()
    one.refresh()
    one.link()
    one.allow()
    assert len(one.requests()) == 1
    assert one.catalog.pacing.parked is not None


@rule("FAIL-06")
def test_other_credentials_begin_the_backoff_anew() -> None:
    one = fresh(scope=Scope.PRIVATE)
    one.refresh()
    for _ in range(3):
        one.fail(TRANSIENT)
        one.wake()
    one.credentials("B")
    one.allow()
    one.fail(TRANSIENT)
    assert one.wake() == one.policy.backoff_base_ms


# --- verification ---------------------------------------------------------------------------------


@rule("CALL-05")
def test_a_verification_skips_window_and_gap() -> None:
    one = fresh()
    one.notice()
    assert one.requests() == []
    one.verify()
    assert len(one.requests()) == 1


@rule("CALL-05")
def test_a_verification_of_an_undoubted_list_walks() -> None:
    one = fresh()
    one.verify()
    assert len(one.requests()) == 1
    assert one.phase() is Phase.REFRESHING


@rule("CALL-05")
def test_a_verification_is_not_met_by_the_open_walk() -> None:
    one = fresh()
    one.refresh()
    one.verify()
    one.page("a", "b")
    assert len(one.publications()) == 1
    assert len(one.requests()) == 1


@rule("FAIL-20")
def test_a_verification_does_not_break_a_failure_backoff() -> None:
    one = fresh()
    one.refresh()
    one.fail(TRANSIENT)
    due_ms = one.deadline_ms
    one.verify()
    assert one.requests() == []
    assert one.deadline_ms == due_ms
    assert due_ms is not None
    one.later(due_ms - one.now_ms)
    one.verify()
    assert len(one.requests()) == 1


@rule("FAIL-20")
def test_a_verification_during_a_walk_waits_for_the_backoff_after_it() -> None:
    one = fresh()
    one.refresh()
    one.verify()
    one.fail(TRANSIENT)
    assert one.deadline_ms is not None
    assert one.deadline_ms > one.now_ms
    assert one.catalog.wanted is Wish.VERIFY


@rule("FAIL-04")
def test_a_verification_does_not_unpark() -> None:
    one = parked()
    one.verify()
    assert one.requests() == []
    one.credentials("A")
    one.allow()
    assert len(one.requests()) == 1


def test_the_stronger_wish_is_kept() -> None:
    one = _lazy_kept()
    one.refresh()
    before = one.catalog
    one.verify()
    one.read()
    assert one.catalog is before
    assert one.catalog.wanted is Wish.REFRESH


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


@rule("ATOM-24")
def test_the_wish_that_an_abandoned_walk_served_comes_back_also_after_a_page() -> None:
    one = fresh()
    one.refresh()
    one.page("a", more="x")
    one.lose()
    assert one.catalog.wanted is Wish.REFRESH


@pytest.mark.parametrize("one", [None, *Wish])
@pytest.mark.parametrize("other", [None, *Wish])
def test_the_stronger_wish_serves_both(one: Wish | None, other: Wish | None) -> None:
    both = [wish for wish in (one, other) if wish is not None]
    assert stronger(one, other) is max(both, key=lambda wish: wish.value, default=None)


@rule("REC-05")
def test_a_list_that_is_walked_for_a_call_only_is_not_doubted() -> None:
    one = fresh(covered=False, ttl_ms=10**6)
    one.lose()
    one.verify()
    one.link()
    one.allow()
    assert (one.phase(), one.doubt) == (Phase.DISCOVERING, None)
    assert len(one.told) == 1
