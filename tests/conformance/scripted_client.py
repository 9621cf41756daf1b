"""A small client in this process, correct or broken on purpose, with its driver.

It lists on access: nothing happens by itself, so that a virtual clock is enough. ``Fault`` names
what it can get wrong.
"""

from collections.abc import Mapping
from typing import Any, Literal

import anyio
from anyio.abc import TaskGroup

from conformance.scripted_links import GONE, Link, Message, open_link
from relist.check.history import LIST_METHODS
from relist_conformance.errors import DriverReplyError

Fault = Literal[
    "first-page-only",
    "empty-cursor-ends",
    "deaf",
    "notice-forgotten",
    "emptied-by-failure",
    "late-answer-wins",
    "asks-undeclared",
    "never-reconnects",
    "keeps-list-over-reconnect",
    "joins-old-pages",
]
_KEYS = {
    "tools": "tools",
    "prompts": "prompts",
    "resources": "resources",
    "resource_templates": "resourceTemplates",
}
_META: dict[str, object] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


HANDSHAKE_LIMIT_S = 60.0
"""The limit of a case is for lists: on a busy machine a new server may take longer to begin."""


class Failed(Exception):
    """An error answer, no answer in time, or no connection."""


class Session:
    """One link with the era found on it."""

    def __init__(self, link: Link, timeout_s: float, owner: "ScriptedClient") -> None:
        self.link, self.timeout_s, self.owner = link, timeout_s, owner
        self.modern = False
        self.capabilities: Mapping[str, Any] = {}
        self.waiting: dict[object, tuple[anyio.Event, list[Message]]] = {}
        self.next_id = 1

    async def read(self) -> None:
        async for message in self.link.messages:
            if "method" not in message:
                self.answered(message)
            elif "id" in message:
                await self.link.send({"jsonrpc": "2.0", "id": message["id"], "result": {}})
            elif message["method"] == "notifications/subscriptions/acknowledged":
                self.owner.acknowledged.set()
            elif message["method"].endswith("list_changed"):
                self.owner.noticed()

    def answered(self, message: Message) -> None:
        waiting = self.waiting.pop(message.get("id"), None)
        if waiting is not None:
            waiting[1].append(message)
            waiting[0].set()
        elif "late-answer-wins" in self.owner.faults and "tools" in message.get("result", {}):
            self.owner.held["tools"] = message["result"]["tools"]

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, limit_s: float | None = None
    ) -> Any:
        request_id, arrived, box = self.next_id, anyio.Event(), list[Message]()
        self.next_id += 1
        self.waiting[request_id] = arrived, box
        extra = {"params": self.meta(params)} if self.modern or params else {}
        await self.send({"jsonrpc": "2.0", "id": request_id, "method": method, **extra})
        with anyio.move_on_after(limit_s or self.timeout_s):
            await arrived.wait()
        if not box:
            self.waiting.pop(request_id, None)
            await self.link.give_up(request_id, self.modern)
            raise Failed(f"{method} timed out")
        if "error" in box[0]:
            raise Failed(box[0]["error"]["message"])
        return box[0]["result"]

    async def send(self, message: Message) -> None:
        try:
            await self.link.send(message)
        except GONE as error:
            raise Failed("connection lost") from error

    def meta(self, params: Mapping[str, Any] | None) -> dict[str, Any]:
        return {**(params or {}), **({"_meta": _META} if self.modern else {})}

    async def open(self) -> None:
        self.modern = True
        try:
            found = await self.request("server/discover", limit_s=HANDSHAKE_LIMIT_S)
            self.capabilities = found["capabilities"]
        except Failed:
            self.modern = False
            await self.shake_hands()
        else:
            await self.subscribe()

    async def shake_hands(self) -> None:
        info = {"name": "scripted", "version": "1"}
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
        welcome = await self.request("initialize", hello, HANDSHAKE_LIMIT_S)
        self.capabilities = welcome["capabilities"]
        await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        await self.link.listen()

    async def subscribe(self) -> None:
        self.owner.acknowledged = anyio.Event()
        wanted = {"notifications": {"toolsListChanged": True}}
        listen = {"id": "listen", "method": "subscriptions/listen", "params": self.meta(wanted)}
        await self.send({"jsonrpc": "2.0", **listen})
        await self.owner.acknowledged.wait()


