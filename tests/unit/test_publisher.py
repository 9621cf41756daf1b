"""What a server shows and tells, by hand: lists, pages, notices, views, bounds."""

import pickle
from typing import Any

import pytest

from relist.errors import ImpossibleAct, PolicyError
from relist.publisher import EVERYONE, Announce, Page, Publisher, PublisherPolicy
from relist.values import CHANNELS, KINDS, Capabilities, Channel, Failure, Item, Kind, Scope, Topic

rule = pytest.mark.rule
ALL = Capabilities(frozenset(KINDS), frozenset(CHANNELS), subscribe=True)
TOOLS, URI = Channel.TOOLS, "file:///one"
MERGE, GAP = 10, 100


def items(text: str, view: str = "") -> list[Item]:
    """One entry for each letter; a capital is another definition under the same key."""
    return [Item(one.lower(), f"{view}{one}".encode()) for one in text]


def publisher(offer: Capabilities = ALL, **changes: Any) -> Publisher:
    """One that pages by two and merges for 10 ms, with notices at least 100 ms apart."""
    given = {"merge_ms": MERGE, "gap_ms": GAP, "page_max": 2, "walks_max": 2, **changes}
    return Publisher(offer, PublisherPolicy(**given))


def first(server: Publisher, view: str = EVERYONE, kind: Kind = Kind.TOOLS) -> Page:
    return page(server, None, view, kind)


def page(
    server: Publisher, cursor: str | None, view: str = EVERYONE, kind: Kind = Kind.TOOLS
) -> Page:
    served = server.page(kind, cursor, view)
    assert isinstance(served, Page)
    return served


def keys(served: Page) -> str:
    return "".join(item.key for item in served.items)


def walked(server: Publisher, view: str = EVERYONE, kind: Kind = Kind.TOOLS) -> str:
    served = first(server, view, kind)
    told = keys(served)
    while served.next_cursor is not None:
        served = page(server, served.next_cursor, view, kind)
        told += keys(served)
    return told


def read(text: str = "ab", **changes: Any) -> Publisher:
    """One whose tools somebody has read and somebody hears of."""
    server = publisher(**changes)
    server.commit(Kind.TOOLS, items(text), 0)
    server.subscribe("me", {TOOLS})
    walked(server)
    return server


# --- lists ----------------------------------------------------------------------------------------


@rule("EMIT-03")
def test_what_is_committed_can_be_read_at_once_and_before_anybody_is_told() -> None:
    server = read()
    server.commit(Kind.TOOLS, items("abc"), 0)
    assert walked(server) == "abc"
    assert server.elapse(MERGE) == (Announce(EVERYONE, TOOLS, ("me",)),)


@rule("EMIT-21")
@pytest.mark.parametrize("order", ["abc", "cab", "bca"])
def test_order_depends_on_the_set_alone(order: str) -> None:
    server = read("abc")
    server.commit(Kind.TOOLS, items(order), 0)
    assert walked(server) == "abc"
    assert server.deadline_ms() is None


def test_a_key_that_comes_twice_is_refused_and_changes_nothing() -> None:
    server = read()
    with pytest.raises(ImpossibleAct, match="two entries with one key: 'a'"):
        server.commit(Kind.TOOLS, items("aA"), 0)
    assert walked(server) == "ab"


@rule("CAP-17", "EMIT-23")
def test_a_kind_that_is_offered_answers_though_nothing_was_committed() -> None:
    assert first(publisher()) == Page((), None, 60_000, Scope.PRIVATE)


@rule("CAP-22", "EMIT-24")
def test_a_kind_that_is_not_offered_is_an_unknown_method_and_cannot_be_committed() -> None:
    server = publisher(Capabilities(frozenset({Kind.TOOLS}), frozenset()))
    assert server.page(Kind.PROMPTS, None) == Failure("prompts are not offered", -32601)
    with pytest.raises(ImpossibleAct, match="prompts are not offered"):
        server.commit(Kind.PROMPTS, [], 0)


def test_notices_of_a_kind_that_is_not_offered_make_no_sense() -> None:
    with pytest.raises(PolicyError, match="notices are declared of a kind"):
        Publisher(Capabilities(frozenset({Kind.TOOLS}), frozenset({Channel.PROMPTS})))


@rule("CALL-04", "CALL-20", "EMIT-15")
def test_calls_go_by_what_is_in_force() -> None:
    server = publisher()
    server.commit(Kind.TOOLS, items("bd"), 0)
    assert server.find(Kind.TOOLS, "d") == Item("d", b"d")
    assert [server.find(Kind.TOOLS, key) for key in "ace"] == [None] * 3
    assert server.find(Kind.TOOLS, "d", "others") is None
    server.commit(Kind.TOOLS, items("b"), 0)
    assert server.find(Kind.TOOLS, "d") is None


