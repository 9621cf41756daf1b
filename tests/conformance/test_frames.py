"""The judge on single frames: how they look, their ids, and what is cancelled."""

from typing import Any

import pytest

from conformance.test_judge import COMMON, LIST, UNKNOWN, Made, word
from relist.check.expect import DistinctIds, Each, Uncancelled, WellFormed
from relist.check.history import RequestMatch

SESSION = "mcp-session-id"


class Wire(Made):
    """A history of frames, each on a channel of its own kind."""

    def pipe(self, channel: str) -> "Wire":
        self.add("open", channel, channel_kind="stdio", headers={})
        return self

    def sent(self, channel: str, request_id: Any, method: str = "tools/list") -> "Wire":
        self.add("in", channel, {"id": request_id, "method": method})
        return self

    def posted(self, channel: str, request_id: Any, **headers: str) -> "Wire":
        told = {key.replace("_", "-"): value for key, value in headers.items()}
        self.add("open", channel, channel_kind="post", headers=told)
        return self.sent(channel, request_id)

    def answered(self, channel: str, request_id: Any) -> "Wire":
        self.add("out", channel, {"id": request_id, "result": {}})
        return self

    def said(self, channel: str, **message: Any) -> "Wire":
        self.add("in", channel, message)
        return self


def test_each_request_is_like_this() -> None:
    each = Each(request=LIST, like=RequestMatch(headers={SESSION: None}), **COMMON)
    assert word(Wire().posted("a", 1).posted("b", 2), each) == "pass"
    made = Wire().posted("a", 1).posted("b", 2, mcp_session_id="s")
    assert made.held_against(each).findings[0].witness == (3,)
    assert word(Wire(), each) == UNKNOWN


ONCE = DistinctIds(among="session", **COMMON)


@pytest.mark.parametrize(
    ("made", "verdict"),
    [
        (Wire().pipe("a").sent("a", 1).answered("a", 1).sent("a", 2), "pass"),
        (Wire().pipe("a").sent("a", 1).answered("a", 1).sent("a", 1), "fail"),
        (Wire().pipe("a").sent("a", 1).sent("a", "1"), "pass"),
        (Wire().pipe("a").sent("a", 1).pipe("b").sent("b", 1), "pass"),
        (Wire().posted("a", 1, mcp_session_id="s").posted("b", 1, mcp_session_id="s"), "fail"),
        (Wire().posted("a", 1, mcp_session_id="s").posted("b", 1, mcp_session_id="t"), "pass"),
        (Wire().posted("a", 1).posted("b", 1), "pass"),
        (Wire().pipe("a").sent("a", 1).said("a", id=1, result={}), "pass"),
    ],
)
def test_an_id_is_used_once_in_a_session(made: Wire, verdict: str) -> None:
    assert word(made, ONCE) == verdict


def test_an_id_that_was_used_before_the_mark_is_free() -> None:
    begun = DistinctIds(among="session", **{**COMMON, "since": "begun"})
    probed = Wire().pipe("a").sent("a", 1, "server/discover")
    probed.mark("begun")
    assert word(probed.sent("a", 1), begun) == "pass"
    assert word(probed.sent("a", 1), begun) == "fail"


OPEN = DistinctIds(among="open", **COMMON)
CANCELLED: dict[str, Any] = {"method": "notifications/cancelled", "params": {"requestId": 1}}


@pytest.mark.parametrize(
    ("made", "verdict"),
    [
        (Wire().pipe("a").sent("a", 1).answered("a", 1).sent("a", 1), "pass"),
        (Wire().pipe("a").sent("a", 1).sent("a", 1), "fail"),
        (Wire().pipe("a").sent("a", 1).answered("a", "1").sent("a", 1), "fail"),
        (Wire().pipe("a").sent("a", 1).said("a", **CANCELLED).sent("a", 1), "pass"),
        (Wire().pipe("a").sent("a", 1).pipe("b").sent("b", 1), "pass"),
        (Wire().posted("a", 1).posted("b", 1), "fail"),
        (Wire().posted("a", 1).answered("a", 1).posted("b", 1), "pass"),
    ],
)
def test_an_id_is_not_that_of_an_open_request(made: Wire, verdict: str) -> None:
    assert word(made, OPEN) == verdict


@pytest.mark.parametrize("end", ["close", "cut", "status"])
def test_the_end_of_its_channel_ends_a_request(end: Any) -> None:
    assert word(Wire().posted("a", 1).add(end, "a").add(end, "z"), OPEN) == "pass"
    made = Wire().posted("a", 1)
    made.add(end, "a")
    assert word(made.posted("b", 1), OPEN) == "pass"


FORMED = WellFormed(**COMMON)


def test_who_was_not_asked_does_not_answer() -> None:
    answer: dict[str, Any] = {"id": "p", "result": {}}
    assert (
        word(Wire().add("out", "a", {"id": "p", "method": "ping"}).add("in", "a", answer), FORMED)
        == "pass"
    )
    assert word(Wire().add("in", "a", answer), FORMED) == "fail"
    assert (
        word(Wire().add("out", "a", {"method": "notice"}).add("in", "a", answer), FORMED) == "fail"
    )
    assert word(Wire().add("in", "a", malformed="null"), FORMED) == "fail"


def test_a_request_is_not_cancelled() -> None:
    uncancelled = Uncancelled(request=LIST, **COMMON)
    assert word(Wire().pipe("a").sent("a", 1), uncancelled) == "pass"
    assert word(Wire().pipe("a").sent("a", 1).said("a", **CANCELLED), uncancelled) == "fail"
    assert word(Wire().pipe("a").sent("a", "1").said("a", **CANCELLED), uncancelled) == "pass"
    assert word(Wire().pipe("a").sent("a", 1).said("b", **CANCELLED), uncancelled) == "pass"
    assert word(Wire().posted("a", 1).said("b", **CANCELLED), uncancelled) == "fail"
