"""The server of 2026-07-28: stateless, metadata on each request, notices on subscriptions."""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

from attrs import define

from relist.check.history import mapping
from relist_conformance import steps as s
from relist_conformance import wire
from relist_conformance.history import Recorder
from relist_conformance.outputs import Output
from relist_conformance.rules import Answer, Channel, Granted, Refusal, Request
from relist_conformance.script import ServerSetup
from relist_conformance.server import Server

_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_BASE64 = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)


@define(eq=False)
class _Subscription:
    """A ``subscriptions/listen`` and, once it is acknowledged, the filter fields it was granted."""

    request: Request
    granted: Mapping[str, Any] | None = None

    @property
    def channel(self) -> Channel:
        """Where its notices go."""
        return self.request.channel

    @property
    def id(self) -> object:
        """That of the request, type included."""
        return self.request.id

    def covers(self, topic: str) -> bool:
        """Whether it was granted the notices of this kind, or of the resource of this URI."""
        granted = self.granted or {}
        if topic in wire.CAPABILITY:
            return wire.FILTER_FIELD[wire.CAPABILITY[topic]] in granted
        return any(wire.reaches(uri, topic) for uri in granted.get(wire.URIS_FIELD, ()))


class ModernServer(Server):
    """Rule: EMIT-08 to EMIT-10, EMIT-24, EMIT-31, LIFE-20 to LIFE-24."""

    revision = wire.MODERN

    def __init__(
        self, setup: ServerSetup, recorder: Recorder, outputs: list[Output], token: str
    ) -> None:
        super().__init__(setup, recorder, outputs, token)
        self._subscriptions: list[_Subscription] = []

    def can_notify(self, topic: str) -> bool:
        """Whether an acknowledged subscription was granted the topic."""
        return any(one.covers(topic) for one in self._subscriptions)

    def why_mute(self, topic: str) -> str:
        """No such subscription."""
        return f"the client has no acknowledged subscription that covers {topic}"

    def notify(self, topic: str, tag: s.Tag = "right", to: str = "covered") -> None:
        """One notice on each subscription that was granted the topic, or (*any*) on each."""
        for one in [one for one in self._subscriptions if to == "any" or one.covers(topic)]:
            told = {
                "right": one.id,
                "none": None,
                "foreign": "relist-foreign",
                "other_type": wire.other_type(one.id),
            }[tag]
            message = wire.notice(topic, told)
            wire.check_outgoing(message, self.revision)
            self._write(one.channel, message)

    def _for_notices(self) -> Channel | None:
        granted = [one.channel for one in self._subscriptions if one.granted is not None]
        return granted[-1] if granted else None

    def ping(self) -> str | None:
        """The revision has no requests from the server."""
        return None

    def cut(self, what: s.What) -> bool:
        """*connection*: end the pipes; over HTTP, all streams that stand open."""
        if what == "connection":
            self._reset(self._channels.values())
            return True
        streams = [one.channel for one in self._subscriptions if not one.channel.is_pipe]
        if what == "streams":
            self._reset(streams)
        return what == "streams" and bool(streams)

    def end_subscriptions(self, how: s.How) -> bool:
        """End them in good order (*result*, *cancelled*), by an error, or without a word."""
        ending = [one for one in self._subscriptions if how != "closed" or not one.channel.is_pipe]
        for one in ending:
            self._subscriptions.remove(one)
            tagged = {"_meta": {wire.SUBSCRIPTION_ID: one.id}}
            match how:
                case "result":
                    result = self._complete(one.request.method, tagged)
                    self._send(Answer(one.request, result))
                case "error":
                    refusal = Refusal(wire.INTERNAL_ERROR, "The subscription failed")
                    self._send(Answer(one.request, refusal))
                case "cancelled":
                    params = {"requestId": one.id, "reason": "shutting down"}
                    self._write(one.channel, wire.notification("notifications/cancelled", params))
                    if not one.channel.is_pipe:
                        self._finish(one.channel)
                case "closed":
                    self._recorder.add("note", one.channel.id, closed=True)
                    self._finish(one.channel)
        return bool(ending)

    def _opened(self, channel: Channel) -> None:
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

    def _own(self, request: Request) -> wire.Message | Granted | None:
        if request.method != "subscriptions/listen":
            return None
        wanted = mapping(request.params.get("notifications")) or {}
        self._subscriptions.append(_Subscription(request))
        granted: dict[str, Any] = {
            field: True
            for capability, field in wire.FILTER_FIELD.items()
            if wanted.get(field) is True
            and (mapping(self.setup.capabilities.get(capability)) or {}).get("listChanged")
        }
        if wanted.get(wire.URIS_FIELD) and wire.can_subscribe(self.setup.capabilities):
            granted[wire.URIS_FIELD] = wanted[wire.URIS_FIELD]
        return Granted(granted)

    def _headers(self, request: Request) -> wire.Message:  # noqa: ARG002
        return {}

    def _acknowledge(self, request: Request, granted: Granted) -> None:
        self._begin_stream(request.channel)
        acknowledgment = wire.notification(
            "notifications/subscriptions/acknowledged",
            {"_meta": {wire.SUBSCRIPTION_ID: request.id}, "notifications": granted.fields},
        )
        wire.check_outgoing(acknowledgment, self.revision)
        self._write(request.channel, acknowledgment)
        for one in self._subscriptions:
            if one.request is request:
                one.granted = granted.fields

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
        return wire.modern_result(method, result, self.setup)

    def _not_found(self) -> Refusal:
        return Refusal(wire.INVALID_PARAMS, "Resource not found")

    def _unknown(self) -> Refusal:
        return Refusal(wire.METHOD_NOT_FOUND, "Method not found", http=404)

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
