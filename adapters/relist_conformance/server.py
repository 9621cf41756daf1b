"""The well-behaved server that both eras share, driven by messages and bent by the rules.

No I/O and no clock: messages in, outputs out. ``legacy.py`` and ``modern.py`` add what differs. All
that is sent here fits the revision, or it is our own bug (``WireFault``).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable

from relist.check.history import mapping
from relist_conformance import wire
from relist_conformance.catalog import KIND_OF_METHOD, Catalogs
from relist_conformance.history import Recorder
from relist_conformance.outputs import JSON, SSE, ChannelKind, Finish, Output, Reset, Send, Status
from relist_conformance.rules import Answer, Channel, Refusal, Request, Rules
from relist_conformance.script import ServerSetup
from relist_conformance.steps import Hold


class Server(ABC):
    """One server of one revision, with all its connections and HTTP exchanges."""

    revision: str

    def __init__(
        self, setup: ServerSetup, recorder: Recorder, outputs: list[Output], token: str
    ) -> None:
        self.setup = setup
        self.token = token
        self.catalogs = Catalogs(setup)
        self.rules = Rules()
        self.spoken = False
        """Whether a client got through to this server in its revision."""
        self.pongs: set[object] = set()
        """The ids of our requests that were answered."""
        self.accepted: list[Request] = []
        """Each request that was not refused at the door."""
        self._recorder = recorder
        self._channels: dict[str, Channel] = {}
        self._outputs = outputs

    # --- what the host reports ---

    def opened(self, channel_id: str, kind: ChannelKind, headers: wire.Message) -> None:
        """A connection stands, or an HTTP exchange has begun."""
        channel = Channel(channel_id, kind, {key.lower(): headers[key] for key in headers})
        self._channels[channel_id] = channel
        self._recorder.add("open", channel_id, channel_kind=kind, headers=_told(channel.headers))
        self._opened(channel)

    def received(self, channel_id: str, message: object) -> None:
        """A message of the client, as decoded JSON or as ``wire.Unreadable``."""
        channel = self._channels.get(channel_id)
        if channel is None:
            return  # what a client wrote before it noticed that the channel is gone
        sort, found = wire.classify(message), mapping(message)
        if sort == "malformed" or found is None:
            text = message.text if isinstance(message, wire.Unreadable) else repr(message)
            self._recorder.add("in", channel_id, malformed=text[:200])
            self._malformed(channel)
            return
        page = self._page_of(found)
        paged = {} if page is None else {"page": page}
        event = self._recorder.add("in", channel_id, found, **paged)
        if sort == "request":
            self._requested(Request(channel, found, page, event.seq))
        elif sort == "notification":
            self._notified(channel, found)
        else:
            self.pongs.add(found["id"])
            self._accept(channel)

    def closed(self, channel_id: str) -> None:
        """The client's side of a channel is gone."""
        channel = self._channels.get(channel_id)
        if channel is not None:
            self._recorder.add("close", channel_id)
            self._drop(channel)

    # --- what the script asks for ---

    @abstractmethod
    def can_notify(self, kind: str) -> bool:
        """Whether a change notice for the kind has a channel to go out on."""

    @abstractmethod
    def why_mute(self, kind: str) -> str:
        """Why there is no such channel, said about the client."""

    @abstractmethod
    def notify(self, kind: str) -> None:
        """Send a change notice on each channel that is due one."""

    def notify_changes(self, kinds: Iterable[str]) -> None:
        """One notice for each change; resources and templates share theirs."""
        for kind in {wire.CAPABILITY[kind]: None for kind in kinds}:
            self.notify(kind)

    @abstractmethod
    def ping(self) -> str | None:
        """Ask the client to answer on the channel of the notices; None where that is impossible."""

    @abstractmethod
    def cut(self) -> None:
        """Break off what holds the client and the server together."""

    def release(self, name: str) -> bool:
        """Send a held answer; False when there is none or nobody to send it to."""
        self.rules.disarm(name)
        answer = self.rules.held.pop(name, None)
        if answer is None or not answer.request.channel.is_open:
            return False
        self._send(answer)
        return True

    # --- what the eras add ---

    @abstractmethod
    def _opened(self, channel: Channel) -> None:
        """Answer at once what is answered without a message: GET and DELETE."""

    @abstractmethod
    def _admit(self, request: Request) -> Refusal | None:
        """Why the request is refused before anybody looks at what it wants."""

    @abstractmethod
    def _own(self, request: Request) -> bool:
        """Answer a request that only this era has; False when it is not one."""

    @abstractmethod
    def _notified(self, channel: Channel, message: wire.Message) -> None:
        """Take in a notification."""

    @abstractmethod
    def _complete(self, method: str, result: wire.Message) -> wire.Message:
        """Add what this era adds to each result."""

    @abstractmethod
    def _unknown(self) -> Refusal:
        """The answer to a method that this server does not have. Rule: EMIT-24."""

    @abstractmethod
    def _dropped(self, channel: Channel) -> None:
        """Forget what hung on a channel that is gone."""

    # --- requests ---

    def _requested(self, request: Request) -> None:
        if (refusal := self._admit(request)) is not None:
            self._send(Answer(request, refusal))
            return
        self.accepted.append(request)
        if self._own(request):
            return
        rule = self.rules.take(request)
        if isinstance(rule, Hold):
            self.rules.held[rule.name] = Answer(request, self._content(request))
            self._recorder.add("note", request.channel.id, held=rule.name)
            self._begin_stream(request.channel)
        elif rule is not None:
            self._send(Answer(request, Refusal(rule.code, rule.message)))
        else:
            self._send(Answer(request, self._content(request)))

    def _content(self, request: Request) -> wire.Message | Refusal:
        """The well-behaved answer at this moment."""
        method, params = request.method, request.params
        kind = KIND_OF_METHOD.get(method) or _KIND_OF_USE.get(method)
        if kind is not None and not self.catalogs.serves(kind):
            return self._unknown()
        match method:
            case "ping":
                return {}
            case "tools/call" if params["name"] in self.catalogs.tools():
                return {"content": [{"type": "text", "text": f"called {params['name']}"}]}
            case "tools/call":
                return Refusal(wire.INVALID_PARAMS, "Unknown tool")
            case "prompts/get":
                return {"messages": []}
            case "resources/read":
                return {"contents": [{"uri": params["uri"], "text": ""}]}
            case _ if kind is not None:
                return self._list(kind, params)
            case _:
                return self._unknown()

    def _list(self, kind: str, params: wire.Message) -> wire.Message | Refusal:
        page = self.catalogs.page(kind, params.get("cursor"))
        if page is None:
            return Refusal(wire.INVALID_PARAMS, "Unknown cursor")
        items = [wire.item(kind, label) for label in page.items]
        more = {} if page.next_cursor is None else {"nextCursor": page.next_cursor}
        return {wire.RESULT_KEY[kind]: items, **more}

    def _page_of(self, message: wire.Message) -> int | None:
        kind = KIND_OF_METHOD.get(str(message.get("method")))
        if kind is None:
            return None
        cursor = wire.params_of(message).get("cursor")
        if cursor is None:
            return 1
        page = self.catalogs.page(kind, cursor) if isinstance(cursor, str) else None
        return None if page is None else page.number

    def _malformed(self, channel: Channel) -> None:
        if channel.kind == "post":
            self._close_exchange(
                channel, 400, wire.error_message(None, wire.INVALID_REQUEST, "Invalid request")
            )

    # --- sending ---

    def _send(self, answer: Answer, headers: wire.Message | None = None) -> None:
        request, content = answer.request, answer.content
        if isinstance(content, Refusal):
            message = wire.error_message(request.id, content.code, content.message, content.data)
            http = content.http
        else:
            result = self._complete(request.method, content)
            wire.check_result(request.method, self.revision, result)
            message, http = wire.result_message(request.id, result), 200
        channel = request.channel
        if channel.kind == "post" and not channel.streaming:
            self._close_exchange(channel, http, message, headers)
            return
        self._write(channel, message)
        if channel.kind == "post":
            self._finish(channel)

    def _write(self, channel: Channel, message: wire.Message) -> None:
        self._recorder.add("out", channel.id, message)
        self._outputs.append(Send(channel.id, message))

    def _begin_stream(self, channel: Channel) -> None:
        if not channel.is_pipe and not channel.streaming:
            channel.streaming = True
            self._outputs.append(Status(channel.id, 200, {"content-type": SSE}))

    def _accept(self, channel: Channel) -> None:
        """Take in a notification or a response, which have no answer."""
        if channel.kind == "post":
            self._close_exchange(channel, 202)

    def _close_exchange(
        self,
        channel: Channel,
        code: int,
        message: wire.Message | None = None,
        headers: wire.Message | None = None,
    ) -> None:
        told = {"content-type": JSON} if message is not None else {}
        if message is None:
            self._recorder.add("status", channel.id, code=code)
        else:
            self._recorder.add("out", channel.id, message, http=code)
        self._outputs.append(Status(channel.id, code, told | dict(headers or {}), message))
        self._drop(channel)

    def _finish(self, channel: Channel) -> None:
        self._outputs.append(Finish(channel.id))
        self._drop(channel)

    def _reset(self, channels: Iterable[Channel]) -> None:
        for channel in list(channels):
            self._recorder.add("cut", channel.id)
            self._outputs.append(Reset(channel.id))
            self._drop(channel)

    def _drop(self, channel: Channel) -> None:
        channel.is_open = False
        self._channels.pop(channel.id, None)
        self._dropped(channel)


_KIND_OF_USE = {"tools/call": "tools", "prompts/get": "prompts", "resources/read": "resources"}

_TOLD_HEADERS = ("accept", "mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name")


def _told(headers: wire.Message) -> dict[str, str]:
    """The headers worth a line in the history; no credentials are kept."""
    return {key: str(headers[key])[:200] for key in _TOLD_HEADERS if key in headers}
