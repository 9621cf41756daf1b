"""The server of 2025-11-25: a handshake, sessions over HTTP, notices without asking."""

from attrs import define, field
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from relist_conformance import steps as s
from relist_conformance import wire
from relist_conformance.history import Recorder
from relist_conformance.outputs import SSE, Output
from relist_conformance.rules import Channel, Granted, Refusal, Request
from relist_conformance.script import ServerSetup
from relist_conformance.server import Server

SESSION_HEADER = "mcp-session-id"
_SUBSCRIBING = ("resources/subscribe", "resources/unsubscribe")


@define(eq=False)
class _Session:
    """What an ``initialize`` began. ``streams`` carry notices: the pipe, or GET streams; ``uris``
    are the resources subscribed to."""

    id: str
    ready: bool = False
    streams: list[Channel] = field(factory=list[Channel])
    uris: set[str] = field(factory=set[str])

    def covers(self, topic: str) -> bool:
        """Whether it is due such notices: of all kinds, and of resources it has subscribed to."""
        asked = topic in wire.CAPABILITY or any(wire.reaches(uri, topic) for uri in self.uris)
        return self.ready and bool(self.streams) and asked


class LegacyServer(Server):
    """Rule: LIFE-01, LIFE-11, LIFE-12, EMIT-07, EMIT-26."""

    revision = wire.LEGACY

    def __init__(
        self, setup: ServerSetup, recorder: Recorder, outputs: list[Output], token: str
    ) -> None:
        super().__init__(setup, recorder, outputs, token)
        self._sessions: dict[str, _Session] = {}
        self._minted = 0

    def can_notify(self, topic: str) -> bool:
        """Whether an initialized session has a stream, and a subscription where one is needed."""
        return any(session.covers(topic) for session in self._sessions.values())

    def why_mute(self, topic: str) -> str:
        """No session, no GET stream on it, or no subscription to the resource."""
        if any(session.ready and session.streams for session in self._sessions.values()):
            return f"the client has not subscribed to {topic}"
        if any(session.ready for session in self._sessions.values()):
            return "the client opened no stream for notices (HTTP GET)"
        return "the client has no initialized session"

    def notify(self, topic: str, tag: s.Tag = "right", to: str = "covered") -> None:  # noqa: ARG002
        """One notice for each session, on its newest stream. There are no tags."""
        message = wire.notice(topic)
        wire.check_outgoing(message, self.revision)
        for session in self._sessions.values():
            if session.covers(topic) or (to == "any" and session.streams):
                self._write(session.streams[-1], message)
        if to == "any":
            begun = {stream.id for one in self._sessions.values() for stream in one.streams}
            for channel in list(self._channels.values()):
                if channel.is_pipe and channel.id not in begun:
                    self._write(channel, message)

    def ping(self) -> str | None:
        """Ping on the newest stream of the newest session."""
        stream = self._for_notices()
        if stream is None:
            return None
        ping_id = f"relist-ping-{len(self._recorder.events)}"
        message = {"jsonrpc": "2.0", "id": ping_id, "method": "ping"}
        wire.check_outgoing(message, self.revision)
        self._write(stream, message)
        return ping_id

    def _for_notices(self) -> Channel | None:
        ready = [one for one in self._sessions.values() if one.ready and one.streams]
        return ready[-1].streams[-1] if ready else None

    def cut(self, what: s.What) -> bool:
        """*connection*: end every channel and forget every session, as a crashed server does."""
        streams = [stream for one in self._sessions.values() for stream in one.streams]
        if what == "connection":
            self._reset(self._channels.values())
            self._sessions.clear()
            return True
        if (not streams and not self._sessions) or any(stream.is_pipe for stream in streams):
            return False
        if what == "session":
            self._sessions.clear()
            self._recorder.add("note", forgot="sessions")
            for stream in streams:
                self._finish(stream)
            return True
        self._reset(streams)
        return bool(streams)

    def end_subscriptions(self, how: s.How) -> bool:  # noqa: ARG002
        """The era has none."""
        return False

    def _opened(self, channel: Channel) -> None:
        session = self._session(channel)
        if session is None:
            self._close_exchange(channel, 404 if SESSION_HEADER in channel.headers else 400)
        elif channel.kind == "delete":
            del self._sessions[session.id]
            for stream in list(session.streams):
                self._finish(stream)
            self._close_exchange(channel, 200)
        elif SSE not in str(channel.headers.get("accept", "")):
            self._close_exchange(channel, 406)
        else:
            session.streams.append(channel)
            self._begin_stream(channel)

    def _requested(self, request: Request) -> None:
        channel = request.channel
        if SESSION_HEADER in channel.headers and self._session(channel) is None:
            self._close_exchange(channel, 404)
        else:
            super()._requested(request)

    def _admit(self, request: Request) -> Refusal | None:
        if request.method == "initialize":
            fault = wire.check_request("initialize", self.revision, request.params)
            return None if fault is None else Refusal(wire.INVALID_PARAMS, fault)
        session = self._session(request.channel)
        if session is None:
            if request.method == "ping":
                return None
            return Refusal(wire.METHOD_NOT_FOUND, "Method not found before initialize", http=400)
        version = request.channel.headers.get("mcp-protocol-version")
        if version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
            return Refusal(wire.INVALID_REQUEST, "Unsupported protocol version", http=400)
        try:
            fault = wire.check_request(request.method, self.revision, request.params)
        except KeyError:
            return self._unknown()
        self.spoken = True
        return None if fault is None else Refusal(wire.INVALID_PARAMS, fault)

    def _own(self, request: Request) -> wire.Message | Granted | None:
        if request.method != "initialize":
            return None
        channel = request.channel
        self._minted += 1
        session = _Session(channel.id if channel.is_pipe else f"{self.token}{self._minted}")
        self._sessions[session.id] = session
        if channel.is_pipe:
            session.streams.append(channel)
        return {
            "protocolVersion": self.revision,
            "capabilities": self.setup.capabilities,
            "serverInfo": self.setup.server_info,
        }

    def _content(self, request: Request) -> wire.Message | Refusal:
        session = self._session(request.channel)
        if session is None or request.method not in _SUBSCRIBING:
            return super()._content(request)
        if not wire.can_subscribe(self.setup.capabilities):
            return self._unknown()
        if request.method == "resources/subscribe":
            session.uris.add(request.params["uri"])
        else:
            session.uris.discard(request.params["uri"])
        return {}

    def _headers(self, request: Request) -> wire.Message:
        if request.method != "initialize" or request.channel.is_pipe:
            return {}
        return {SESSION_HEADER: next(reversed(self._sessions))}

    def _acknowledge(self, request: Request, granted: Granted) -> None:
        raise wire.WireFault(f"acknowledgment of {request.method}: {granted}")

    def _notified(self, channel: Channel, message: wire.Message) -> None:
        session = self._session(channel)
        if session is None:
            if not channel.is_pipe:
                self._close_exchange(channel, 404 if SESSION_HEADER in channel.headers else 400)
            return
        if message["method"] == "notifications/initialized":
            session.ready = self.spoken = True
        self._accept(channel)

    def _session(self, channel: Channel) -> _Session | None:
        key = channel.id if channel.is_pipe else str(channel.headers.get(SESSION_HEADER))
        return self._sessions.get(key)

    def _complete(self, method: str, result: wire.Message) -> wire.Message:  # noqa: ARG002
        return result

    def _not_found(self) -> Refusal:
        return Refusal(wire.RESOURCE_NOT_FOUND, "Resource not found")

    def _unknown(self) -> Refusal:
        return Refusal(wire.METHOD_NOT_FOUND, "Method not found")

    def _dropped(self, channel: Channel) -> None:
        for session in list(self._sessions.values()):
            if channel in session.streams:
                session.streams.remove(channel)
        if channel.is_pipe:
            self._sessions.pop(channel.id, None)
