"""What the link does to a catalog: lost links, versions, partitions, coverage."""

import pytest

from relist.effects import DoubtList
from relist.inputs import CapabilitiesChanged
from relist.machine import Hit
from relist.values import Doubt, Era, Kind, Phase, Scope
from support.one import One, fresh, policy, walking

rule = pytest.mark.rule


@rule("AUTH-11")
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


@rule("DISC-31")
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


@rule("CAP-18")
def test_what_a_new_link_declares_holds_also_where_the_list_is_kept() -> None:
    one = fresh(covered=False, ttl_ms=10**6)
    assert one.catalog.standing.push
    one.lose()
    one.link()
    one.allow(push=False)
    assert one.phase() is Phase.FRESH
    assert not one.catalog.standing.push


@rule("ATOM-22")
def test_a_list_that_was_held_back_goes_with_its_link() -> None:
    one = walking()
    one.notice()
    one.page("a")
    assert one.catalog.candidate is not None
    one.lose()
    assert one.catalog.candidate is None


@rule("CAP-18")
def test_an_offer_as_before_leaves_the_same_state_object() -> None:
    one = fresh()
    before = one.catalog
    one.hear(CapabilitiesChanged(True, True, one.now_ms))
    assert one.catalog is before
    one.hear(CapabilitiesChanged(True, False, one.now_ms))
    assert not one.catalog.standing.push


@rule("REC-08")
def test_a_lazy_list_of_another_version_is_told_to_be_doubted() -> None:
    one = fresh(covered=False, ttl_ms=10**6)
    one.policy = policy(lazy=True)
    one.lose()
    one.link()
    one.allow(version="2027-01-01")
    assert (one.phase(), one.doubt) == (Phase.STALE, Doubt.UNVOUCHED)
    assert one.told == (DoubtList(Kind.TOOLS, Doubt.UNVOUCHED),)


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


@rule("AUTH-05")
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
