"""Where a client left what the reference machine allows, on histories made by hand.

Each story begins with what every client may do; the name of the test says what comes then.
"""

from typing import Any

import attrs
import pytest

from conformance.story import (
    CHANGED,
    LEGACY,
    META,
    MODERN,
    TAG,
    TOOLS,
    Http,
    Story,
    left,
    text,
    tool,
)
from relist.check.deviation import first_deviation

# --- what a client may do -------------------------------------------------------------------------

CHOICES = {
    "it lists at once": Story().legacy().lists("a@1").needs("a@1"),
    "it lists on access, and keeps nothing": Story()
    .legacy()
    .ask()
    .lists("a@1")
    .offered("a@1", state="unknown")
    .ask()
    .lists("a@2")
    .offered("a@2", state="unknown"),
    "it skips discovery": Story().lists("a@1", ttlMs=60_000).needs("a@1"),
    "it does not listen": Story().modern().lists("a@1", ttlMs=60_000).needs("a@1"),
    "it listens after it has listed": Story().modern().lists("a@1", ttlMs=9_000).listens(),
    "it renews a page by its cursor": Story()
    .modern()
    .lists("a@1", following="two", ttlMs=60_000)
    .asked("tools/list", **META, cursor="two")
    .page("b@1", ttlMs=0)
    .needs("a@1", "b@1")
    .asked("tools/list", **META, cursor="two")
    .page("b@2", ttlMs=0)
    .needs("a@1", "b@2"),
    "it renews the first page and keeps the second": Story()
    .modern()
    .lists("a@1", following="two", ttlMs=0)
    .asked("tools/list", **META, cursor="two")
    .page("b@1", ttlMs=60_000)
    .needs("a@1", "b@1")
    .lists("a@2", following="two", ttlMs=0)
    .needs("a@2", "b@1"),
    "it follows a cursor that comes twice": Story()
    .legacy()
    .lists("a@1", following="again")
    .asked("tools/list", cursor="again")
    .page("b@1", following="again")
    .asked("tools/list", cursor="again")
    .page("c@1")
    .needs("a@1", "b@1", "c@1"),
    "it keeps a list while it cannot get a new one": Story()
    .legacy()
    .lists("a@1")
    .needs("a@1")
    .told(CHANGED)
    .asked("tools/list")
    .refused()
    .fence()
    .needs("a@1", state="stale"),
    "a notice is on its way": Story().legacy().lists("a@1").told(CHANGED).needs("a@1"),
    "it says that its list is old": Story()
    .legacy()
    .lists("a@1")
    .told(CHANGED)
    .fence()
    .needs("a@1", state="stale"),
    "it has asked again and waits": Story()
    .legacy()
    .lists("a@1")
    .told(CHANGED)
    .fence()
    .asked("tools/list")
    .needs("a@1", state="unknown"),
    "it gave up a need, and the list came later": Story()
    .legacy()
    .ask()
    .asked("tools/list")
    .nothing()
    .page("a@1")
    .ask()
    .nothing()
    .ask()
    .nothing(),
    "the list was not needed": Story().legacy().lists("a@1").told(CHANGED).fence().fence(),
    "a notice that was never promised": Story()
    .legacy({"tools": {}})
    .lists("a@1")
    .told(CHANGED)
    .fence()
    .needs("a@1"),
    "a notice that is tagged for somebody else": Story()
    .modern()
    .listens()
    .lists("a@1", ttlMs=60_000)
    .told(CHANGED, _meta={TAG: "another"})
    .fence()
    .needs("a@1"),
    "nobody says that time has passed": Story()
    .modern()
    .lists("a@1", ttlMs=1_000)
    .needs("a@1")
    .needs("a@1"),
    "it has nothing to show yet": Story().legacy().ask().nothing().ask(op="believe").nothing(),
    "what was asked for before comes in later": Story()
    .legacy()
    .ask()
    .asked("tools/list")
    .asked("tools/list")
    .page("a@2")
    .page("a@1", of=2)
    .offered("a@1"),
}


@pytest.mark.parametrize("choice", CHOICES)
def test_what_is_left_to_the_client_is_no_deviation(choice: str) -> None:
    assert left(CHOICES[choice]) is None


