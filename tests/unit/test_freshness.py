"""Lifetimes: when a list expires, and that expiry alone starts nothing."""

import pytest
from attrs import evolve

from relist.freshness import earliest, lifetime_ms, snapshot_deadline_ms
from relist.machine import Hit
from relist.rules.base import open_walk
from relist.values import Era, Phase
from support.one import fresh, policy, walking

rule = pytest.mark.rule


@rule("STATE-06")
@rule("TTL-15")
@rule("TTL-16")
@rule("TTL-02")
@pytest.mark.parametrize("covered", [True, False])
def test_fresh_strictly_before_the_deadline(covered: bool) -> None:
    one = walking(covered=covered)
    one.page("a", ttl_ms=100)
    one.later(99)
    assert one.look().hit is Hit.HIT
    one.later(1)
    assert one.look().hit is Hit.EXPIRED
    assert one.phase() is Phase.FRESH


@rule("STATE-08")
@rule("TTL-09")
@rule("TTL-29")
@rule("TTL-31")
@rule("TTL-05")
@rule("TTL-10")
def test_expiry_alone_starts_nothing() -> None:
    one = walking()
    one.page("a", ttl_ms=100)
    assert one.deadline_ms is None
    one.later(10_000)
    before = one.catalog
    one.tick()
    assert one.catalog is before
    assert one.told == ()
    one.read()
    assert len(one.requests()) == 1
    assert one.phase() is Phase.REFRESHING


@rule("TTL-05")
def test_a_read_within_the_lifetime_costs_nothing() -> None:
    one = walking()
    one.page("a", ttl_ms=100)
    one.later(99)
    before = one.catalog
    one.read()
    assert one.catalog is before
    assert one.told == ()


@rule("TTL-04")
@rule("TTL-08")
@pytest.mark.parametrize("ttl_ms", [0, -1, -(10**30)])
def test_zero_and_negative_expire_at_once_and_are_fresh(ttl_ms: int) -> None:
    one = walking()
    one.page("a", ttl_ms=ttl_ms)
    assert one.phase() is Phase.FRESH
    assert one.look().hit is Hit.EXPIRED
    one.read()
    assert len(one.requests()) == 1


@rule("TTL-06")
def test_absent_lives_as_long_as_push_vouches_for_it() -> None:
    one = fresh(covered=True)
    one.later(10**9)
    assert one.look().hit is Hit.HIT
    assert one.catalog.vouched


@rule("CAP-07")
@rule("TTL-06")
def test_absent_without_push_lives_as_long_as_policy_says() -> None:
    one = fresh(policy(unvouched_lifetime_ms=700), covered=False)  # listed 500 ms ago
    one.later(199)
    assert one.look().hit is Hit.HIT
    one.later(1)
    assert one.look().hit is Hit.EXPIRED


def test_policy_may_let_it_live_for_ever() -> None:
    one = fresh(policy(unvouched_lifetime_ms=None), covered=False)
    one.later(10**9)
    assert one.look().hit is Hit.HIT


@rule("TTL-17")
@rule("TTL-03")
@rule("TTL-20")
def test_the_earliest_page_counts_from_its_own_receipt() -> None:
    one = walking()
    one.page("a", more="x", ttl_ms=100)
    one.later(60)
    one.page("b", ttl_ms=1_000)
    assert one.snapshot.expires_at_ms == 1_100


@rule("TTL-20")
def test_a_bare_page_among_others() -> None:
    one = walking(policy(unvouched_lifetime_ms=50), covered=False)
    one.page("a", more="x")
    one.later(10)
    one.page("b", ttl_ms=1_000)
    assert one.snapshot.expires_at_ms == 1_050
    vouched = walking()
    vouched.page("a", more="x")
    vouched.page("b", ttl_ms=1_000)
    assert vouched.snapshot.expires_at_ms == 2_000


@rule("TTL-32")
def test_a_legacy_lifetime_means_nothing() -> None:
    one = walking(era=Era.LEGACY)
    one.page("a", ttl_ms=1)
    assert one.snapshot.expires_at_ms is None


@rule("TTL-07")
def test_a_lifetime_is_capped() -> None:
    one = walking(policy(ttl_max_ms=500))
    one.page("a", ttl_ms=10**12)
    assert one.snapshot.expires_at_ms == 1_500


@rule("TTL-08")
@pytest.mark.parametrize(
    ("raw", "safe"),
    [(None, None), (0, 0), (-5, 0), (7, 7), (True, 0), (1.5, 0), ("9", 0), (10**40, 86_400_000)],
)
def test_any_raw_value_becomes_a_safe_lifetime(raw: object, safe: int | None) -> None:
    assert lifetime_ms(raw, policy()) == safe


@pytest.mark.parametrize(
    ("one", "other", "first"),
    [
        (None, None, None),
        (1, None, 1),
        (None, 1, 1),
        (2, 1, 1),
        (1, 2, 1),
        (0, None, 0),
    ],
)
def test_never_is_later_than_anything(
    one: int | None, other: int | None, first: int | None
) -> None:
    assert earliest(one, other) == first


@rule("TTL-36")
@rule("TTL-11")
def test_polling_is_opt_in_and_has_its_own_period() -> None:
    one = fresh(policy(poll_ms=2_000), ttl_ms=1)
    assert one.wake() == 1_500
    assert len(one.requests()) == 1
    assert one.phase() is Phase.REFRESHING


@rule("TTL-11")
def test_polls_are_spread_by_jitter() -> None:
    rules = policy(poll_ms=2_000, jitter_percent=50)
    polls = {rules.next_poll_ms(500, "tools", serial) for serial in range(40)}
    assert len(polls) > 20
    assert all(at_ms is not None and 1_500 <= at_ms <= 2_500 for at_ms in polls)


@rule("TTL-11")
def test_polling_goes_on_when_a_kept_list_holds_on_a_new_link() -> None:
    one = fresh(policy(poll_ms=2_000), covered=False, ttl_ms=10**6)
    one.lose()
    one.link()
    one.allow()
    assert one.phase() is Phase.FRESH
    assert one.wake() == 2_000
    assert len(one.requests()) == 1


@rule("TTL-32")
def test_what_a_legacy_page_says_of_its_lifetime_is_as_nothing() -> None:
    one = fresh(policy(unvouched_lifetime_ms=50), era=Era.LEGACY, covered=False, ttl_ms=1)
    assert one.snapshot.expires_at_ms == one.snapshot.listed_at_ms + 50
    walk = evolve(open_walk(walking().catalog), expires_at_ms=7)
    assert snapshot_deadline_ms(walk, Era.LEGACY, True, one.policy) is None
    assert snapshot_deadline_ms(walk, Era.MODERN, True, one.policy) == 7


@rule("TTL-03")
@rule("TTL-06")
def test_the_earliest_end_of_any_page_is_that_of_the_list() -> None:
    for named_ms, expires_ms in ((5, 5), (500, 60)):
        one = walking(policy(unvouched_lifetime_ms=50), covered=False)
        one.page("a", ttl_ms=named_ms, more="x")
        one.later(10)
        one.page("b", more="y")
        one.later(10)
        one.page("c")
        assert one.snapshot.expires_at_ms == 1_000 + expires_ms


@rule("TTL-06")
def test_push_that_began_within_the_walk_vouches_for_no_lifetime() -> None:
    one = walking(policy(unvouched_lifetime_ms=50, spoiled_in_row_max=1), covered=False)
    one.cover()
    one.page("a")
    assert not one.snapshot.clean
    assert one.snapshot.expires_at_ms == one.now_ms + 50
