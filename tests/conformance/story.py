"""Histories made by hand, in the words of what happens: for tests of the replay."""

import re
from typing import Any

from relist.check.deviation import Deviation, first_deviation
from relist.check.history import Event, EventKind

LEGACY, MODERN = "2025-11-25", "2026-07-28"
META = {"_meta": {"io.modelcontextprotocol/protocolVersion": MODERN}}
TAG = "io.modelcontextprotocol/subscriptionId"
CHANGED = "notifications/tools/list_changed"
TOOLS = {"tools": {"listChanged": True}}


class Story:
    """A history under construction, on one pipe."""

    def __init__(self, channel_kind: str = "memory") -> None:
        self.events: list[Event] = []
        self.now_ms = 0
        self.ids = 0
        self.asks = 0
        self.pipe = ""
        self.add("ask", ask=0, op="connect")
        self.open(channel_kind)

    def add(
        self, kind: EventKind, channel: str = "", message: Any = None, /, **data: Any
    ) -> "Story":
        self.events.append(Event(len(self.events), self.now_ms, kind, channel, message, data))
        return self

    def open(
        self, kind: str = "memory", headers: dict[str, str] | None = None, **more: Any
    ) -> "Story":
        self.pipe = f"{kind}-{len(self.events)}"
        return self.add("open", self.pipe, channel_kind=kind, headers=headers or {}, **more)

    def later(self, ms: int) -> "Story":
        self.add("step", op="advance")
        self.now_ms += ms
        return self.add("step", op="need")

    # --- the wire ---

    def asked(self, method: str, **params: Any) -> "Story":
        self.ids += 1
        return self.add("in", self.pipe, {"id": self.ids, "method": method, "params": params})

    def says(self, method: str, **params: Any) -> "Story":
        return self.add("in", self.pipe, {"method": method, "params": params})

    def served(self, request_id: int | None = None, **result: Any) -> "Story":
        answer = {"id": self.ids if request_id is None else request_id, "result": result}
        return self.add("out", self.pipe, answer)

    def refused(self, code: int = -32603, **more: Any) -> "Story":
        error = {"code": code, "message": "no", **more}
        return self.add("out", self.pipe, {"id": self.ids, "error": error})

    def told(self, method: str, **params: Any) -> "Story":
        return self.add("out", self.pipe, {"method": method, "params": params})

    def page(
        self, *labels: str, following: str | None = None, of: int | None = None, **more: Any
    ) -> "Story":
        tools = [tool(label) | {"inputSchema": {"type": "object"}} for label in labels]
        cursor = {} if following is None else {"nextCursor": following}
        return self.served(of, tools=tools, **cursor, **more)

    def status(self, code: int) -> "Story":
        """A bare HTTP answer on the channel of the last request."""
        return self.add("status", self.pipe, code=code)

    # --- the application ---

    def ask(self, op: str = "need", kind: str | None = "tools", **more: Any) -> "Story":
        self.asks += 1
        about = {} if kind is None else {"kind": kind}
        return self.add("ask", ask=self.asks, op=op, **about, **more)

    def offered(
        self, *labels: str, op: str = "need", kind: str = "tools", state: str = "fresh"
    ) -> "Story":
        ok = {"items": [tool(label) for label in labels], "state": state}
        return self.add("answer", ask=self.asks, op=op, kind=kind, ok=ok)

    def nothing(self, op: str = "need") -> "Story":
        ok = {"items": None, "state": "unknown"}
        return self.add("answer", ask=self.asks, op=op, kind="tools", ok=ok)

    def fence(self) -> "Story":
        return self.add("step", op="fence").add("fence", passed=True, by="call")

    # --- how stories begin ---

    def legacy(self, capabilities: Any = TOOLS) -> "Story":
        self.asked("initialize")
        self.served(protocolVersion=LEGACY, capabilities=capabilities)
        return self.says("notifications/initialized")

    def modern(self, capabilities: Any = TOOLS) -> "Story":
        self.asked("server/discover", **META)
        return self.served(supportedVersions=[MODERN], capabilities=capabilities, ttlMs=60_000)

    def listens(self) -> "Story":
        self.asked("subscriptions/listen", **META, notifications={"toolsListChanged": True})
        granted = {"notifications": {"toolsListChanged": True}}
        acknowledged = "notifications/subscriptions/acknowledged"
        return self.told(acknowledged, _meta={TAG: self.ids}, **granted)

    def lists(self, *labels: str, **more: Any) -> "Story":
        return self.asked("tools/list", **META).page(*labels, **more)

    def needs(self, *labels: str, state: str = "fresh") -> "Story":
        return self.ask().offered(*labels, state=state)


def tool(label: str) -> dict[str, Any]:
    return {"name": label.rpartition("@")[0], "description": label}


def left(story: Story) -> Deviation | None:
    return first_deviation(story.events)


def text(story: Story) -> str:
    """What is said of the last event, with numbers left out."""
    found = left(story)
    assert found is not None
    assert found.seq == story.events[-1].seq
    return re.sub(r"#\d+", "#", found.text)


class Http(Story):
    """The same over HTTP: each request has a channel of its own, with these headers."""

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}
        self.principal: dict[str, str] = {}
        super().__init__("get")

    def asked(self, method: str, **params: Any) -> "Story":
        self.open("post", self.headers, **self.principal)
        return super().asked(method, **params)

    def says(self, method: str, **params: Any) -> "Story":
        self.open("post", self.headers, **self.principal)
        super().says(method, **params)
        return self.status(202)

    def legacy(self, capabilities: Any = TOOLS) -> "Story":
        super().legacy(capabilities)
        self.headers = {"mcp-session-id": "s1"}
        return self

    def stream(self) -> str:
        """The client opens a stream of notices; its channel."""
        self.open("get", self.headers)
        return self.pipe
