"""Whose list is it: keys that never mix what may differ."""

import pytest
from attrs import evolve

from relist.scope import cache_key, may_show
from relist.values import Era, Kind, Scope
from support.one import fresh, walking

rule = pytest.mark.rule


@rule("TTL-21")
def test_there_is_no_key_without_a_list() -> None:
    assert cache_key(walking().catalog, "server") is None


@rule("TTL-22")
def test_whatever_lists_may_differ_by_is_in_the_key() -> None:
    one = fresh(scope=Scope.PRIVATE)
    key = cache_key(one.catalog, "server", "digest")
    assert key is not None
    assert cache_key(one.catalog, "server") == evolve(key, capabilities="")
    assert (key.server, key.capabilities, key.version) == ("server", "digest", "2026-07-28")
    assert (key.era, key.partition, key.kind) == (Era.MODERN, "A", Kind.TOOLS)
    legacy = cache_key(fresh(era=Era.LEGACY).catalog, "server", "digest")
    others = {
        legacy,
        cache_key(one.catalog, "other", "digest"),
        cache_key(one.catalog, "server", "other"),
        evolve(key, kind=Kind.PROMPTS),
    }
    assert key not in others
    assert len(others) == 4


@rule("TTL-24")
@rule("TTL-23")
@rule("AUTH-03")
def test_a_private_list_stays_in_its_partition_and_a_public_one_may_be_shared() -> None:
    private = cache_key(fresh(scope=Scope.PRIVATE).catalog, "server")
    public = cache_key(fresh(scope=Scope.PUBLIC).catalog, "server")
    assert private is not None
    assert public is not None
    assert [may_show(private, who) for who in ("A", "B", "")] == [True, False, False]
    assert [may_show(public, who) for who in ("A", "B", "")] == [True, True, True]


@rule("AUTH-09")
def test_anonymous_use_is_a_partition_of_its_own() -> None:
    one = fresh(scope=Scope.PRIVATE)
    assert one.catalog.snapshot is not None
    anonymous = evolve(one.catalog, snapshot=evolve(one.catalog.snapshot, partition=""))
    key = cache_key(anonymous, "server")
    assert key is not None
    assert [may_show(key, who) for who in ("", "A")] == [True, False]
