"""The reference client: Relist's own live catalogs, judged like any other client."""

import json
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import anyio
from mcp import MCPError
from mcp_types import CallToolResult, GetPromptResult, ReadResourceResult

from relist import __version__
from relist.machine import Hit, Reading
from relist.policy import Policy
from relist.values import Item, Kind, LinkPhase
from relist_conformance.drivers.base import OPS, OPTIONAL, Answer, Connection, Target, run_driver
from relist_mcp import CallRefused, Catalogs, Credentials, Http, NotConnected, Stdio
from relist_mcp.refusals import InvalidResult, Rejected

NEED_LIMIT_S = 20.0
_STATES = {
    Hit.HIT: "fresh",
    Hit.EXPIRED: "stale",
    Hit.DOUBTED: "stale",
    Hit.MISS: "unknown",
    Hit.UNSUPPORTED: "unsupported",
}


class ReferenceConnection(Connection):
    """One ``Catalogs`` on one server."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._catalogs: Catalogs | None = None
        self._shown: dict[tuple[str, Any], int] = {}
        """In which generation the application was shown a tool of this name and description."""

    async def run(self, usable: Callable[[], None]) -> None:
        """Keep the catalogs correct until stopped."""
        async with Catalogs.connect(_server(self.target), policy=_policy(self.target)) as catalogs:
            self._catalogs = catalogs
            usable()
            await anyio.sleep_forever()

    async def need(self, kind: str) -> Answer:
        """The list, refreshed first if it is expired, doubted or missing."""
        with anyio.move_on_after(NEED_LIMIT_S):
            return self._told(kind, await self._open().get(Kind(kind)))
        return self.believe(kind)

    def believe(self, kind: str) -> Answer:
        """The snapshot held, and how good it is."""
        return _answer(self._open().read(Kind(kind)))

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Call a tool: through the gate where the list is good and has it, else past the gate.

        The suite calls while it holds lists back, where the gate would wait: such a call could not
        be a fence. Calls that are to be withheld come to ``call_planned``.
        """
        reading = self._open().read(Kind.TOOLS)
        items = () if reading.snapshot is None else reading.snapshot.items
        if reading.hit is Hit.HIT and any(item.key == name for item in items):
            return await _outcome(self._open().call_tool(name, arguments))
        return await _outcome(self._call_ungated(name, arguments))

    async def _call_ungated(self, name: str, arguments: Mapping[str, Any]) -> CallToolResult:
        params = {"name": name, "arguments": dict(arguments)}
        raw = await self._open().request("tools/call", params, name=name)
        return CallToolResult.model_construct(is_error=bool(raw.get("isError")))

    async def call_planned(
        self, name: str, arguments: Mapping[str, Any], planned: Mapping[str, Any]
    ) -> Answer:
        """Call a tool through the gate, as planned on the newest list that showed it so."""
        generation = self._shown.get((name, planned.get("description")), 0)
        return await _outcome(self._open().call_tool(name, arguments, planned=generation or None))

    async def read(self, uri: str) -> Answer:
        """What the resource contains, from memory where that is fresh."""
        return await _outcome(self._open().read_resource(uri))

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> Answer:
        """The prompt rendered, if it is still there."""
        return await _outcome(self._open().get_prompt(name, arguments))

    async def subscribe(self, uri: str) -> Answer:
        """Hear of updates; contents that are kept are doubted by them."""
        self._open().subscribe(uri)
        return {}

    async def unsubscribe(self, uri: str) -> Answer:
        """Hear of them no more."""
        self._open().unsubscribe(uri)
        return {}

    async def refresh(self, kind: str) -> Answer:
        """The list as of a walk begun after this command."""
        with anyio.move_on_after(NEED_LIMIT_S):
            return self._told(kind, await self._open().refresh(Kind(kind)))
        return self.believe(kind)

    async def credentials(self, token: str) -> Answer:
        """Go on with this token: a header over HTTP, environment of a process."""
        headers, env = {"authorization": f"Bearer {token}"}, {"RELIST_TOKEN": token}
        self._open().change_credentials(Credentials(headers=headers, env=env))
        return {}

    async def idle(self) -> Answer:
        """True once every catalog is settled."""
        await self._open().idle()
        return {"idle": True}

    def _told(self, kind: str, reading: Reading) -> Answer:
        answer, snapshot = _answer(reading), reading.snapshot
        if snapshot is not None and kind == Kind.TOOLS.value:
            for item in answer["items"]:
                self._shown[item["name"], item["description"]] = snapshot.generation
        return answer

    def _open(self) -> Catalogs:
        if self._catalogs is None:
            raise NotConnected(LinkPhase.CLOSED.value)
        return self._catalogs


async def _outcome(use: Awaitable[CallToolResult | ReadResourceResult | GetPromptResult]) -> Answer:
    """How the use of a tool, resource or prompt ended, and the text that it gave."""
    try:
        result = await use
    except Rejected as error:
        return {"outcome": "error", "detail": str(error)}
    except (CallRefused, InvalidResult, NotConnected) as error:
        return {"outcome": "refused", "detail": type(error).__name__}
    except MCPError as error:
        return {"outcome": "error", "detail": str(error)}
    match result:
        case CallToolResult():
            return {"outcome": "error" if result.is_error else "result"}
        case ReadResourceResult():
            return {"outcome": "result", "text": _text(result.contents)}
        case GetPromptResult():
            return {"outcome": "result", "text": _text(m.content for m in result.messages)}


def _text(parts: Iterable[object]) -> str:
    return "".join(str(getattr(part, "text", "")) for part in parts)


def _server(target: Target) -> Stdio | Http:
    if target.command is None:
        return Http(target.url or "")
    return Stdio(target.command, dict(target.env))


def _policy(target: Target) -> Policy:
    seed = os.urandom(16)
    if target.request_timeout_ms is None:
        return Policy(seed=seed)
    return Policy(seed=seed, request_limit_ms=target.request_timeout_ms)


def _answer(reading: Reading) -> Answer:
    snapshot = reading.snapshot
    items = None if snapshot is None else [_listed(item) for item in snapshot.items]
    return {"items": items, "state": _STATES[reading.hit]}


def _listed(item: Item) -> dict[str, str]:
    entry = json.loads(item.canonical_json)
    return {"name": entry.get("name", item.key), "description": entry.get("description") or ""}


def main() -> None:
    """Run the driver."""
    offered = (*OPS, *(op for op in OPTIONAL if op != "advance"), "planned")
    run_driver({"name": "relist", "version": __version__, "ops": offered}, ReferenceConnection)


if __name__ == "__main__":
    main()
