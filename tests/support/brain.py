"""A scripted MCP server of both eras, as raw frames: what it answers, holds back, and has seen.

``pipe.py`` and ``web.py`` are its two transports. It is deliberately naive: it answers whatever it
is asked, in whatever state, so that tests decide what goes wrong.
"""

from collections.abc import Callable
from typing import Any

import anyio

from relist.values import Channel

Frame = dict[str, Any]
MODERN, LEGACY = "2026-07-28", "2025-11-25"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"

_FILTERS = {
    Channel.TOOLS: "toolsListChanged",
    Channel.PROMPTS: "promptsListChanged",
    Channel.RESOURCES: "resourcesListChanged",
}
_LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
UNKNOWN_METHOD: Frame = {"error": {"code": -32601, "message": "Method not found"}}


def tool(name: str, **more: Any) -> Frame:
    """A tool as it is listed."""
    return {"name": name, "inputSchema": {"type": "object"}, **more}


class Brain:
    """``lists`` holds the entries by field name; ``page_size`` cuts them into pages.

    ``hold``: methods that are not answered by themselves; their requests wait in ``held``.
    ``answers``: a method's own answer, as a body with ``result`` or ``error``, or None for silence.
    """

    def __init__(self, era: str = MODERN, *tools: str, page_size: int = 100) -> None:
        self.era = era
        self.lists: dict[str, list[Frame]] = {"tools": [tool(name) for name in tools]}
        self.page_size = page_size
        self.push = True
        self.subscribe = False  # whether updates of single resources can be had
        self.hints: Frame = {"resultType": "complete", "ttlMs": 3_600_000, "cacheScope": "public"}
        self.hold: set[str] = set()
        self.held: list[Frame] = []
        self.answers: dict[str, Callable[[Frame], Frame | None]] = {}
        self.seen: list[Frame] = []
        self.listens: list[Frame] = []
        self._moved = anyio.Event()

    def set_tools(self, *names: str) -> None:
        """Replace the tools; nobody is told."""
        self.lists["tools"] = [tool(name) for name in names]

    # --- what was seen ----------------------------------------------------------------------------

    def count(self, method: str) -> int:
        """How many frames of this method have come."""
        return sum(frame.get("method") == method for frame in self.seen)

    def params(self, method: str) -> list[Frame]:
        """The params of each frame of this method."""
        return [frame.get("params", {}) for frame in self.seen if frame.get("method") == method]

    async def until(self, condition: Callable[[], Any]) -> None:
        """Wait until a frame has made the condition true."""
        while not condition():
            await self._moved.wait()

    async def until_seen(self, method: str, count: int = 1) -> None:
        """Wait until this many frames of the method have come."""
        await self.until(lambda: self.count(method) >= count)

    async def until_held(self, method: str) -> Frame:
        """Wait for a held request of this method, and take it."""
        await self.until(lambda: any(frame["method"] == method for frame in self.held))
        found = next(frame for frame in self.held if frame["method"] == method)
        self.held.remove(found)
        return found

    def stir(self) -> None:
        """Something happened that ``until`` may wait for."""
        self._moved.set()
        self._moved = anyio.Event()

    # --- what is answered -------------------------------------------------------------------------

    def take(self, frame: Frame) -> Frame | None:
        """The answer to a frame; None if there is none, or none yet."""
        self.seen.append(frame)
        self.stir()
        if "method" not in frame or "id" not in frame:
            return None
        if frame["method"] in self.hold:
            self.held.append(frame)
            return None
        return self.answer(frame)

    def answer(self, frame: Frame) -> Frame | None:
        """The answer to a request, whether it was held or not."""
        method = frame["method"]
        body = self.answers[method](frame) if method in self.answers else self._body(frame)
        return None if body is None else {"jsonrpc": "2.0", "id": frame["id"], **body}

    def _body(self, frame: Frame) -> Frame | None:
        method, params = frame["method"], frame.get("params", {})
        if method in _LISTS:
            return {"result": self.page(_LISTS[method], params.get("cursor"))}
        if method == "ping":
            return {"result": {}}
        if method == "tools/call":
            return {"result": {"content": [{"type": "text", "text": params["name"]}]}}
        if method == "prompts/get":
            content = {"type": "text", "text": params["name"]}
            return {"result": {"messages": [{"role": "user", "content": content}]}}
        if method == "resources/read":
            contents = [{"uri": params["uri"], "text": f"read {self.count(method)}"}]
            return {"result": {"contents": contents, **(self.hints if self.era == MODERN else {})}}
        if self.era == LEGACY and method in ("resources/subscribe", "resources/unsubscribe"):
            return {"result": {}}
        if self.era == MODERN and method == "server/discover":
            return {"result": self.discovery()}
        if self.era == MODERN and method == "subscriptions/listen":
            self.listens.append(frame)
            return None
        if self.era == LEGACY and method == "initialize":
            return {"result": self.greeting()}
        return UNKNOWN_METHOD

    def page(self, field: str, cursor: str | None) -> Frame:
        """One page of a list; cursors are offsets."""
        entries, start = self.lists.get(field, []), int(cursor or 0)
        end = start + self.page_size
        result: Frame = {field: entries[start:end], **(self.hints if self.era == MODERN else {})}
        return {**result, "nextCursor": str(end)} if end < len(entries) else result

    def capabilities(self) -> Frame:
        """Every kind that has a list; templates go with resources."""
        flag = {"listChanged": True} if self.push else {}
        kinds = {field: dict(flag) for field in self.lists if field != "resourceTemplates"}
        if self.subscribe:
            kinds["resources"]["subscribe"] = True
        return kinds

    def discovery(self) -> Frame:
        """The result of server/discover."""
        return {
            "resultType": "complete",
            "supportedVersions": [MODERN],
            "capabilities": self.capabilities(),
            "serverInfo": {"name": "scripted", "version": "1"},
            "ttlMs": 0,
            "cacheScope": "private",
        }

    def greeting(self) -> Frame:
        """The result of initialize."""
        return {
            "protocolVersion": LEGACY,
            "capabilities": self.capabilities(),
            "serverInfo": {"name": "scripted", "version": "1"},
        }

    def acknowledgement(self, listen: Frame, grant: Frame | None = None) -> Frame:
        """The acknowledgement of a listen request; it grants all that was asked for by itself."""
        granted = listen["params"]["notifications"] if grant is None else grant
        meta = {SUBSCRIPTION: listen["id"]}
        return notice("notifications/subscriptions/acknowledged", notifications=granted, _meta=meta)

    def change(self, channel: Channel = Channel.TOOLS) -> Frame:
        """The notice that a list has changed, tagged in the modern era."""
        method = f"notifications/{channel.value}/list_changed"
        return notice(method, **self._tag(lambda wanted: "resourceSubscriptions" not in wanted))

    def update(self, uri: str) -> Frame:
        """The notice that what this resource contains has changed, likewise."""
        tag = self._tag(lambda wanted: "resourceSubscriptions" in wanted)
        return notice("notifications/resources/updated", uri=uri, **tag)

    def _tag(self, carries: Callable[[Frame], bool]) -> Frame:
        found = [one for one in self.listens if carries(one["params"]["notifications"])]
        if self.era == LEGACY or not found:
            return {}
        return {"_meta": {SUBSCRIPTION: found[-1]["id"]}}


def notice(method: str, **params: Any) -> Frame:
    """A notification."""
    return {"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})}


def result_of(request: Frame, result: Any) -> Frame:
    """An answer with this result."""
    return {"jsonrpc": "2.0", "id": request["id"], "result": result}


def error_of(request: Frame, code: int, **data: Any) -> Frame:
    """An answer with this error."""
    error = {"code": code, "message": "scripted", **({"data": data} if data else {})}
    return {"jsonrpc": "2.0", "id": request["id"], "error": error}