# --- what a client sends --------------------------------------------------------------------------


def test_a_list_request_before_the_handshake_is_over() -> None:
    shaking = Story().asked("initialize").served(protocolVersion=LEGACY, capabilities=TOOLS)
    assert text(shaking.asked("tools/list")) == (
        "tools/list was sent before notifications/initialized"
    )
    assert text(Story().asked("tools/list")) == (
        "tools/list was sent before initialize was answered"
    )


def test_a_list_request_ahead_of_the_probe() -> None:
    story = Story().lists("a@1").modern()
    found = left(story)
    assert found is not None
    assert (found.seq, found.text) == (2, "tools/list was sent before server/discover")
    assert found.held == "link closed; tools disconnected, no list to show; " + (
        "tools/list may not be sent yet"
    )


def test_a_kind_that_the_server_does_not_have() -> None:
    story = Story().legacy({"prompts": {}}).asked("tools/list")
    assert text(story) == "tools/list was sent, and the server does not have tools"
    found = left(story)
    assert found is not None
    assert found.held.endswith("tools unsupported, no list to show; tools/list may not be sent")


def test_a_method_that_the_server_has_said_it_does_not_have() -> None:
    refused = Story().legacy().asked("tools/list").refused(-32601)
    assert left(refused.asked("tools/list")) is None  # it may not have heard yet
    story = Story().legacy().ask().asked("tools/list").refused(-32601).nothing()
    assert text(story.asked("tools/list")) == (
        "tools/list was sent again, and there is no such method"
    )


def test_a_cursor_that_nobody_gave_out() -> None:
    story = Story().legacy().lists("a@1", following="two").asked("tools/list", cursor="three")
    assert text(story) == "tools/list was sent with a cursor that no answer gave out"


def test_a_cursor_of_an_earlier_connection() -> None:
    story = Story().legacy().lists("a@1", following="two").add("cut", "memory-1").open().legacy()
    assert "no answer gave out" in text(story.asked("tools/list", cursor="two"))


def test_initialize_after_versions_were_named() -> None:
    data = {"supported": [MODERN], "requested": "2099-01-01"}
    story = Story().asked("server/discover", **META).refused(-32022, data=data)
    assert text(story.asked("initialize")) == (
        "initialize was sent to a server that has named versions to ask again with: the machine"
        " would have sent server/discover at 2026-07-28"
    )
    assert text(Story().modern().asked("initialize")) == (
        "initialize was sent to a server that has answered server/discover"
    )


def test_a_call_planned_on_what_was_shown_to_have_changed() -> None:
    story = Story().legacy().lists("a@1").needs("a@1").lists("a@2").needs("a@2")
    story.ask("call", None, name="a", arguments={}, planned=tool("a@1"))
    assert text(story.asked("tools/call", name="a", arguments={})) == (
        "tools/call was sent for 'a' as planned on 'a@1', after the client had shown 'a@2'"
    )


# --- what a client tells --------------------------------------------------------------------------


def test_some_pages_of_a_list() -> None:
    story = Story().legacy().ask().lists("a@1", following="two").offered("a@1")
    assert text(story) == (
        "need was answered with [a@1], which is no more than the first page of a longer list"
    )
    found = left(story)
    assert found is not None
    assert found.held.endswith("tools/list may be sent without a cursor, or with the cursor 'two'")


def two_pages() -> Story:
    story = Story().legacy().lists("a@1", following="two")
    return story.asked("tools/list", cursor="two").page("b@1").needs("a@1", "b@1")


def test_pages_of_two_lists() -> None:
    """What was kept from before a notice is no part of the list."""
    for following in ("two", "other"):
        story = two_pages().told(CHANGED).lists("a@2", following=following).ask()
        assert "which no listing gave: it is put together" in text(story.offered("a@2", "b@1"))


def test_what_no_answer_held() -> None:
    assert text(Story().legacy().lists("a@1").needs("x@1")) == (
        "need was answered with [x@1], which no answer to tools/list held"
    )
    assert text(Story().legacy().lists("a@1").needs("a@1", "a@1")) == (
        "need was answered with [a@1, a@1], which holds [a@1] more than once"
    )
    assert text(Story().legacy().lists("a@1").needs()) == (
        "need was answered with [], and no listing was empty"
    )


