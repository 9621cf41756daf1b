"""``step`` and ``read``: late answers, proofs, the table of what a reader gets."""

import pickle

import pytest
from attrs import evolve

from relist import inputs
from relist.machine import Hit, deadline_ms, read, step
from relist.values import Doubt, Kind, Phase, Scope, Snapshot, new_catalog
from support.one import One, fresh, items, policy, walking

rule = pytest.mark.rule


@rule("FAIL-12")
@rule("ATOM-11")
@rule("ATOM-13")
def test_a_late_answer_changes_nothing_in_any_phase() -> None:
    one = walking()
    serial = one.catalog.serial
    one.page("a")
    for change in (lambda: None, one.notice, one.wake, one.lose, one.link, one.allow):
        change()
        before = one.catalog
        one.page("late", serial=serial)
        assert one.catalog is before
        assert one.notes() == ["ATOM-13"]
        one.fail(serial=serial)
        assert one.catalog is before
        assert one.notes() == ["ATOM-13"]


@rule("ATOM-13")
def test_the_answer_to_a_request_that_timed_out_does_not_win() -> None:
    one = fresh(policy(request_limit_ms=300))
    one.refresh()
    old = one.catalog.serial
    one.wake()
    one.wake()
    one.page("new")
    one.page("old", serial=old)
    assert one.names == ["new"]


@rule("ATOM-13")
def test_the_same_answer_twice_counts_once() -> None:
    one = walking()
    serial = one.catalog.serial
    one.page("a", more="x")
    one.page("a", more="x", serial=serial)
    assert one.requests() == []
    one.page("b")
    assert one.names == ["a", "b"]


def test_a_proof_about_the_published_list_skips_the_window() -> None:
    one = fresh()
    one.prove(one.snapshot.generation)
    assert one.doubt is Doubt.SUSPECTED
    assert one.wake() == 0
    assert len(one.requests()) == 1


def test_a_proof_about_an_older_list_proves_nothing() -> None:
    one = fresh()
    one.refresh()
    one.page("c")
    before = one.catalog
    one.prove(1)
    assert one.catalog is before


@rule("ATOM-25")
def test_a_notice_counts_no_generation() -> None:
    one = fresh()
    before = one.catalog.generation
    one.notice()
    assert one.catalog.generation == before
    one.wake()
    one.page("c")
    assert one.catalog.generation == before + 1


def test_the_first_doubt_is_kept() -> None:
    one = fresh()
    one.notice()
    one.uncover()
    one.prove(1)
    one.wake()
    one.fail()
    assert one.doubt is Doubt.NOTICED
    one.wake()
    one.page("a", "b")
    assert one.doubt is None


def test_spurious_ticks_are_harmless() -> None:
    for one in (One(), walking(), fresh()):
        before = one.catalog
        one.tick()
        assert one.catalog is before
        assert one.told == ()


def test_states_are_values() -> None:
    one = fresh()
    one.refresh()
    copy = pickle.loads(pickle.dumps(one.catalog))
    assert copy == one.catalog
    assert hash(copy) == hash(one.catalog)


@rule("STATE-01")
@rule("STATE-11")
def test_the_way_up() -> None:
    one = One()
    met = [one.phase()]
    for act in (one.link, one.allow, lambda: one.page("a")):
        act()
        met.append(one.phase())
    assert met == [Phase.DISCONNECTED, Phase.INITIALIZING, Phase.DISCOVERING, Phase.FRESH]


@rule("STATE-04")
def test_a_replaced_link_begins_anew_in_any_phase() -> None:
    for phase in Phase:
        catalog = evolve(fresh().catalog, phase=phase)
        stepped = step(catalog, inputs.LinkOpened(7, 0), policy())
        assert (stepped.state.phase, stepped.state.standing.epoch) == (Phase.INITIALIZING, 7)


@rule("ATOM-18")
def test_during_a_refresh_the_old_list_is_there() -> None:
    one = fresh()
    one.refresh()
    one.page("c", more="x")
    assert one.phase() is Phase.REFRESHING
    assert one.names == ["a", "b"]


# --- read: phase x snapshot x expiry --------------------------------------------------------------

SNAPSHOT = Snapshot(
    items=items("a"),
    generation=1,
    scope=Scope.PUBLIC,
    version="2026-07-28",
    partition="",
    epoch=1,
    walk=1,
    listed_at_ms=1_000,
    expires_at_ms=2_000,
    clean=True,
    ambiguous=frozenset(),
)


@rule("FAIL-16")
@rule("NOTE-25")
@rule("STATE-12")
@rule("TTL-02")
@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("doubt", [None, *Doubt])
@pytest.mark.parametrize("now_ms", [1_500, 1_999, 2_000, 9_000])
@pytest.mark.parametrize("held", [None, SNAPSHOT])
def test_what_a_reader_gets(
    phase: Phase, doubt: Doubt | None, now_ms: int, held: Snapshot | None
) -> None:
    catalog = evolve(new_catalog(Kind.TOOLS), phase=phase, doubt=doubt, snapshot=held)
    reading = read(catalog, now_ms)
    if phase is Phase.UNSUPPORTED:
        assert (reading.hit, reading.snapshot) == (Hit.UNSUPPORTED, None)
    elif held is None:
        assert (reading.hit, reading.snapshot, reading.age_ms) == (Hit.MISS, None, None)
    else:
        expected = Hit.DOUBTED if doubt else Hit.EXPIRED if now_ms >= 2_000 else Hit.HIT
        assert (reading.hit, reading.doubt) == (expected, doubt)
        assert reading.snapshot is held
        assert reading.age_ms == now_ms - 1_000


@rule("STATE-10")
@rule("STATE-12")
def test_never_listed_is_not_empty() -> None:
    failed = walking()
    failed.fail()
    assert failed.phase() is Phase.STALE
    assert failed.look().hit is Hit.MISS
    empty = walking()
    empty.page()
    assert empty.look().hit is Hit.HIT
    assert empty.snapshot.items == ()


def test_only_what_waits_has_a_deadline() -> None:
    rules = policy()
    assert deadline_ms(new_catalog(Kind.TOOLS), rules) is None
    one = walking()
    assert one.deadline_ms == one.now_ms + rules.request_limit_ms
    one.page("a")
    assert one.deadline_ms is None
