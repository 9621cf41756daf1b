"""``publish``: an ``MCPServer`` whose tools, prompts and resources may change while it runs.

    server = MCPServer("mine")
    publish(server)

    @server.tool()
    async def grow() -> str:
        server.add_tool(more)          # in force, and announced, without another word

Whatever is added or removed through the server is in force for the next reader and is announced to
clients of both eras, merged and only if something differs. ``ctx.notify_tools_changed()`` and its
like go on working, and so does a ``SubscriptionBus`` of your own: an event means that the lists are
read again. Where your own code changes a list by other ways, say ``changed()``.

With ``view_of`` and ``sees`` each authorization has its view: what it is not shown it cannot call.

    publish(
        server,
        view_of=lambda token: "writers" if token and "write" in token.scopes else "readers",
        sees=lambda view, kind, entry: view == "writers" or not entry.name.startswith("write"),
    )

Resources are read by address, listed or not: who may read one is for its function to decide.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.subscriptions import ResourceUpdated, ServerEvent

from relist.publisher import PublisherPolicy
from relist.values import CHANNELS, KINDS, Capabilities, Kind
from relist_mcp.publisher import Publishing, ViewOf
from relist_mcp.sources import Entries, Sees, Source

EVERYTHING = Capabilities(frozenset(KINDS), frozenset(CHANNELS), subscribe=True)
_MUTATORS = ("add_tool", "remove_tool", "add_resource", "add_prompt", "remove_prompt")


def publish(
    server: MCPServer[Any],
    *,
    offer: Capabilities = EVERYTHING,
    policy: PublisherPolicy | None = None,
    view_of: ViewOf | None = None,
    sees: Sees | None = None,
) -> Publishing:
    """Publish the lists of this server from now on. ``offer``: what it declares; all, by default.

    Call it before the server runs, and once.
    """

    async def read() -> Entries:
        found: Entries = {
            Kind.TOOLS: await server.list_tools(),
            Kind.PROMPTS: await server.list_prompts(),
            Kind.RESOURCES: await server.list_resources(),
            Kind.TEMPLATES: await server.list_resource_templates(),
        }
        return {kind: entries for kind, entries in found.items() if kind in offer.kinds}

    lowlevel = server._lowlevel_server  # pyright: ignore[reportPrivateUsage]
    publishing = Publishing(
        lowlevel, offer, policy=policy, view_of=view_of, source=Source(read, sees)
    )

    def on_event(event: ServerEvent) -> None:
        if isinstance(event, ResourceUpdated):
            publishing.updated(event.uri)
        else:
            publishing.changed()

    server._subscriptions.subscribe(on_event)  # pyright: ignore[reportPrivateUsage]
    for name in _MUTATORS:
        setattr(server, name, _after(getattr(server, name), publishing.changed))
    server.resource = _decorating(server.resource, publishing.changed)  # type: ignore[method-assign]
    return publishing


def _after(act: Callable[..., Any], then: Callable[[], None]) -> Callable[..., Any]:
    @wraps(act)
    def acts(*args: Any, **more: Any) -> Any:
        done = act(*args, **more)
        then()
        return done

    return acts


def _decorating(make: Callable[..., Any], then: Callable[[], None]) -> Callable[..., Any]:
    """Templates are added by a decorator only, so what it makes is followed."""

    @wraps(make)
    def makes(*args: Any, **more: Any) -> Any:
        return _after(make(*args, **more), then)

    return makes