def test_what_only_a_late_or_useless_answer_held() -> None:
    story = Story().legacy().asked("tools/list").says("notifications/cancelled", requestId=2)
    story.asked("tools/list").says("notifications/cancelled", requestId=3)
    story.lists("a@2").needs("a@2").page("z@1", of=3).page("a@1", of=2).needs("a@1")
    assert "which only an answer held that came too late (#)" in text(story)
    story = Story().modern().lists("a@1", resultType="input_required").needs("a@1")
    assert "which only an answer held that is of no use (#)" in text(story)


def test_a_listing_that_was_given_up_may_fail_as_well() -> None:
    story = Story().legacy().asked("tools/list")
    for request_id in (99, 2, 2):
        story.says("notifications/cancelled", requestId=request_id)
    story.refused().lists("a@1", resultType="wrong").page("b@1", of=2)
    assert left(story.lists("c@1").needs("c@1")) is None


def test_an_older_list_than_one_that_was_shown() -> None:
    story = Story().legacy().asked("tools/list").lists("a@2").needs("a@2").page("a@1", of=2)
    assert text(story.needs("a@1")) == (
        "need was answered with [a@1], an older list (#) than one that was shown before"
    )


def test_nothing_though_there_is_a_list() -> None:
    story = Story().legacy().ask().lists("a@1").nothing().ask().nothing()
    assert "answered with no list, and not for the first time" in text(story)


def test_a_list_that_is_known_to_be_doubtful() -> None:
    story = Story().legacy().lists("a@1").needs("a@1").told(CHANGED).fence().needs("a@1")
    assert text(story) == (
        "need was answered with [a@1], called fresh, though a change was announced (#)"
    )
    found = left(story)
    assert found is not None
    assert found.held == (
        "link live at 2025-11-25; tools stale, generation 1, doubted (noticed), to show [a@1];"
        " tools/list may be sent without a cursor"
    )


def test_without_an_opinion_only_what_is_never_asked_again() -> None:
    story = Story().legacy().lists("a@1").needs("a@1").told(CHANGED).fence()
    silent = "unknown"
    assert left(story.ask("believe").offered("a@1", op="believe", state=silent)) is None
    assert "given for good without tools/list, though a change" in text(
        story.needs("a@1", state=silent)
    )
    assert left(story.lists("a@2")) is None


def test_a_pong_shows_that_a_notice_was_heard() -> None:
    story = Story().legacy().lists("a@1").told(CHANGED)
    ping = {"id": "p", "method": "ping"}
    story.add("out", story.pipe, ping).add("in", story.pipe, {"id": "p", "result": {}})
    assert "though a change was announced" in text(story.needs("a@1"))


def test_a_notice_that_was_answered_by_a_listing_is_no_doubt() -> None:
    story = Story().legacy().lists("a@1").told(CHANGED).lists("a@2").needs("a@2").fence()
    found = left(story.needs("x@1"))
    assert found is not None
    assert "tools fresh, generation 2, no doubt, to show [a@2]" in found.held


def test_a_list_that_rested_on_a_lost_connection() -> None:
    lost = Story().legacy().lists("a@1").needs("a@1").add("cut", "memory-1").needs("a@1")
    assert left(lost) is None
    assert "though the connection that it rested on ended (#)" in text(
        lost.open().legacy().needs("a@1")
    )


def test_a_list_beyond_its_lifetime() -> None:
    story = Story().modern().lists("a@1", ttlMs=1_000).needs("a@1").later(2_000).needs("a@1")
    assert text(story) == (
        "need was answered with [a@1], given for good without tools/list, though its lifetime"
        " was over 1000 ms after it was listed"
    )
    in_time = Story().modern().lists("a@1", ttlMs=1_000).needs("a@1").later(900).needs("a@1")
    assert left(in_time) is None
    own_clock = Story().modern().lists("a@1", ttlMs=1_000).needs("a@1").ask("advance", ms=1_000)
    own_clock.add("answer", ask=own_clock.asks, op="advance", ok={})
    assert "its lifetime" in text(own_clock.needs("a@1"))


def acting_for(story: Story, principal: str) -> Story:
    story.ask("credentials", None, token=f"relist-{principal}")
    return story.add("answer", ask=story.asks, op="credentials", ok={})