# --- pages ----------------------------------------------------------------------------------------


@rule("EMIT-12")
def test_a_walk_sees_one_version_and_its_rest_is_not_called_fresh() -> None:
    server = read("abcde")
    begun = first(server)
    server.commit(Kind.TOOLS, items("x"), 0)
    second = page(server, begun.next_cursor)
    third = page(server, second.next_cursor)
    assert [keys(begun), keys(second), keys(third)] == ["ab", "cd", "e"]
    assert [begun.ttl_ms, second.ttl_ms, third.ttl_ms] == [60_000, 0, 0]
    assert keys(first(server)) == "x"


@rule("EMIT-12")
def test_only_some_versions_are_kept_the_one_in_use_the_longest() -> None:
    server = publisher(walks_max=2)
    cursors = []
    for text in ("abcde", "fghij", "klmno"):
        server.commit(Kind.TOOLS, items(text), 0)
        cursors.append(first(server).next_cursor)
        page(server, cursors[0])
    assert keys(page(server, cursors[0])) == "cd"
    assert server.page(Kind.TOOLS, cursors[1]) == Failure("dead cursor", -32602)


@rule("EMIT-13")
@pytest.mark.parametrize("end", [".0", ".6", ".02", ".٢", ".-1", ".2 ", ".", "", "." + "9" * 5000])
def test_a_cursor_that_was_never_given_out_is_dead(end: str) -> None:
    server = read("abcdef")
    digest = (first(server).next_cursor or "").partition(".")[0]
    assert keys(page(server, f"{digest}.2")) == "cd"
    assert server.page(Kind.TOOLS, digest + end) == Failure("dead cursor", -32602)
    assert server.page(Kind.TOOLS, end) == Failure("dead cursor", -32602)


def test_a_cursor_means_the_same_in_another_instance_with_the_same_list() -> None:
    cursor = first(read("abcd")).next_cursor
    assert keys(page(read("dcba"), cursor)) == "cd"
    assert read("abcD").page(Kind.TOOLS, cursor) == Failure("dead cursor", -32602)


@rule("EMIT-19", "EMIT-25")
def test_all_pages_bear_the_hints_of_the_policy() -> None:
    server = read("abc", ttl_ms=7, scope=Scope.PUBLIC)
    pages = [first(server), page(server, first(server).next_cursor)]
    assert {(one.ttl_ms, one.scope) for one in pages} == {(7, Scope.PUBLIC)}


# --- notices --------------------------------------------------------------------------------------


@rule("EMIT-04")
def test_a_burst_is_told_of_once_at_the_end_of_the_first_changes_window() -> None:
    server = read()
    for now_ms in range(MERGE):
        server.commit(Kind.TOOLS, items("ab" if now_ms % 2 else "abc"), now_ms)
        walked(server)
        assert server.deadline_ms() == MERGE
        assert server.elapse(now_ms) == ()
    assert len(server.elapse(MERGE)) == 1
    assert server.deadline_ms() is None


@rule("EMIT-04", "EMIT-20")
def test_changes_without_end_are_told_of_once_per_gap() -> None:
    server, told = read(), []
    for now_ms in range(10 * GAP):
        server.commit(Kind.TOOLS, items("abcdefgh"[now_ms % 7 :]), now_ms)
        told += [now_ms for _ in server.elapse(now_ms)]
    assert told == [MERGE + GAP * number for number in range(10)]


@rule("EMIT-05")
def test_a_commit_that_changes_nothing_is_nothing() -> None:
    server = read()
    before = server.views[EVERYONE]
    server.commit(Kind.TOOLS, items("ba"), 0)
    assert server.views[EVERYONE] is before


@rule("EMIT-05")
def test_what_comes_back_before_anybody_saw_it_gone_is_not_told_of() -> None:
    server = read()
    server.commit(Kind.TOOLS, items("x"), 0)
    server.commit(Kind.TOOLS, items("ab"), 1)
    walked(server)
    assert server.elapse(MERGE) == ()
    assert server.deadline_ms() is None


def test_what_comes_back_after_somebody_saw_it_gone_is_told_of() -> None:
    server = read()
    server.commit(Kind.TOOLS, items("x"), 0)
    walked(server)
    server.commit(Kind.TOOLS, items("ab"), 1)
    assert len(server.elapse(MERGE)) == 1


