"""A driver without any MCP client behind it: the example of the contract page, as a program."""

import sys
from collections.abc import Callable, Mapping
from typing import Any

import anyio

from relist_conformance.drivers.base import (
    OPS,
    OPTIONAL,
    Answer,
    Connection,
    Target,
    run_driver,
)

TOOLS = [{"name": "a", "description": "a@1"}, {"name": "b", "description": ""}]


class Toy(Connection):
    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.held: dict[str, Any] = {"items": None, "state": "unknown"}

    async def run(self, usable: Callable[[], None]) -> None:
        if self.target.command == ["gives up"]:
            raise OSError("no server here")
        usable()
        await anyio.sleep_forever()

    async def need(self, kind: str) -> Answer:
        if kind == "prompts":
            await anyio.sleep_forever()  # for tests of overlap: only a stop ends this
        self.held = {"items": TOOLS, "state": "fresh"}
        return self.held

    def believe(self, kind: str) -> Answer:
        return self.held

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        if name == "broken":
            raise RuntimeError("driver bug")
        if name in "ab":
            return {"outcome": "result"}
        return {"outcome": "refused", "detail": "no such tool"}


class AbleToy(Toy):
    """The same with everything that is optional."""

    token = ""
    uris: frozenset[str] = frozenset()
    clock_ms = 0

    async def call_planned(
        self, name: str, arguments: Mapping[str, Any], planned: Mapping[str, Any]
    ) -> Answer:
        if planned != TOOLS[0]:
            return {"outcome": "refused", "detail": "it has changed"}
        return await self.call(name, arguments)

    async def refresh(self, kind: str) -> Answer:
        name = f"{kind} for {self.token} at {self.clock_ms}"
        return {"items": [{"name": name, "description": ""}]}

    async def read(self, uri: str) -> Answer:
        return {"outcome": "result", "text": f"{uri}, of {sorted(self.uris)}"}

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> Answer:
        return {"outcome": "result", "text": f"{name} {dict(arguments)}"}

    async def subscribe(self, uri: str) -> Answer:
        self.uris = self.uris | {uri}
        return {}

    async def unsubscribe(self, uri: str) -> Answer:
        self.uris = self.uris - {uri}
        return {}

    async def credentials(self, token: str) -> Answer:
        self.token = token
        return {}

    async def advance(self, ms: int) -> Answer:
        self.clock_ms += ms
        return {}


if __name__ == "__main__":
    if sys.argv[1:] == ["able"]:
        run_driver({"name": "toy", "version": "1", "ops": (*OPS, *OPTIONAL, "planned")}, AbleToy)
    else:
        run_driver({"name": "toy", "version": "1"}, Toy)