def test_a_list_of_somebody_else() -> None:
    private = Story().modern().lists("a@1", ttlMs=9_000, cacheScope="private").needs("a@1")
    assert text(acting_for(private, "bob").needs("a@1")) == (
        "need was answered with [a@1], which was listed for somebody else"
    )
    public = Story().modern().lists("a@1", ttlMs=9_000, cacheScope="public").needs("a@1")
    assert left(acting_for(public, "bob").needs("a@1")) is None


def test_a_list_that_is_being_renewed_is_not_fresh() -> None:
    story = Story().legacy().lists("a@1").needs("a@1").told(CHANGED).asked("tools/list").fence()
    assert "called fresh, though a change was announced (#)" in text(story.needs("a@1"))


def test_no_kind_is_not_an_empty_kind() -> None:
    assert "[], and the server does not have the kind" in text(
        Story().legacy({"prompts": {}}).needs()
    )


def test_a_kind_that_is_gone() -> None:
    story = Story().legacy().lists("a@1").needs("a@1").add("cut", "memory-1").open()
    assert "and the server does not have the kind" in text(
        story.legacy({"prompts": {}}).needs("a@1")
    )


def test_a_refresh_that_asks_nobody() -> None:
    story = Story().legacy().lists("a@1").ask("refresh").offered("a@1", op="refresh")
    assert "without tools/list since it was asked" in text(story)
    asked = Story().legacy().lists("a@1").ask("refresh").lists("a@1").offered("a@1", op="refresh")
    assert left(asked) is None


def test_a_result_of_a_call_that_was_not_made() -> None:
    story = Story().legacy().lists("a@1").ask("call", None, name="a", arguments={})
    story.add("answer", ask=story.asks, op="call", name="a", ok={"outcome": "result"})
    assert text(story) == "a result of 'a' was told, and no tools/call had been sent for it"


# --- what a client leaves undone ------------------------------------------------------------------


def test_by_a_fence_a_list_is_asked_for_again() -> None:
    story = Story().legacy().lists("a@1").told(CHANGED).needs("a@1").fence()
    assert text(story) == (
        "by this fence tools/list had not been sent again, though a change was announced (#)"
        " and the list was needed after it (#)"
    )


def test_by_a_fence_a_failed_list_is_asked_for_again_unless_it_comes_later() -> None:
    story = Story().legacy().asked("tools/list").refused().ask().later(9_000).fence()
    assert "though it had failed (#) and the list was needed (#)" in text(story)
    assert left(story.lists("a@1")) is None


def test_by_a_fence_a_subscription_is_renewed() -> None:
    ended = Story().modern().listens().served().later(9_000).fence()
    assert text(ended) == (
        "by this fence subscriptions/listen had not been sent again, though the subscription had"
        " ended (#)"
    )
    assert left(Story().modern().listens().served().fence()) is None  # the machine waits as well
    assert left(ended.listens()) is None


def test_a_connection_is_begun_again() -> None:
    story = Story().legacy().lists("a@1").add("close", "memory-1")
    story.needs("a@1", state="stale").later(9_000).fence()
    assert "no connection was begun again after the last one had ended (#)" in text(story)
    assert left(story.open()) is None


# --- what is not known ----------------------------------------------------------------------------


def test_of_several_connections_nothing_is_said() -> None:
    story = Story().legacy().lists("a@1").needs("a@1")
    assert left(story.ask("connect", None).needs("x@1")) is None


def test_of_what_a_history_does_not_hold_nothing_is_said() -> None:
    story = Story().legacy().asked("tools/list")
    story.add("out", story.pipe, {"id": story.ids, "relist-cut": True})
    assert left(story.needs("x@1")) is None
    story = Story().legacy().asked("tools/list")
    story.add("out", story.pipe, {"relist-text": "{" * 500})
    assert left(story.needs("x@1")) is None


LONG = f"{'x' * 50}… (950 characters more, sha256 {'0' * 16})"


