"""What is written on the wire: params, metadata and headers in the manner of each era."""

from typing import Any

import pytest
from mcp_types import JSONRPCRequest

from relist import effects as e
from relist.effects import RequestEffect
from relist.values import Channel, Era, Kind
from relist_mcp.speech import Frame, Voice
from support.brain import LEGACY, MODERN

rule = pytest.mark.rule
CLIENT = {"name": "client", "version": "1"}
ABLE: dict[str, Any] = {"roots": {}}
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": ABLE,
}
FIRST, NEXT = e.RequestPage(Kind.TEMPLATES, 1, None), e.RequestPage(Kind.TOOLS, 2, "")
LISTEN = e.OpenListen(3, frozenset({Channel.TOOLS, Channel.RESOURCES}))


def voice(era: Era | None = None, version: str = "") -> Voice:
    speaker = Voice(CLIENT, ABLE)
    speaker.settle(era, version)
    return speaker


def written(frame: Frame) -> tuple[str, dict[str, Any]]:
    """Method and params of a request."""
    assert isinstance(frame.message, JSONRPCRequest)
    return frame.message.method, dict(frame.message.params or {})


@rule("LIFE-09")
@rule("LIFE-01")
def test_a_handshake_names_version_capabilities_and_client() -> None:
    frame = voice().request("1", e.RequestInitialize(1, LEGACY))
    offer = {"protocolVersion": LEGACY, "capabilities": ABLE, "clientInfo": CLIENT}
    assert written(frame) == ("initialize", offer)
    assert frame.headers == {}


@rule("DISC-34")
@rule("LIFE-20")
@rule("LIFE-21")
@rule("LIFE-22")
@rule("LIFE-23")
@pytest.mark.parametrize(
    ("effect", "method"),
    [
        (e.RequestDiscover(1, MODERN), "server/discover"),
        (FIRST, "resources/templates/list"),
        (NEXT, "tools/list"),
        (LISTEN, "subscriptions/listen"),
    ],
)
def test_each_modern_request_stands_for_itself(effect: RequestEffect, method: str) -> None:
    frame = voice(Era.MODERN, MODERN).request("1", effect)
    found, params = written(frame)
    assert (found, params["_meta"]) == (method, META)
    assert frame.headers == {"mcp-protocol-version": MODERN, "mcp-method": method}


@rule("LIFE-23")
def test_what_a_modern_request_is_about_is_named() -> None:
    params, headers = voice(Era.MODERN, MODERN).envelope("tools/call", {"name": "a"}, "a")
    assert params == {"name": "a", "_meta": META}
    assert headers["mcp-name"] == "a"


@rule("LIFE-06")
@rule("LIFE-07")
def test_a_legacy_request_carries_its_version_and_nothing_newer() -> None:
    frame = voice(Era.LEGACY, LEGACY).request("1", NEXT)
    assert written(frame) == ("tools/list", {"cursor": ""})
    assert frame.headers == {"mcp-protocol-version": LEGACY}


@rule("DISC-02")
@rule("TTL-33")
def test_a_page_is_asked_for_by_its_cursor_alone() -> None:
    for effect, params in ((FIRST, {}), (NEXT, {"cursor": ""})):
        _, asked = written(voice(Era.MODERN, MODERN).request("1", effect))
        assert asked == {**params, "_meta": META}


@rule("SUB-02")
@rule("SUB-03")
@rule("SUB-04")
def test_a_filter_names_what_is_wanted_and_nothing_else() -> None:
    _, params = written(voice(Era.MODERN, MODERN).request("1", LISTEN))
    assert params["notifications"] == {"toolsListChanged": True, "resourcesListChanged": True}


@rule("FAIL-11")
@rule("SUB-17")
def test_a_cancellation_names_its_request() -> None:
    message = voice(Era.MODERN, MODERN).cancel("relist/listen/3", "why").message
    assert message.method == "notifications/cancelled"
    assert (message.params or {})["requestId"] == "relist/listen/3"
