"""Snapshots: identity, order, generations, scope."""

import pytest
from attrs import evolve
from attrs.exceptions import FrozenInstanceError

from relist.snapshot import digest, share
from relist.values import Era, Item, Phase, Scope
from support.one import fresh, items, policy, walking

rule = pytest.mark.rule


@rule("ATOM-23")
@rule("NOTE-20")
@rule("ATOM-19")
def test_an_unchanged_list_keeps_its_identity_and_generation() -> None:
    one = fresh()
    before = one.snapshot
    one.refresh()
    one.page("a", "b")
    (publish,) = one.publications()
    assert not publish.changed
    assert one.snapshot.items is before.items
    assert one.snapshot.generation == before.generation == 1
    assert one.snapshot.listed_at_ms > before.listed_at_ms


@rule("DISC-33")
@rule("DISC-32")
def test_an_equal_set_in_another_order_keeps_the_old_order() -> None:
    one = fresh()
    before = one.snapshot.items
    one.refresh()
    one.page("b", "a")
    assert one.snapshot.items is before


@rule("CAP-17")
@rule("ATOM-04")
def test_the_generation_rises_by_one_with_each_difference() -> None:
    one = fresh()
    for generation, names in enumerate((("a",), ("a@2",), (), ("a", "b")), start=2):
        one.refresh()
        one.page(*names)
        (publish,) = one.publications()
        assert publish.changed
        assert one.snapshot.generation == one.catalog.generation == generation


@rule("ATOM-04")
def test_another_scope_is_another_generation() -> None:
    one = fresh(scope=Scope.PUBLIC)
    one.refresh()
    one.page("a", "b", scope=Scope.PRIVATE)
    assert one.snapshot.generation == 2


@rule("REC-07")
@rule("ATOM-04")
def test_the_generation_never_restarts() -> None:
    one = fresh()
    one.lose()
    one.link()
    one.allow(declared=False)
    assert one.phase() is Phase.UNSUPPORTED
    one.link()
    one.allow()
    one.page("a", "b")
    assert one.snapshot.generation == 2


def test_unchanged_items_keep_their_identity() -> None:
    old, new = items("a", "b"), items("b", "c")
    shared = share(old, new)
    assert shared[0] is old[1]
    assert shared[1] is new[1]


def test_byte_equality_tells_true_from_one() -> None:
    one = walking()
    assert Item("a", b'{"x":true}') != Item("a", b'{"x":1}')
    assert Item("a", b"x").digest != Item("a", b"y").digest
    assert one.catalog.snapshot is None


@rule("TTL-25")
@pytest.mark.parametrize("first", [Scope.PUBLIC, Scope.PRIVATE])
def test_any_private_page_makes_the_list_private(first: Scope) -> None:
    one = walking()
    other = Scope.PRIVATE if first is Scope.PUBLIC else Scope.PUBLIC
    one.page("a", more="x", scope=first)
    one.page("b", scope=other)
    assert one.snapshot.scope is Scope.PRIVATE


@rule("TTL-26")
def test_a_legacy_list_is_private_whatever_it_says() -> None:
    one = walking(era=Era.LEGACY)
    one.page("a", scope=Scope.PUBLIC)
    assert one.snapshot.scope is Scope.PRIVATE


@rule("AUTH-01")
@rule("ATOM-03")
def test_a_published_list_never_changes() -> None:
    one = fresh()
    before, listed = one.snapshot, one.snapshot.items
    with pytest.raises(FrozenInstanceError):
        before.items = ()  # type: ignore[misc]
    one.refresh()
    one.page("a", "c")
    assert before.items is listed
    assert before.items == items("a", "b")


@rule("ATOM-05")
def test_a_snapshot_knows_where_it_came_from() -> None:
    one = walking(policy())
    one.page("a")
    snapshot = one.snapshot
    assert (snapshot.version, snapshot.partition, snapshot.epoch) == ("2026-07-28", "A", 1)
    assert (snapshot.listed_at_ms, snapshot.clean) == (1_000, True)


@rule("ATOM-05")
def test_a_list_has_a_digest_of_its_keys_and_contents() -> None:
    def listed(*texts: str) -> str:
        one = walking()
        one.page(*texts)
        return digest(one.snapshot)

    assert listed("a", "b") == listed("a", "b")
    assert (
        len({listed("a", "b"), listed("b", "a"), listed("a", "b@2"), listed("ab"), listed()}) == 5
    )


@rule("ATOM-05")
def test_a_key_that_is_no_proper_text_has_a_digest_too() -> None:
    listed = fresh().snapshot
    keys = ("\ud800", "\udfff")
    assert len({digest(evolve(listed, items=(Item(key, b"x"),))) for key in keys}) == 2
