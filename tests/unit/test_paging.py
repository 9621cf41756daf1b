"""Walks: cursors, bounds, joining."""

import pytest
from attrs import evolve

from relist.paging import join
from relist.values import Phase
from support.one import INVALID_PARAMS, items, policy, walking

rule = pytest.mark.rule


@rule("DISC-04")
@rule("DISC-05")
def test_the_empty_string_is_a_cursor() -> None:
    one = walking()
    one.page("a", more="")
    (request,) = one.requests()
    assert request.cursor == ""
    assert one.phase() is Phase.DISCOVERING
    one.page("b")
    assert one.names == ["a", "b"]


@rule("DISC-07")
@rule("DISC-09")
@rule("DISC-02")
def test_the_first_request_has_no_cursor_and_cursors_come_back_unchanged() -> None:
    one = walking()
    (request,) = one.requests()
    assert request.cursor is None
    for cursor in ("x", "  ", "null", "x"):
        one.page(more=cursor)
        (request,) = one.requests()
        assert request.cursor == cursor


@rule("ATOM-15")
@rule("ATOM-24")
def test_pages_forget_neither_the_list_held_back_nor_who_asked() -> None:
    one = walking(policy(spoiled_in_row_max=2))
    one.notice()
    one.page("a")
    one.refresh()
    one.refresh()
    one.page("b", more="x")
    one.fail(INVALID_PARAMS)
    assert one.names == ["a"]
    assert one.wake() == 0


@rule("FAIL-03")
def test_a_dead_cursor_that_counts_as_a_failure_may_say_when_to_ask_again() -> None:
    one = walking(policy(spoiled_in_row_max=1))
    one.page("a", more="x")
    one.fail(evolve(INVALID_PARAMS, retry_after_ms=7_000))
    assert one.wake() == 7_000


@rule("DISC-08")
def test_a_repeated_cursor_does_not_end_a_walk() -> None:
    one = walking()
    for _ in range(3):
        one.page("a", more="same")
        assert one.phase() is Phase.DISCOVERING
    one.page("b")
    assert one.names == ["a", "b"]


@rule("DISC-16")
@rule("DISC-17")
def test_an_endless_chain_is_a_failed_walk_and_publishes_nothing() -> None:
    one = walking(policy(pages_max=3))
    one.page("a", more="1")
    one.page("b", more="2")
    one.page("c", more="3")
    assert one.phase() is Phase.STALE
    assert one.catalog.snapshot is None
    assert one.publications() == []
    assert one.notes() == ["DISC-16"]
    assert one.catalog.pacing.failures == 1


@rule("DISC-03")
@rule("DISC-10")
@rule("DISC-16")
def test_as_many_pages_as_the_bound_are_fine_if_the_last_ends_the_walk() -> None:
    one = walking(policy(pages_max=3))
    one.page("a", more="1")
    one.page("b", more="2")
    one.page("c")
    assert one.phase() is Phase.FRESH


@rule("DISC-16")
def test_items_are_bounded_even_on_the_last_page() -> None:
    one = walking(policy(items_max=3))
    one.page("a", "b", more="1")
    one.page("c", "d")
    assert one.phase() is Phase.STALE
    assert one.notes() == ["DISC-16"]
    exact = walking(policy(items_max=3))
    exact.page("a", "b", "c")
    assert exact.phase() is Phase.FRESH


@rule("DISC-16")
def test_bytes_are_bounded_even_on_the_last_page() -> None:
    """Of keys and canonical JSON: an item of these tests is as long as twice its name."""
    one = walking(policy(bytes_max=8))
    one.page("aa", more="1")
    one.page("bb", "c")
    assert one.phase() is Phase.STALE
    assert one.notes() == ["DISC-16"]
    exact = walking(policy(bytes_max=8))
    exact.page("aa", more="1")
    exact.page("bb")
    assert exact.phase() is Phase.FRESH


