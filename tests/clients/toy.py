"""A driver without any MCP client behind it: the example of the contract page, as a program."""

from collections.abc import Callable, Mapping
from typing import Any

import anyio

from relist_conformance.drivers.base import Answer, Connection, Target, run_driver

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


if __name__ == "__main__":
    run_driver({"name": "toy", "version": "1"}, Toy)