@pytest.mark.parametrize(
    "part",
    [
        {"relist-cut": "3 more"},
        {"tools": [{"relist-cut": "3 more"}]},
        {"tools": [tool("a@1") | {"description": LONG}]},
        {"tools": [tool("a@1"), 3], "nextCursor": LONG},
    ],
)
def test_of_a_list_that_was_cut_nothing_is_said(part: dict[str, Any]) -> None:
    story = Story().legacy().asked("tools/list").served(**part)
    assert left(story.needs("x@1")) is None


def test_a_part_of_a_schema_may_be_missing() -> None:
    story = Story().legacy().asked("tools/list")
    entry = tool("a@1") | {"inputSchema": {"relist-cut": "nested too deep"}, "relist-cut": "9 more"}
    assert "which no answer" in text(story.served(tools=[entry]).needs("x@1"))


def test_of_what_was_told_in_part_nothing_is_said() -> None:
    story = Story().legacy().lists("a@1").ask()
    items = [tool("x@1") | {"description": LONG}]
    story.add("answer", ask=story.asks, op="need", kind="tools", ok={"items": items})
    assert left(story) is None


def test_an_answer_about_the_link_that_is_nested_too_deeply_hides_everything() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    story = Story().asked("initialize")
    story.add("out", story.pipe, {"id": story.ids, "result": deep})
    assert left(story.asked("tools/list").page("a@1").needs("x@1")) is None


def test_texts_of_a_peer_are_short_and_plain() -> None:
    story = Story().legacy().lists("a@1").needs(*[f"\x1b[1m{'x' * 1_000}@1"] * 50)
    found = left(story)
    assert found is not None
    assert len(found.text) < 1_500
    assert found.text.isprintable()


def test_it_is_the_first_one() -> None:
    story = two_pages()
    first = left(story.needs("x@1"))
    assert first is not None
    assert left(story.needs("y@1").needs()) == first
    again = [attrs.evolve(event, at_ms=event.at_ms * 10) for event in story.events]
    assert first_deviation(again) == first


# --- over HTTP ------------------------------------------------------------------------------------


def over_http() -> Http:
    """A client that has a list, and a stream of notices."""
    story = Http()
    story.legacy()
    return story


def test_over_http_a_notice_comes_on_a_stream_and_the_pong_on_its_own() -> None:
    story = over_http()
    stream = story.stream()
    story.lists("a@1").needs("a@1")
    story.add("out", stream, {"method": CHANGED}).add("out", stream, {"id": "p", "method": "ping"})
    story.open("post", story.headers).add("in", story.pipe, {"id": "p", "result": {}})
    assert "though a change was announced" in text(story.needs("a@1"))


def test_over_http_a_pong_shows_nothing_of_another_stream() -> None:
    story = over_http()
    stream, other = story.stream(), story.stream()
    story.lists("a@1").needs("a@1")
    story.add("out", stream, {"method": CHANGED}).add("out", other, {"id": "p", "method": "ping"})
    story.open("post", story.headers).add("in", story.pipe, {"id": "p", "result": {}})
    assert left(story.needs("a@1")) is None


@pytest.mark.parametrize("end", ["refused", "closed", "cut"])
def test_over_http_a_stream_that_is_gone_carries_no_notice(end: str) -> None:
    story = over_http()
    stream = story.stream()
    if end == "refused":
        story.status(405)
    else:
        story.add("close" if end == "closed" else "cut", stream)
    assert left(story.lists("a@1").needs("a@1").later(9_000).fence()) is None


def test_over_http_a_session_that_is_gone_is_begun_again() -> None:
    story = over_http()
    story.lists("a@1").needs("a@1").asked("tools/call", name="a", arguments={})
    story.status(404).ask().nothing().later(9_000).fence()
    assert "no connection was begun again after the last one had ended (#)" in text(story)
    story.headers = {}
    again = story.legacy()
    assert left(again) is None
    assert "though the connection that it rested on ended" in text(again.needs("a@1"))


def test_over_http_a_client_that_goes_on_with_a_lost_session_is_not_stopped_at_once() -> None:
    """It may have been on its way."""
    story = over_http()
    story.asked("tools/list").status(404).asked("tools/list").status(404)
    assert left(story) is None


