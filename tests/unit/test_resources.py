"""What resources contain: cached by URI, doubted by updates, never by list notices."""

from typing import Any

import pytest

from relist import resources
from relist.resources import Content, Contents
from relist.values import Scope
from support.one import policy

rule = pytest.mark.rule


def kept(contents: Contents, uri: str, **changes: Any) -> Contents:
    values: dict[str, Any] = {
        "ttl_ms": 100,
        "scope": Scope.PUBLIC,
        "partition": "A",
        "by_retry": False,
        "now_ms": 1_000,
        "policy": policy(contents_max=3),
        **changes,
    }
    return resources.keep(contents, uri, b"body", **values)


def found(contents: Contents, uri: str, partition: str = "A", now_ms: int = 1_000) -> bool:
    return resources.look_up(contents, uri, partition, now_ms) is not None


@rule("RES-08")
def test_a_read_is_served_again_within_its_lifetime() -> None:
    contents = kept({}, "x://1")
    assert contents["x://1"] == Content(b"body", Scope.PUBLIC, "A", 1_000, 1_100, False)
    assert found(contents, "x://1", now_ms=1_099)
    assert not found(contents, "x://1", now_ms=1_100)


@rule("RES-08")
def test_uris_are_compared_byte_by_byte() -> None:
    contents = kept({}, "x://a")
    assert not any(found(contents, uri) for uri in ("x://A", "x://a/", "x://%61", "X://a"))


@rule("TTL-06")
@rule("TTL-08")
@pytest.mark.parametrize("ttl_ms", [None, 0, -1, "100", True])
def test_what_is_over_at_once_is_not_kept_and_replaces_what_was(ttl_ms: object) -> None:
    assert kept(kept({}, "x://1"), "x://1", ttl_ms=ttl_ms) == {}


@rule("RES-09")
def test_a_read_that_was_completed_with_input_is_not_kept() -> None:
    assert kept(kept({}, "x://1"), "x://1", by_retry=True) == {}


@rule("RES-10")
@rule("AUTH-03")
def test_private_contents_stay_in_their_partition() -> None:
    contents = kept(kept({}, "x://1", scope=Scope.PRIVATE), "x://2")
    assert [found(contents, uri, "B") for uri in ("x://1", "x://2")] == [False, True]
    assert list(resources.withdrawn(contents, "B")) == ["x://2"]
    assert list(resources.withdrawn(contents, "A")) == ["x://1", "x://2"]


@rule("RES-05")
@rule("RES-06")
def test_an_update_doubts_that_uri_and_what_contains_it() -> None:
    contents: Contents = {}
    for uri in ("x://a", "x://a/b", "x://ab"):
        contents = kept(contents, uri)
    after = resources.updated(contents, "x://a/b")
    assert [found(after, uri) for uri in contents] == [False, False, True]
    assert found(kept(after, "x://a"), "x://a")


@rule("RES-06")
def test_a_folder_contains_what_is_below_it_with_or_without_its_slash() -> None:
    contents: Contents = {}
    for uri in ("x://a", "x://a/", "x://a//"):
        contents = kept(contents, uri)
    after = resources.updated(contents, "x://a/b")
    assert [found(after, uri) for uri in contents] == [False, False, True]
    assert resources.updated(contents, "x://ab") is contents


def test_an_update_of_something_else_leaves_the_same_object() -> None:
    contents = kept({}, "x://1")
    assert resources.updated(contents, "y://1") is contents
    doubted = resources.updated(contents, "x://1")
    assert resources.updated(doubted, "x://1") is doubted


@rule("RES-05", "RES-07")
def test_a_lost_subscription_doubts_what_it_watched_and_what_lies_below() -> None:
    contents: Contents = {}
    for uri in ("x://1", "x://1/below", "x://12"):
        contents = kept(contents, uri)
    after = resources.uncovered(contents, ["x://1", "x://9"])
    assert [uri for uri in contents if not found(after, uri)] == ["x://1", "x://1/below"]


def test_only_so_many_are_kept_the_oldest_go_first() -> None:
    contents: Contents = {}
    for uri in ("x://1", "x://2", "x://3", "x://1", "x://4"):
        contents = kept(contents, uri)
    assert list(contents) == ["x://3", "x://1", "x://4"]


def test_bodies_are_bounded_by_their_bytes() -> None:
    """Each body has four bytes; the oldest make room, and what is too large alone is not kept."""
    rules = policy(contents_bytes_max=8)
    contents: Contents = {}
    for uri in ("x://1", "x://2", "x://3"):
        contents = kept(contents, uri, policy=rules)
    assert list(contents) == ["x://2", "x://3"]
    assert kept(contents, "x://4", policy=policy(contents_bytes_max=3)) == {}
    for uri in ("x://1", "x://2", "x://3"):
        contents = kept(contents, uri)
    assert list(kept(contents, "x://4", policy=policy(contents_bytes_max=5))) == ["x://4"]
