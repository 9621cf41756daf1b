"""What a server says of changes: what it declares, its notices, and what waits to be sent."""

from typing import Any

import anyio
from mcp.server import Server
from mcp_types import (
    NotificationParams,
    PromptListChangedNotification,
    ResourceListChangedNotification,
    ResourceUpdatedNotification,
    ResourceUpdatedNotificationParams,
    ServerCapabilities,
    SubscriptionFilter,
    ToolListChangedNotification,
)

from relist.values import Capabilities, Channel, Topic


class Mailbox:
    """What one subscriber is still to be told: each topic once, however often it changed."""

    def __init__(self) -> None:
        self._topics: dict[Topic, None] = {}
        self._wake = anyio.Event()
        self._closed = False

    def put(self, topic: Topic) -> None:
        """Tell of this."""
        self._topics[topic] = None
        self._wake.set()

    def close(self) -> None:
        """Nothing comes any more."""
        self._closed = True
        self._wake.set()

    async def next(self) -> Topic | None:
        """What to tell of; None once all was told and the box is closed."""
        while not self._topics:
            if self._closed:
                return None
            self._wake = anyio.Event()
            await self._wake.wait()
        topic = next(iter(self._topics))
        del self._topics[topic]
        return topic


def topics_of(asked: SubscriptionFilter) -> frozenset[Topic]:
    """What a subscription asks for."""
    flags = {
        Channel.TOOLS: asked.tools_list_changed,
        Channel.PROMPTS: asked.prompts_list_changed,
        Channel.RESOURCES: asked.resources_list_changed,
    }
    channels = (channel for channel, flag in flags.items() if flag)
    return frozenset[Topic]((*channels, *(asked.resource_subscriptions or ())))


def filter_of(granted: frozenset[Topic]) -> SubscriptionFilter:
    """What a subscription is granted, for its acknowledgement."""
    return SubscriptionFilter(
        tools_list_changed=Channel.TOOLS in granted or None,
        prompts_list_changed=Channel.PROMPTS in granted or None,
        resources_list_changed=Channel.RESOURCES in granted or None,
        resource_subscriptions=sorted(t for t in granted if isinstance(t, str)) or None,
    )


def notice_of(topic: Topic, meta: dict[str, Any] | None) -> Any:
    """The notice that this has changed. It says nothing else. Rule: EMIT-16."""
    if isinstance(topic, str):
        return ResourceUpdatedNotification(
            params=ResourceUpdatedNotificationParams(uri=topic, _meta=meta)
        )
    notice = {
        Channel.TOOLS: ToolListChangedNotification,
        Channel.PROMPTS: PromptListChangedNotification,
        Channel.RESOURCES: ResourceListChangedNotification,
    }[topic]
    return notice(params=None if meta is None else NotificationParams(_meta=meta))


def declare(server: Server[Any], offer: Capabilities) -> None:
    """Declare what is offered; the SDK would declare all or nothing. Rule: EMIT-01, CAP-22."""
    original = server.get_capabilities

    def get_capabilities(*args: Any, **more: Any) -> ServerCapabilities:
        declared = original(*args, **more)
        for channel in Channel:
            capability = getattr(declared, channel.value)
            if capability is not None:
                capability.list_changed = channel in offer.channels
        if declared.resources is not None:
            declared.resources.subscribe = offer.subscribe
        return declared

    server.get_capabilities = get_capabilities  # type: ignore[method-assign]
