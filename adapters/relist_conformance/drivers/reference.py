"""The reference client: Relist's own live catalogs, judged like any other client."""

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
from mcp_types import CallToolResult

from relist import __version__
from relist.machine import Hit, Reading
from relist.policy import Policy
from relist.values import Kind, LinkPhase
from relist_conformance.drivers.base import OPS, OPTIONAL, Answer, Connection, Target, run_driver
from relist_conformance.drivers.results import Result, outcome_of
from relist_conformance.drivers.snapshots import told
from relist_mcp import CallRefused, Catalogs, Credentials, Http, NotConnected, Stdio
from relist_mcp.refusals import InvalidResult

NEED_LIMIT_S = 20.0


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
        return told(self._open().read(Kind(kind)))

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Call a tool: through the gate where the list is good and has it, else past the gate.

        The suite calls while it holds lists back: where the gate waits, a call would be no fence.
        """
        reading = self._open().read(Kind.TOOLS)
        items = () if reading.snapshot is None else reading.snapshot.items
        good = reading.hit is Hit.HIT and any(item.key == name for item in items)
        return await _outcome((self._open().call_tool if good else self._ungated)(name, arguments))

    async def _ungated(self, name: str, arguments: Mapping[str, Any]) -> CallToolResult:
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
        answer, snapshot = told(reading), reading.snapshot
        if snapshot is not None and kind == Kind.TOOLS.value:
            for item in answer["items"]:
                self._shown[item["name"], item["description"]] = snapshot.generation
        return answer

    def _open(self) -> Catalogs:
        if self._catalogs is None:
            raise NotConnected(LinkPhase.CLOSED.value)
        return self._catalogs


def _outcome(use: Awaitable[Result]) -> Awaitable[Answer]:
    return outcome_of(use, (CallRefused, InvalidResult, NotConnected))


def _server(target: Target) -> Stdio | Http:
    if target.command is None:
        return Http(target.url or "")
    return Stdio(target.command, dict(target.env))


def _policy(target: Target) -> Policy:
    seed = os.urandom(16)
    limit_ms = target.request_timeout_ms
    return Policy(seed=seed) if limit_ms is None else Policy(seed=seed, request_limit_ms=limit_ms)


OFFERED = (*OPS, *(op for op in OPTIONAL if op != "advance"), "planned")


def main() -> None:
    """Run the driver."""
    run_driver({"name": "relist", "version": __version__, "ops": OFFERED}, ReferenceConnection)


if __name__ == "__main__":
    main()