@pytest.mark.parametrize(("code", "told"), [(500, True), (429, False), (401, False)])
def test_over_http_a_refused_list_is_asked_for_again(code: int, told: bool) -> None:
    """Unless the server may have said when, or nobody is let in."""
    story = over_http()
    story.asked("tools/list").status(code).ask().later(9_000).fence()
    assert (left(story) is not None) is told
    error = over_http()
    error.asked("tools/list").add(
        "out", error.pipe, {"id": error.ids, "error": {"code": -32603}}, http=code
    )
    error.ask().later(9_000).fence()
    assert (left(error) is not None) is told


def test_over_http_a_list_request_that_is_closed_was_given_up() -> None:
    story = over_http()
    story.asked("tools/list").add("close", story.pipe)
    story.ask().later(9_000).fence()
    assert "had not been sent again, though it had failed" in text(story)


def test_over_http_a_page_of_no_listing_may_be_closed() -> None:
    story = over_http()
    story.lists("a@1", following="two").lists("a@2", following="other")
    story.asked("tools/list", cursor="two").refused(-32602).asked("tools/list", cursor="two")
    assert left(story.add("close", story.pipe)) is None


def test_over_http_a_subscription_is_cut_with_its_stream() -> None:
    for ending in ("cut", "note"):
        story = Http()
        story.modern().listens()
        if ending == "cut":
            story.add("cut", story.pipe)
        else:
            story.add("note", story.pipe, closed=True)
        story.later(9_000).fence()
        assert "though the subscription had ended" in text(story)


def test_over_http_other_credentials_need_no_other_session() -> None:
    for story in (over_http(), Http().modern()):
        story.lists("a@1", ttlMs=9_000)
        acting_for(story, "bob")
        assert isinstance(story, Http)
        story.principal = {"principal": "bob"}
        assert left(story.lists("b@1", ttlMs=9_000).needs("b@1")) is None
        assert "which was listed for somebody else" in text(story.needs("a@1"))


# --- what else may happen on a link ---------------------------------------------------------------


def test_a_legacy_server_is_found_out_or_asked_first() -> None:
    for code in (-32601, -32600):
        story = Story().asked("server/discover", **META).refused(code).legacy()
        assert left(story.lists("a@1").needs("a@1")) is None
    asked_first = Story().asked("initialize").refused().asked("initialize").served(wrong=1)
    assert left(asked_first.modern().lists("a@1", ttlMs=9_000).needs("a@1")) is None


def test_a_probe_may_be_repeated_and_given_up() -> None:
    twice = Story().asked("server/discover", **META).modern().lists("a@1", ttlMs=9_000)
    assert left(twice.needs("a@1")) is None
    given_up = Story().asked("server/discover", **META).legacy().lists("a@1")
    given_up.served(1, supportedVersions=[MODERN], capabilities={})
    assert left(given_up.needs("a@1")) is None
    assert left(Story().says("notifications/initialized")) is None


def test_a_session_may_be_begun_anew() -> None:
    story = Story().legacy().lists("a@1").needs("a@1").legacy().lists("a@2").needs("a@2")
    assert left(story) is None


def test_discovery_may_be_asked_again_and_what_it_says_counts() -> None:
    story = Story().modern().lists("a@1", ttlMs=9_000).needs("a@1").modern({"prompts": {}})
    assert "the server does not have tools" in text(story.asked("tools/list", **META))


def test_a_process_may_be_replaced_before_its_pipe_is_closed() -> None:
    story = Story().modern().listens().lists("a@1", ttlMs=9_000).needs("a@1").open()
    story.modern().listens().lists("a@2", ttlMs=9_000).needs("a@2")
    story.add("close", "memory-1").add("close", "memory-1")
    assert left(story.later(9_000).fence()) is None


def test_a_lost_subscription_is_renewed_on_the_new_connection() -> None:
    story = Story().modern().listens().add("cut", "memory-1").open().modern()
    assert "subscriptions/listen had not been sent again" in text(story.later(9_000).fence())


def test_subscriptions_beside_the_first_are_not_followed() -> None:
    story = Story().modern().listens()
    story.asked("subscriptions/listen", **META, notifications={"promptsListChanged": True})
    assert left(story.lists("a@1", ttlMs=9_000).needs("a@1")) is None


