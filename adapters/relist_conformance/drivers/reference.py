"""The reference client: Relist's own live catalogs, judged like any other client."""

import json
import os
from collections.abc import Callable, Mapping
from typing import Any

import anyio
from mcp import MCPError

from relist import __version__
from relist.machine import Hit, Reading
from relist.policy import Policy
from relist.values import Item, Kind, LinkPhase
from relist_conformance.drivers.base import OPS, Answer, Connection, Target, run_driver
from relist_mcp import CallRefused, Catalogs, Credentials, Http, NotConnected, Stdio

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
        """Call a tool, past the gate: the suite calls while it holds lists back.

        Else such a call could not be a fence. Where the gate stands is for its own tests.
        """
        params = {"name": name, "arguments": dict(arguments)}
        try:
            result = await self._open().request("tools/call", params, name=name)
        except NotConnected as error:
            return {"outcome": "refused", "detail": str(error)}
        except MCPError as error:
            return {"outcome": "error", "detail": str(error)}
        return {"outcome": "error" if result.get("isError") else "result"}

    async def call_planned(
        self, name: str, arguments: Mapping[str, Any], planned: Mapping[str, Any]
    ) -> Answer:
        """Call a tool through the gate, as planned on the newest list that showed it so."""
        generation = self._shown.get((name, planned.get("description")), 0)
        try:
            result = await self._open().call_tool(name, arguments, planned=generation or None)
        except (CallRefused, NotConnected) as error:
            return {"outcome": "refused", "detail": type(error).__name__}
        except MCPError as error:
            return {"outcome": "error", "detail": str(error)}
        return {"outcome": "error" if result.is_error else "result"}

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
    offered = (*OPS, "refresh", "credentials", "planned")
    run_driver({"name": "relist", "version": __version__, "ops": offered}, ReferenceConnection)


if __name__ == "__main__":
    main()