def test_what_nobody_was_ever_served_is_not_told_of() -> None:
    server = publisher()
    server.subscribe("me", {TOOLS})
    server.commit(Kind.TOOLS, items("a"), 0)
    server.commit(Kind.TOOLS, items("b"), 1)
    assert server.deadline_ms() is None


@rule("EMIT-06")
def test_where_others_serve_the_same_lists_what_was_committed_counts_as_seen() -> None:
    server = publisher(alone=False)
    server.subscribe("me", {TOOLS})
    server.commit(Kind.TOOLS, items("a"), 0)
    assert len(server.elapse(MERGE)) == 1
    server.commit(Kind.TOOLS, items("x"), 200)
    server.commit(Kind.TOOLS, items("a"), 201)
    assert len(server.elapse(200 + MERGE)) == 1


@rule("EMIT-01")
def test_nothing_is_told_of_what_is_not_declared() -> None:
    quiet = Capabilities(frozenset(KINDS), frozenset({Channel.PROMPTS}))
    server = publisher(quiet)
    assert server.subscribe("me", {*CHANNELS, URI}) == frozenset[Topic]({Channel.PROMPTS})
    walked(server)
    server.commit(Kind.TOOLS, items("a"), 0)
    server.updated(URI, 0)
    assert server.deadline_ms() is None


@rule("EMIT-02", "EMIT-08")
def test_subscribers_hear_of_what_they_asked_for_and_no_more() -> None:
    server = read()
    server.subscribe("prompts", {Channel.PROMPTS})
    server.subscribe("both", {TOOLS, Channel.PROMPTS})
    server.commit(Kind.TOOLS, items("x"), 0)
    assert server.elapse(MERGE) == (Announce(EVERYONE, TOOLS, ("me", "both")),)


def test_templates_are_announced_by_the_notice_of_resources() -> None:
    server = publisher()
    server.subscribe("me", {Channel.RESOURCES})
    walked(server, kind=Kind.TEMPLATES)
    server.commit(Kind.TEMPLATES, items("a"), 0)
    assert server.elapse(MERGE) == (Announce(EVERYONE, Channel.RESOURCES, ("me",)),)


def test_a_subscriber_that_asks_anew_hears_of_that_instead() -> None:
    server = read()
    server.subscribe("me", {Channel.PROMPTS})
    server.commit(Kind.TOOLS, items("x"), 0)
    assert server.elapse(MERGE) == ()


def test_who_comes_before_the_window_ends_is_told_who_has_left_is_not() -> None:
    server = read()
    server.commit(Kind.TOOLS, items("x"), 0)
    server.subscribe("late", {TOOLS})
    server.unsubscribe("me")
    server.unsubscribe("me")
    assert server.elapse(MERGE) == (Announce(EVERYONE, TOOLS, ("late",)),)


def test_a_notice_that_went_to_nobody_delays_none() -> None:
    server = read()
    server.unsubscribe("me")
    server.commit(Kind.TOOLS, items("x"), 0)
    assert server.elapse(MERGE) == ()
    server.subscribe("me", {TOOLS})
    server.commit(Kind.TOOLS, items("y"), MERGE)
    assert server.deadline_ms() == 2 * MERGE


def test_when_nobody_is_connected_nothing_is_to_be_told() -> None:
    server = read()
    server.commit(Kind.TOOLS, items("x"), 1_000_000)
    server.settle()
    assert server.deadline_ms() is None
    server.commit(Kind.TOOLS, items("ab"), 0)
    assert server.deadline_ms() == MERGE


# --- single resources -----------------------------------------------------------------------------


def test_an_update_is_told_to_who_subscribed_to_that_resource() -> None:
    server = publisher()
    server.subscribe("me", {URI})
    server.subscribe("other", {"file:///two", *CHANNELS})
    for now_ms in range(5):
        server.updated(URI, now_ms)
    assert server.elapse(MERGE) == (Announce(EVERYONE, URI, ("me",)),)
    server.updated(URI, MERGE)
    assert server.deadline_ms() == MERGE + GAP


def test_an_update_of_what_nobody_subscribed_to_leaves_no_trace() -> None:
    server = publisher()
    server.subscribe("me", {URI})
    server.updated("file:///two", 0)
    server.updated(URI, 0)
    server.unsubscribe("me")
    assert server.deadline_ms() is None
    assert server.views[EVERYONE].windows == ()


# --- views ----------------------------------------------------------------------------------------