def test_a_client_may_end_its_subscription_and_have_another() -> None:
    story = Story().modern().listens()
    story.says("notifications/cancelled", requestId="another")
    story.says("notifications/cancelled", requestId=1)
    story.says("notifications/cancelled", requestId=2).later(9_000).fence()
    assert left(story) is None
    story.listens().lists("a@1", ttlMs=60_000).told(CHANGED, _meta={TAG: 3}).fence()
    assert "though a change was announced" in text(story.needs("a@1"))
    closed = Http()
    closed.modern().listens().add("close", closed.pipe).later(9_000).fence()
    assert left(closed) is None


def test_a_subscription_to_resources_is_none_to_lists() -> None:
    story = Story().modern()
    story.asked("subscriptions/listen", **META, notifications={"resourceSubscriptions": ["x:y"]})
    story.served().later(9_000).fence()
    assert left(story) is None


@pytest.mark.parametrize("how", ["error", "cancelled", "never acknowledged"])
def test_a_subscription_ends_in_other_ways(how: str) -> None:
    story = Story().modern()
    if how == "never acknowledged":
        wanted = {"notifications": {"toolsListChanged": True}}
        story.asked("subscriptions/listen", **META, **wanted).refused()
        assert left(story.later(9_000).fence()) is None
        return
    story.listens()
    if how == "error":
        story.refused()
    else:
        story.told("notifications/cancelled", requestId="another")
        story.told("notifications/cancelled", requestId=story.ids)
    assert "though the subscription had ended" in text(story.later(9_000).fence())


def test_a_client_that_listens_late_hears_from_then_on() -> None:
    story = Story().modern().lists("a@1", ttlMs=60_000).listens().needs("a@1")
    story.told(CHANGED, _meta={TAG: story.ids}).fence()
    assert "though a change was announced" in text(story.needs("a@1"))


def test_a_legacy_server_has_no_subscriptions() -> None:
    story = Story().legacy().asked("subscriptions/listen").refused(-32601)
    assert left(story.lists("a@1").needs("a@1").later(9_000).fence()) is None


def test_no_connection_is_owed_to_a_server_without_a_common_version() -> None:
    data = {"supported": ["2099-01-01"]}
    story = Story().asked("server/discover", **META).refused(-32022, data=data)
    story.add("close", "memory-1").ask().nothing().later(9_000).fence()
    assert left(story) is None
    listed = Story().asked("server/discover", **META)
    listed.served(supportedVersions=["2099-01-01"], capabilities={}).add("close", "memory-1")
    assert left(listed.ask().nothing().later(9_000).fence()) is None
    stopped = Story().legacy().ask("stop", None).add("close", "memory-1")
    assert left(stopped.ask("stop", None).ask().nothing().later(9_000).fence()) is None


# --- what else may happen to a list ---------------------------------------------------------------


def test_a_page_may_be_asked_for_twice_but_not_made_up() -> None:
    story = Story().legacy().lists("a@1", following="two").asked("tools/list", cursor="two")
    story.asked("tools/list", cursor="two").page("b@1").page("b@1", of=3)
    assert left(story.needs("a@1", "b@1")) is None
    assert left(Story().legacy().asked("tools/list", cursor=3).refused()) is None


def test_a_page_may_be_renewed_where_the_way_to_it_is_not_known() -> None:
    story = Story().legacy().lists("a@1", following="two").lists("a@2", following="other")
    story.asked("tools/list", cursor="two").refused(-32602).asked("tools/list", cursor="two")
    assert left(story.refused(-32602)) is None
    turning = Story().legacy().lists("a@1", following="two").lists("a@1", following="again")
    turning.asked("tools/list", cursor="again").page("b@1", following="again")
    turning.asked("tools/list", cursor="again").refused()
    turning.asked("tools/list", cursor="two").refused()
    turning.asked("tools/list", cursor="two").page("c@1", following="more")
    assert left(turning) is None
    assert "which only an answer held that belongs to no listing" in text(turning.needs("c@1"))


def test_a_page_may_not_be_renewed_of_a_kind_that_is_gone() -> None:
    story = Story().legacy().lists("a@1", following="two").asked("tools/list", cursor="two")
    story.page("b@1").asked("tools/list").refused(-32601).asked("tools/list", cursor="two")
    assert left(story) is None


