"""A naive client: what a quick start with the bare `mcp` SDK gives.

It opens the change stream where there is one, lists the first page of each declared kind at start
and again on each notice, and does nothing more: no further pages, no retry, no reconnect. The suite
uses it to show that its cases find what they are for.
"""

from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

import anyio
import mcp_types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    SubscriptionLost,
    ToolsListChanged,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from relist_conformance.drivers.base import Answer, Connection, Target, listed, run_driver

_ALL_RESOURCES = ("resources", "resource_templates")
_NOTICED: dict[type[Any], tuple[str, ...]] = {
    mcp_types.ToolListChangedNotification: ("tools",),
    mcp_types.PromptListChangedNotification: ("prompts",),
    mcp_types.ResourceListChangedNotification: _ALL_RESOURCES,
    ToolsListChanged: ("tools",),
    PromptsListChanged: ("prompts",),
    ResourcesListChanged: _ALL_RESOURCES,
}


class NaiveConnection(Connection):
    """One `mcp.Client` and the four lists last received through it."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._held: dict[str, list[dict[str, str]]] = {}
        self._tried: dict[str, anyio.Event] = {}

    async def run(self, usable: Callable[[], None]) -> None:
        """Connect, follow changes, list each declared kind once."""
        async with (
            Client(
                _server(self.target),
                read_timeout_seconds=self.target.request_timeout_s,
                message_handler=self._heard,
            ) as self._client,
            anyio.create_task_group() as self._tasks,
        ):
            self._tried = {kind: anyio.Event() for kind in self._declared()}
            usable()
            if self._modern():
                self._tasks.start_soon(self._follow)
            else:
                self._refresh(tuple(self._tried))
            await anyio.sleep_forever()

    def _modern(self) -> bool:
        return self._client.protocol_version in MODERN_PROTOCOL_VERSIONS

    def _declared(self) -> list[str]:
        capabilities = self._client.server_capabilities
        declared = {
            "tools": capabilities.tools,
            "prompts": capabilities.prompts,
            "resources": capabilities.resources,
            "resource_templates": capabilities.resources,
        }
        return [kind for kind, capability in declared.items() if capability is not None]

    async def _heard(self, message: object) -> None:
        # The modern era delivers the same notices through the change stream as well.
        if self._tried and not self._modern():
            self._refresh(_NOTICED.get(type(message), ()))

    async def _follow(self) -> None:
        try:
            async with self._client.listen(
                tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
            ) as changes:
                self._refresh(tuple(self._tried))
                async for change in changes:
                    self._refresh(_NOTICED.get(type(change), ()))
        except (MCPError, SubscriptionLost, TimeoutError):
            self._refresh(tuple(k for k, tried in self._tried.items() if not tried.is_set()))

    def _refresh(self, kinds: tuple[str, ...]) -> None:
        for kind in kinds:
            if kind in self._tried:
                self._tasks.start_soon(self._list, kind)

    async def _list(self, kind: str) -> None:
        try:
            match kind:
                case "tools":
                    items: list[Any] = (await self._client.list_tools()).tools
                case "prompts":
                    items = (await self._client.list_prompts()).prompts
                case "resources":
                    items = (await self._client.list_resources()).resources
                case _:
                    result = await self._client.list_resource_templates()
                    items = result.resource_templates
            self._held[kind] = listed(items)
        except (MCPError, ValueError):
            pass  # naive: what is held stays, and nobody tries again
        finally:
            self._tried[kind].set()

    async def need(self, kind: str) -> Answer:
        """The list held; it only waits for the very first listing."""
        if kind in self._tried:
            await self._tried[kind].wait()
        return self.believe(kind)

    def believe(self, kind: str) -> Answer:
        """The list held. A naive client knows nothing about how good it is."""
        return {"items": self._held.get(kind), "state": "unknown"}

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Call the tool without looking at any list."""
        try:
            result = await self._client.call_tool(name, dict(arguments))
        except (MCPError, RuntimeError) as error:
            return {"outcome": "error", "detail": str(error)}
        return {"outcome": "error" if result.is_error else "result"}


def _server(target: Target) -> StdioServerParameters | str:
    if target.command is None:
        return target.url or ""
    command, *args = target.command
    return StdioServerParameters(command=command, args=args, env=dict(target.env))


def main() -> None:
    """Run the driver."""
    run_driver({"name": "naive client on mcp", "version": version("mcp")}, NaiveConnection)


if __name__ == "__main__":
    main()
