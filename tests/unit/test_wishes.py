"""Parking, and what callers ask for: reads, refreshes, lazy policy (decisions 3 and 9)."""

from collections.abc import Callable

import pytest

from relist.values import Failure, Phase, Scope
from support.one import TRANSIENT, UNAUTHORIZED, One, fresh, policy

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
