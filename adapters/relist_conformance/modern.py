"""The server of 2026-07-28: stateless, metadata on each request, notices on subscriptions."""

import base64
import binascii
import re
from typing import Any

from attrs import frozen

from relist.check.history import mapping
from relist_conformance import wire
from relist_conformance.history import Recorder
from relist_conformance.outputs import Output
from relist_conformance.rules import Channel, Refusal, Request
from relist_conformance.script import ServerSetup
from relist_conformance.server import Server

_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_BASE64 = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)


@frozen(eq=False)
class _Subscription:
    """An acknowledged ``subscriptions/listen``; its id is that of the request, type included."""

    channel: Channel
    id: object
    granted: dict[str, Any]


class ModernServer(Server):
    """Rule: EMIT-08 to EMIT-10, EMIT-24, EMIT-31, LIFE-20 to LIFE-24."""

    revision = wire.MODERN

    def __init__(
        self, setup: ServerSetup, recorder: Recorder, outputs: list[Output], token: str
    ) -> None:
        super().__init__(setup, recorder, outputs, token)
        self._subscriptions: list[_Subscription] = []

    def can_notify(self, kind: str) -> bool:
        """Whether an acknowledged subscription was granted the kind."""
        return bool(self._covering(kind))

    def why_mute(self, kind: str) -> str:
        """No such subscription."""
        return f"the client has no acknowledged subscription that covers {kind}"

    def notify(self, kind: str) -> None:
        """One tagged notice on each subscription that was granted the kind."""
        for subscription in self._covering(kind):
            message = wire.list_changed(kind, subscription.id)
            wire.check_outgoing(message, self.revision)
            self._write(subscription.channel, message)

    def ping(self) -> str | None:
        """The revision has no requests from the server."""
        return None

    def cut(self) -> None:
        """End the pipes; over HTTP, all streams that stand open."""
        self._reset(self._channels.values())

    def _opened(self, channel: Channel) -> None:
        if channel.kind in ("get", "delete"):
            self._close_exchange(channel, 405, headers={"allow": "POST"})

    def _admit(self, request: Request) -> Refusal | None:
        if request.method == "initialize":
            return self._unsupported(request.params.get("protocolVersion"))
        meta = mapping(request.params.get("_meta")) or {}
        version = meta.get(wire.PROTOCOL_VERSION)
        if not isinstance(version, str) or mapping(meta.get(wire.CLIENT_CAPABILITIES)) is None:
            return Refusal(wire.INVALID_PARAMS, "Required metadata is missing", http=400)
        if not request.channel.is_pipe and (fault := _header_fault(request, version)):
            return Refusal(wire.HEADER_MISMATCH, fault, http=400)
        if version != self.revision:
            return self._unsupported(version)
        try:
            fault = wire.check_request(request.method, self.revision, request.params)
        except KeyError:
            return self._unknown()
        self.spoken = True
        return None if fault is None else Refusal(wire.INVALID_PARAMS, fault)

    def _unsupported(self, requested: object) -> Refusal:
        """Rule: LIFE-24. An ``initialize`` is told the versions as well."""
        data = {"supported": [self.revision], "requested": str(requested)[:100]}
        message = f"Unsupported protocol version; supported: {self.revision}"
        return Refusal(wire.UNSUPPORTED_VERSION, message, data, http=400)

    def _own(self, request: Request) -> bool:
        if request.method != "subscriptions/listen":
            return False
        wanted = mapping(request.params.get("notifications")) or {}
        granted = {
            field: True
            for capability, field in wire.FILTER_FIELD.items()
            if wanted.get(field) is True
            and (mapping(self.setup.capabilities.get(capability)) or {}).get("listChanged")
        }
        self._begin_stream(request.channel)
        acknowledgment = wire.notification(
            "notifications/subscriptions/acknowledged",
            {"_meta": {wire.SUBSCRIPTION_ID: request.id}, "notifications": granted},
        )
        wire.check_outgoing(acknowledgment, self.revision)
        self._write(request.channel, acknowledgment)
        self._subscriptions.append(_Subscription(request.channel, request.id, granted))
        return True

    def _content(self, request: Request) -> wire.Message | Refusal:
        if request.method != "server/discover":
            return super()._content(request)
        return {"supportedVersions": [self.revision], "capabilities": self.setup.capabilities}

    def _notified(self, channel: Channel, message: wire.Message) -> None:
        if message["method"] == "notifications/cancelled" and channel.is_pipe:
            cancelled = wire.params_of(message).get("requestId")
            self._subscriptions = [
                subscription
                for subscription in self._subscriptions
                if subscription.channel is not channel or not _same_id(subscription.id, cancelled)
            ]
        self._accept(channel)

    def _complete(self, method: str, result: wire.Message) -> wire.Message:
        return wire.modern_result(method, result, self.setup.ttl_ms, self.setup.cache_scope)

    def _unknown(self) -> Refusal:
        return Refusal(wire.METHOD_NOT_FOUND, "Method not found", http=404)

    def _covering(self, kind: str) -> list[_Subscription]:
        field = wire.FILTER_FIELD[wire.CAPABILITY[kind]]
        return [
            subscription for subscription in self._subscriptions if field in subscription.granted
        ]

    def _dropped(self, channel: Channel) -> None:
        self._subscriptions = [one for one in self._subscriptions if one.channel is not channel]


def _same_id(left: object, right: object) -> bool:
    """The text "1" and the number 1 are two ids. Rule: SUB-11."""
    return type(left) is type(right) and left == right


def _header_fault(request: Request, version: str) -> str | None:
    """Why the headers do not mirror the body, or None. Rule: LIFE-22, LIFE-23."""
    expected = {"mcp-protocol-version": version, "mcp-method": request.method}
    if request.method in _NAMED:
        expected["mcp-name"] = str(request.params.get(_NAMED[request.method]))
    for header, value in expected.items():
        told = request.channel.headers.get(header)
        if told is None:
            return f"Header {header} is missing"
        if (_decoded(told) if header == "mcp-name" else told) != value:
            return f"Header {header} does not match the body"
    return None


def _decoded(value: str) -> str | None:
    """A header value, undone from the Base64 form; None when that is broken."""
    encoded = _BASE64.fullmatch(value)
    if encoded is None:
        return value
    try:
        return base64.b64decode(encoded[1], validate=True).decode()
    except (binascii.Error, ValueError):
        return None