@rule("DISC-30", "EMIT-14", "EMIT-16", "EMIT-33")
def test_views_have_lists_and_notices_of_their_own() -> None:
    server = publisher()
    for view in ("readers", "writers"):
        server.commit(Kind.TOOLS, items("ab", view), 0, view)
        server.subscribe(f"one of the {view}", {TOOLS, URI}, view)
        walked(server, view)
    server.commit(Kind.TOOLS, items("abc", "writers"), 0, "writers")
    server.updated(URI, 0, "readers")
    server.updated(URI, 0, "nobody")
    assert (walked(server, "readers"), walked(server, "writers")) == ("ab", "abc")
    assert set(server.elapse(MERGE)) == {
        Announce("writers", TOOLS, ("one of the writers",)),
        Announce("readers", URI, ("one of the readers",)),
    }
    server.updated(URI, GAP + MERGE)
    assert len(server.elapse(2 * GAP)) == 2


@rule("EMIT-33")
def test_the_cursor_of_another_view_is_dead() -> None:
    server = publisher()
    for view in ("readers", "writers"):
        server.commit(Kind.TOOLS, items("abc", view), 0, view)
    cursor = first(server, "writers").next_cursor
    assert server.page(Kind.TOOLS, cursor, "readers") == Failure("dead cursor", -32602)


@rule("EMIT-17")
def test_a_change_of_access_rules_is_a_change_for_who_sees_it() -> None:
    server = publisher()
    for view in ("readers", "writers"):
        server.commit(Kind.TOOLS, items("ab"), 0, view)
        server.subscribe(view, {TOOLS}, view)
        walked(server, view)
    server.commit(Kind.TOOLS, items("a"), 0, "readers")
    server.commit(Kind.TOOLS, items("ab"), 0, "writers")
    assert server.elapse(MERGE) == (Announce("readers", TOOLS, ("readers",)),)


def test_a_subscriber_has_one_authorization() -> None:
    server = read()
    with pytest.raises(ImpossibleAct, match="one authorization"):
        server.subscribe("me", {TOOLS}, "others")


@rule("EMIT-25")
def test_what_differs_by_authorization_is_not_public() -> None:
    server = publisher(scope=Scope.PUBLIC)
    server.commit(Kind.TOOLS, items("a"), 0)
    for act in (
        lambda: server.commit(Kind.TOOLS, [], 0, "readers"),
        lambda: server.page(Kind.TOOLS, None, "readers"),
        lambda: server.subscribe("me", {TOOLS}, "readers"),
    ):
        with pytest.raises(ImpossibleAct, match="not public"):
            act()
    assert list(server.views) == [EVERYONE]


# --- bounds ---------------------------------------------------------------------------------------


def test_views_are_bounded_and_those_without_subscribers_can_be_forgotten() -> None:
    server = publisher(views_max=2)
    server.commit(Kind.TOOLS, items("a"), 0, "one")
    server.subscribe("me", {TOOLS}, "two")
    assert server.full
    with pytest.raises(ImpossibleAct, match="too many views"):
        server.page(Kind.TOOLS, None, "three")
    assert server.forget()
    assert list(server.views) == ["two"]
    assert not server.forget()
    assert not server.full


def test_subscribers_and_their_resources_are_bounded() -> None:
    server = publisher(subscribers_max=2, uris_max=1)
    assert server.subscribe("one", {TOOLS}) == frozenset[Topic]({TOOLS})
    assert server.subscribe("two", {URI, "file:///two"}) is None
    assert server.subscribe("two", {URI, TOOLS}, "others") == frozenset[Topic]({URI, TOOLS})
    assert server.subscribe("three", {TOOLS}) is None
    assert server.subscribe("one", {URI}) == frozenset[Topic]({URI})
    server.unsubscribe("two")
    assert server.subscribe("three", {TOOLS}) == frozenset[Topic]({TOOLS})


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"ttl_ms": -1}, "ttl_ms is out of range: -1"),
        ({"merge_ms": -1}, "merge_ms is out of range: -1"),
        ({"page_max": 0}, "page_max is out of range: 0"),
        ({"merge_ms": 2, "gap_ms": 1}, r"merge_ms \(2\) must not exceed gap_ms \(1\)"),
    ],
)
@rule("EMIT-19")
def test_what_a_policy_refuses(changes: dict[str, int], complaint: str) -> None:
    with pytest.raises(PolicyError, match=complaint):
        PublisherPolicy(**changes)  # type: ignore[arg-type]


def test_the_bounds_of_a_policy_are_allowed() -> None:
    assert PublisherPolicy(merge_ms=0, gap_ms=0, ttl_ms=0, page_max=1, walks_max=1).page_max == 1


def test_views_are_values() -> None:
    server = read("abc")
    server.updated(URI, 0)
    view = server.views[EVERYONE]
    assert pickle.loads(pickle.dumps(view)) == view
    assert hash(view) == hash(pickle.loads(pickle.dumps(view)))
