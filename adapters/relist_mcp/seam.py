"""Where a session of the SDK that somebody else owns is heard and spoken through.

The SDK (2.3) offers no way to do this from outside: its session hears with what it was built with,
and judges each result before it hands it on. So this file reaches below it, and no other does:
``ClientSession._dispatcher``, ``_stamp`` and ``_session_read_timeout_seconds``; the dispatchers'
``_on_notify_intercept`` and ``_closed``; ``_fan_out_closed`` of the one, ``_close_event`` of the
other. tests/adapters/test_sdk_sessions.py shows why each is needed.
"""
# pyright: reportPrivateUsage=false

from collections.abc import Mapping
from typing import Any, Protocol

import anyio
from mcp import ClientSession
from mcp.shared.direct_dispatcher import DirectDispatcher
from mcp.shared.dispatcher import CallOptions, OnNotifyIntercept
from mcp.shared.inbound import MCP_NAME_HEADER, encode_header_value
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher

AnyDispatcher = JSONRPCDispatcher[Any] | DirectDispatcher


class Listener(Protocol):
    """Who hears the notifications of a session, in the order received."""

    def on_notification(self, method: str, params: Mapping[str, Any]) -> bool:
        """Whether it was for this listener alone. Must not raise."""
        ...


class _Tee:
    """Stands in the dispatcher's place for an intercept while anybody listens; hides nothing."""

    def __init__(self, dispatcher: AnyDispatcher) -> None:
        self._dispatcher = dispatcher
        self._inner: OnNotifyIntercept | None = dispatcher._on_notify_intercept
        self._listeners: tuple[Listener, ...] = ()
        dispatcher._on_notify_intercept = self
        if isinstance(dispatcher, DirectDispatcher):
            self.ended = dispatcher._close_event
        else:
            self.ended = anyio.Event()
            dispatcher._fan_out_closed = self._fan_out_closed  # type: ignore[method-assign]

    def __call__(self, method: str, params: Mapping[str, Any] | None) -> bool:
        """Everybody hears it: listeners first, so that none depends on what the session does."""
        taken = [one.on_notification(method, params or {}) for one in self._listeners]
        return (self._inner is not None and self._inner(method, params)) or any(taken)

    def add(self, listener: Listener) -> None:
        self._listeners = (*self._listeners, listener)

    def remove(self, listener: Listener) -> None:
        """With the last one the dispatcher is as it was, unless others have built on it since."""
        self._listeners = tuple(one for one in self._listeners if one is not listener)
        if not self._listeners and self._dispatcher._on_notify_intercept is self:
            self._dispatcher._on_notify_intercept = self._inner
            vars(self._dispatcher).pop("_fan_out_closed", None)

    def _fan_out_closed(self) -> None:
        assert isinstance(self._dispatcher, JSONRPCDispatcher)
        JSONRPCDispatcher._fan_out_closed(self._dispatcher)
        self.ended.set()


class Seam:
    """One listener's hold on a session. Raises TypeError for a dispatcher that is not the SDK's."""

    def __init__(self, session: ClientSession) -> None:
        dispatcher = session._dispatcher
        if not isinstance(dispatcher, JSONRPCDispatcher | DirectDispatcher):
            raise TypeError(f"no way to hear a session over a {type(dispatcher).__name__}")
        self.session = session
        self._dispatcher: AnyDispatcher = dispatcher
        self._tee: _Tee | None = None

    @property
    def closed(self) -> bool:
        """Whether the connection of the session has ended, though the session may still stand."""
        return self._dispatcher._closed

    async def ended(self) -> None:
        """Wait until the connection ends. Only while somebody listens."""
        assert self._tee is not None
        await self._tee.ended.wait()

    def listen(self, listener: Listener) -> None:
        """From now on this listener hears what the session hears, beside all others."""
        installed = self._dispatcher._on_notify_intercept
        self._tee = installed if isinstance(installed, _Tee) else _Tee(self._dispatcher)
        self._tee.add(listener)

    def leave(self, listener: Listener) -> None:
        """Hear no more."""
        if self._tee is not None:
            self._tee.remove(listener)

    async def request(
        self, method: str, params: Mapping[str, Any], request_id: str | None = None
    ) -> dict[str, Any]:
        """The raw result of a request of ours, which no time limit of the session cuts short.

        Raises MCPError for an error answer or a closed connection, and what the dispatcher raises.
        """
        options: CallOptions = {} if request_id is None else {"request_id": request_id}
        return await self._send(method, params, options)

    async def request_for_owner(
        self, method: str, params: Mapping[str, Any], name: str | None, headers: Mapping[str, str]
    ) -> dict[str, Any]:
        """The raw result of an application's request, as the session would send it."""
        options: CallOptions = {"headers": {**headers}}
        if self.session._session_read_timeout_seconds is not None:
            options["timeout"] = self.session._session_read_timeout_seconds
        if name is not None and self.session.discover_result is not None:
            options["headers"][MCP_NAME_HEADER] = encode_header_value(name)
        return await self._send(method, params, options)

    async def _send(
        self, method: str, params: Mapping[str, Any], options: CallOptions
    ) -> dict[str, Any]:
        """Given headers win over those of the session, whose view of a tool may be old."""
        given = options.pop("headers", {})
        data: dict[str, Any] = {"method": method, "params": {**params}}
        if "_meta" in params:
            data["params"]["_meta"] = {**params["_meta"]}  # which the session adds to
        self.session._stamp(data, options)
        options.setdefault("headers", {}).update(given)
        return await self._dispatcher.send_raw_request(method, data["params"], options)