def test_of_two_definitions_of_a_name_either_will_do() -> None:
    schema: dict[str, Any] = {"inputSchema": {}}
    both = [tool(label) | schema for label in ("a@1", "a@2")]
    for label in ("a@1", "a@2"):
        story = Story().legacy().asked("tools/list").served(tools=both)
        assert left(story.needs(label)) is None
    assert left(Story().legacy().asked("tools/list").served(tools=both).needs("b@1")) is not None


def test_a_resource_without_a_name_is_known_by_its_key() -> None:
    story = Story().legacy({"resources": {}}).asked("resources/list")
    story.served(resources=[{"uri": "x:y"}]).ask(kind="resources")
    story.add(
        "answer",
        **{"ask": story.asks, "op": "need", "kind": "resources"},
        ok={"items": [{"name": "x:y", "description": ""}]},
    )
    assert left(story) is None


def test_a_frame_that_the_case_wrote_may_be_an_answer() -> None:
    story = Story().legacy().asked("tools/list")
    answer = '{"id": 2, "result": {"tools": [{"name": "a", "inputSchema": {}}]}}'
    story.add("out", story.pipe, {"relist-text": answer}).ask()
    items = [{"name": "a", "description": ""}]
    story.add("answer", ask=story.asks, op="need", kind="tools", ok={"items": items})
    assert left(story) is None


def test_an_answer_that_holds_no_list_at_all() -> None:
    for result in ("text", {"tools": 3}, {"nextCursor": 3, "tools": None}):
        story = Story().legacy().asked("tools/list")
        story.add("out", story.pipe, {"id": story.ids, "result": result})
        assert "no listing was empty" in text(story.needs())
    assert left(Story().legacy().needs()) is None


def test_a_walk_that_is_open_at_a_fence_may_end_later() -> None:
    story = Story().legacy().asked("tools/list").ask().later(9_000).fence()
    assert left(story) is None


def test_what_was_only_believed_was_not_needed() -> None:
    story = Story().legacy().lists("a@1").told(CHANGED)
    story.ask("believe").offered("a@1", op="believe").fence()
    assert left(story) is None
    assert "called fresh" in text(story.ask("believe").offered("a@1", op="believe"))


# --- what nobody can read -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        {"ok": None},
        {"ok": {"items": 3}},
        {"ok": {"items": [3]}},
        {"ok": {"items": []}, "kind": "nothing"},
        {"ok": {"items": []}, "op": "idle"},
        {"ok": {"items": []}, "ask": 99},
    ],
)
def test_an_answer_that_says_nothing(answer: dict[str, Any]) -> None:
    story = Story().legacy().lists("a@1").ask()
    story.add("answer", **{"ask": story.asks, "op": "need", "kind": "tools", **answer})
    assert left(story) is None


def test_calls_that_cannot_be_told_apart_are_not_judged() -> None:
    planned = {"name": "a", "arguments": {}, "planned": tool("a@1")}
    story = Story().legacy().lists("a@2").needs("a@2")
    story.ask("call", None, **planned).ask("call", None, **planned)
    assert left(story.asked("tools/call", name="a", arguments={})) is None
    unshown = Story().legacy().ask("call", None, **planned).asked("tools/call", name="a")
    assert left(unshown) is None
    told = Story().legacy().lists("a@1").needs("a@1").ask("call", None, **planned)
    told.asked("tools/call", name="a").served(content=[])
    told.add("answer", ask=told.asks, op="call", name="a", ok={"outcome": "result"})
    assert left(told.asked("tools/call", name=3)) is None


def test_messages_and_codes_of_the_wrong_type_are_passed_over() -> None:
    story = Http()
    story.legacy()
    story.status(True).add("status", "nowhere", code=404).add("close", "nowhere")
    story.add("in", story.pipe, None, malformed="{").add("out", story.pipe, {"id": 3})
    story.add("in", story.pipe, {"id": "never asked", "result": {}}).told("unknown")
    assert left(story) is None


def test_an_answer_about_the_link_that_was_cut_hides_everything() -> None:
    story = Story().asked("initialize")
    story.add("out", story.pipe, {"id": story.ids, "relist-cut": True})
    assert left(story.asked("tools/list").page("a@1").needs("x@1")) is None