class ScriptedClient:
    """One connection of the driver, and what the client holds."""

    def __init__(self, faults: frozenset[Fault]) -> None:
        self.faults = faults
        self.held: dict[str, list[Message]] = {}
        self.stale: set[str] = set()
        self.listing = False
        self.session: Session | None = None
        self.acknowledged = anyio.Event()
        self.scope = anyio.CancelScope()

    def noticed(self) -> None:
        if "deaf" in self.faults or (self.listing and "notice-forgotten" in self.faults):
            return
        self.stale |= set(_KEYS)

    async def run(self, target: Mapping[str, Any], timeout_s: float) -> None:
        """Connect, and again whenever the connection is lost, until cancelled."""
        with self.scope:
            while True:
                await self.run_once(target, timeout_s)
                if "never-reconnects" in self.faults:
                    await anyio.sleep_forever()
                if "keeps-list-over-reconnect" not in self.faults:
                    self.stale |= set(_KEYS)

    async def run_once(self, target: Mapping[str, Any], timeout_s: float) -> None:
        async with anyio.create_task_group() as tasks, open_link(target, tasks) as link:
            session = Session(link, timeout_s, self)
            tasks.start_soon(session.read)
            await session.open()
            self.session = session
            await link.lost.wait()
            self.session = None
            tasks.cancel_scope.cancel()

    async def connected(self) -> Session:
        while self.session is None:
            if "never-reconnects" in self.faults and self.held:
                raise Failed("connection lost")
            await anyio.sleep(0.01)
        return self.session

    async def need(self, kind: str) -> list[Message] | None:
        try:
            session = await self.connected()
            capability = "resources" if kind == "resource_templates" else kind
            declared = capability in session.capabilities
            if not declared and "asks-undeclared" not in self.faults:
                return None
            for _ in range(3):
                if kind in self.held and kind not in self.stale:
                    break
                self.stale.discard(kind)
                await self.list(session, kind)
        except Failed:
            self.stale.add(kind)
            if "emptied-by-failure" in self.faults:
                self.held[kind] = []
            if kind not in self.held:
                raise
        return self.held[kind]

    async def list(self, session: Session, kind: str) -> None:
        items: list[Message] = []
        cursor: str | None = None
        self.listing = True
        try:
            while True:
                params = None if cursor is None else {"cursor": cursor}
                page = await session.request(LIST_METHODS[kind], params)
                items += page[_KEYS[kind]]
                cursor = page.get("nextCursor")
                if cursor is None or "first-page-only" in self.faults:
                    break
                if cursor == "" and "empty-cursor-ends" in self.faults:
                    break
                if kind in self.held and "joins-old-pages" in self.faults:
                    items += self.held[kind][len(items) :]
                    break
        finally:
            self.listing = False
        self.held[kind] = items


class ScriptedDriver:
    """The driver of scripted clients. Give ``ask`` to ``play``; leave the block to end all."""

    def __init__(self, tasks: TaskGroup, *faults: Fault) -> None:
        self.tasks = tasks
        self.faults = frozenset(faults)
        self.clients: dict[object, ScriptedClient] = {}

    async def ask(self, op: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        connection = fields["connection"]
        if op == "connect":
            client = self.clients[connection] = ScriptedClient(self.faults)
            timeout_s = fields.get("request_timeout_ms", 5_000) / 1000
            self.tasks.start_soon(client.run, fields["target"], timeout_s)
            return {}
        client = self.clients[connection]
        try:
            return await self.perform(client, op, fields)
        except Failed as error:
            raise DriverReplyError(str(error)) from None

    async def perform(
        self, client: ScriptedClient, op: str, fields: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        match op:
            case "need":
                return {"items": _told(await client.need(fields["kind"]))}
            case "believe":
                return {"items": _told(client.held.get(fields["kind"])), "state": "fresh"}
            case "call":
                session = await client.connected()
                await session.request("tools/call", {"name": fields["name"], "arguments": {}})
                return {"outcome": "result"}
            case "idle":
                return {"idle": not client.listing}
            case _:
                client.scope.cancel()
                return {}


def _told(items: list[Message] | None) -> list[Message] | None:
    if items is None:
        return None
    return [{key: item[key] for key in ("name", "description")} for item in items]