@rule("DISC-16")
def test_a_cursor_is_no_longer_than_a_list() -> None:
    one = walking(policy(bytes_max=8))
    one.page("a", more="x" * 8)
    assert one.phase() is Phase.DISCOVERING
    one.page("b", more="x" * 9)
    assert one.phase() is Phase.STALE
    assert one.notes() == ["DISC-16"]


@rule("DISC-16")
@rule("FAIL-09")
def test_the_whole_walk_has_a_limit_of_its_own() -> None:
    one = walking(policy(request_limit_ms=100, walk_limit_ms=150))
    one.later(90)
    one.page("a", more="1")
    assert one.wake() == 60
    assert one.phase() is Phase.STALE
    assert [told.serial for told in one.abandoned()] == [2]


@rule("DISC-12")
@rule("DISC-13")
@rule("FAIL-23")
def test_a_dead_cursor_starts_the_walk_over_without_backoff() -> None:
    one = walking()
    one.page("a", more="x")
    one.fail(INVALID_PARAMS)
    assert one.phase() is Phase.STALE
    assert one.catalog.pacing.failures == 0
    assert one.wake() == one.policy.gap_base_ms
    (request,) = one.requests()
    assert request.cursor is None
    one.page("b")
    assert one.names == ["b"]


@rule("DISC-15")
@rule("DISC-12")
def test_dead_cursors_in_a_row_become_failures() -> None:
    """There is no complete candidate to publish, so the walk backs off."""
    one = walking()
    for _ in range(one.policy.spoiled_in_row_max):
        one.page("a", more="x")
        one.fail(INVALID_PARAMS)
        one.wake()
    assert one.catalog.pacing.failures == 1
    assert one.catalog.snapshot is None


@rule("DISC-14")
def test_invalid_params_without_a_cursor_is_an_ordinary_failure() -> None:
    one = walking()
    one.fail(INVALID_PARAMS)
    assert one.catalog.pacing.failures == 1
    assert one.catalog.pacing.spoiled_in_row == 0


@rule("DISC-19")
def test_equal_duplicates_are_kept_once() -> None:
    one = walking()
    one.page("a", "b", more="x")
    one.page("b", "c")
    assert one.phase() is Phase.FRESH
    assert one.names == ["a", "b", "c"]
    assert one.snapshot.ambiguous == frozenset()


@rule("DISC-20")
def test_conflicting_duplicates_are_walked_again_and_then_named() -> None:
    """Neither the later nor the earlier one silently wins (D-09)."""
    one = walking()
    for _ in range(one.policy.spoiled_in_row_max - 1):
        one.page("a@1", "a@2", "b")
        assert one.phase() is Phase.STALE
        assert one.catalog.snapshot is None
        one.wake()
    one.page("a@1", "a@2", "b")
    assert one.phase() is Phase.FRESH
    assert one.snapshot.ambiguous == {"a"}
    assert one.names == ["a@1", "b"]


@rule("DISC-20")
def test_a_conflict_that_is_known_needs_no_further_walks() -> None:
    one = walking(policy(spoiled_in_row_max=1))
    one.page("a@1", "a@2")
    assert one.phase() is Phase.FRESH
    one.later(1_000)
    one.refresh()
    one.page("a@1", "a@2")
    assert one.phase() is Phase.FRESH
    (publish,) = one.publications()
    assert not publish.changed


@rule("DISC-20")
def test_a_conflict_that_goes_away_leaves_no_mark() -> None:
    one = walking()
    one.page("a@1", "a@2")
    one.wake()
    one.page("a@2")
    assert one.phase() is Phase.FRESH
    assert one.snapshot.ambiguous == frozenset()


def test_join_keeps_the_order_received() -> None:
    pages = (items("b", "a"), (), items("a", "c@1"), items("c@2"))
    listing = join(pages)
    assert [entry.key for entry in listing.items] == ["b", "a", "c"]
    assert listing.ambiguous == {"c"}


@rule("DISC-28")
def test_keys_that_differ_in_case_differ() -> None:
    assert join((items("a", "A"),)) == (items("a", "A"), frozenset())


def test_join_of_nothing_is_an_empty_list() -> None:
    assert join(((),)).items == ()
