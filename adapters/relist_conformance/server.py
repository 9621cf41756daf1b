"""The well-behaved server that both eras share, driven by messages and bent by the rules.

No I/O and no clock: messages in, outputs out. ``legacy.py`` and ``modern.py`` add what differs. All
that is sent here fits the revision, or the script owns that it does not (``malformed``), or it is
our own bug (``WireFault``).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from relist.check.history import mapping
from relist_conformance import said, wire
from relist_conformance import steps as s
from relist_conformance.catalog import KIND_OF_METHOD, Catalogs
from relist_conformance.history import Recorder, told_headers
from relist_conformance.outputs import URL, ChannelKind, Output
from relist_conformance.rules import (
    Answer,
    Bare,
    Channel,
    Granted,
    Refusal,
    Request,
    Rules,
    Text,
)
from relist_conformance.script import ServerSetup
from relist_conformance.sending import Sender
from relist_conformance.shapes import bent
from relist_conformance.timers import Timers


class Server(Sender, ABC):
    """One server of one revision, with all its connections and HTTP exchanges."""

    revision: str

    def __init__(
        self, setup: ServerSetup, recorder: Recorder, outputs: list[Output], token: str
    ) -> None:
        super().__init__(recorder, outputs)
        self.setup = setup
        self.token = token
        self.catalogs = Catalogs(setup)
        self.rules = Rules()
        self.timers = Timers(recorder)
        self.principal = ""
        """Who the client acts for on connections that begin now."""
        self.spoken = False
        """Whether a client got through to this server in its revision."""
        self.pongs: set[object] = set()
        """The ids of our requests that were answered."""
        self.accepted: list[Request] = []
        """All that was not refused at the door, answers to our requests among it."""

    # --- what the host reports ---

    def opened(self, channel_id: str, kind: ChannelKind, headers: wire.Message) -> None:
        """A connection stands, or an HTTP exchange has begun."""
        channel = Channel(channel_id, kind, {key.lower(): headers[key] for key in headers})
        channel.principal = self.principal if channel.is_pipe else _bearer(channel.headers)
        self._channels[channel_id] = channel
        told = {"principal": channel.principal} if channel.principal else {}
        event = self._recorder.add(
            "open", channel_id, channel_kind=kind, headers=told_headers(channel.headers), **told
        )
        if kind in ("get", "delete"):
            request = Request(channel, {"method": kind.upper()}, None, event.seq)
            if not self._ruled(request):
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
        page = self._page_of(found, channel)
        paged = {} if page is None else {"page": page}
        event = self._recorder.add("in", channel_id, found, **paged)
        request = Request(channel, found, page, event.seq)
        if sort == "request":
            self._requested(request)
        elif sort == "response":
            self.pongs.add(found["id"])
            self.accepted.append(request)
            self._accept(channel)
        elif not self._ruled(request):
            self._notified(channel, found)

    def closed(self, channel_id: str) -> None:
        """The client's side of a channel is gone."""
        channel = self._channels.get(channel_id)
        if channel is not None:
            self._recorder.add("close", channel_id)
            self._drop(channel)

    # --- what the script asks for ---

    @abstractmethod
    def can_notify(self, topic: str) -> bool:
        """Whether a change notice of the topic (kind or URI) has a channel to go out on."""

    @abstractmethod
    def why_mute(self, topic: str) -> str:
        """Why there is no such channel, said about the client."""

    @abstractmethod
    def notify(self, topic: str, tag: s.Tag = "right", to: str = "covered") -> None:
        """Send a change notice on each channel that is due one, or (*any*) that could carry it."""

    def notify_changes(self, topics: Iterable[str]) -> None:
        """One notice for each change; resources and templates share theirs."""
        for topic in {wire.CAPABILITY.get(topic, topic): None for topic in topics}:
            self.notify(topic)

    @abstractmethod
    def ping(self) -> str | None:
        """Ask the client to answer on the channel of the notices; None where that is impossible."""

    @abstractmethod
    def cut(self, what: s.What) -> bool:
        """Break off; False where there is no such thing to break."""

    @abstractmethod
    def end_subscriptions(self, how: s.How) -> bool:
        """End each subscription; False where there is none that could end like that."""

    def set_up(self, changes: Mapping[str, Any]) -> None:
        """From now on say this of the server: capabilities, identity, lifetime, scope."""
        self.setup = attrs.evolve(self.setup, **changes)
        self.catalogs.declare(self.setup.capabilities)

    def release(self, name: str) -> bool:
        """Send a held answer; False when there is none or nobody to send it to."""
        self.rules.disarm(name)
        answer = self.rules.held.pop(name, None)
        return answer is not None and self._send_late(answer)

    def _send_late(self, answer: Answer) -> bool:
        if answer.request.channel.is_open:
            self._send(answer)
            return True
        return False

    # --- what the eras add ---

    @abstractmethod
    def _opened(self, channel: Channel) -> None:
        """Answer at once what is answered without a message: GET and DELETE."""

    @abstractmethod
    def _admit(self, request: Request) -> Refusal | None:
        """Why the request is refused before anybody looks at what it wants."""

    @abstractmethod
    def _own(self, request: Request) -> wire.Message | Granted | None:
        """The answer to a request that only this era has; None when it is not one."""

    @abstractmethod
    def _headers(self, request: Request) -> wire.Message:
        """The HTTP headers that go with the result."""

    @abstractmethod
    def _acknowledge(self, request: Request, granted: Granted) -> None:
        """Say which notices a subscription was granted, and send them from now on."""

    @abstractmethod
    def _notified(self, channel: Channel, message: wire.Message) -> None:
        """Take in a notification."""

    @abstractmethod
    def _complete(self, method: str, result: wire.Message) -> wire.Message:
        """Add what this era adds to each result."""

    @abstractmethod
    def _not_found(self) -> Refusal:
        """The answer to a read of a resource that is not there. Rule: RES-11."""

    @abstractmethod
    def _unknown(self) -> Refusal:
        """The answer to a method that this server does not have. Rule: EMIT-24."""

    # --- requests ---

    def _ruled(self, request: Request) -> bool:
        """Whether a rule answers what else gets no message: notifications, GET and DELETE."""
        self.accepted.append(request)
        rule = self.rules.find(request)
        if rule is None:
            return False
        if rule.content.status is not None or rule.delivery.cut or rule.delivery.never:
            self._deliver(request, rule)
            return True
        return False

    def _requested(self, request: Request) -> None:
        refusal = self._admit(request)
        rule = self.rules.find(request, overriding=refusal is not None)
        if refusal is not None and rule is None:
            self._send(Answer(request, refusal))
            return
        self.accepted.append(request)
        if rule is None:
            self._send(Answer(request, *self._served(request)))
        else:
            self._deliver(request, rule)

    def _deliver(self, request: Request, rule: s.Answer) -> None:
        """Compute the answer now, and send it when the rule says."""
        how, channel = rule.delivery, request.channel
        if how.notify_first is not None:
            self.notify(how.notify_first, to="any")
        answer = None if how.cut or how.never else self._shaped(request, rule)
        if how.stream is not None and channel.kind == "post":
            self._stream(channel, how.stream, {} if answer is None else answer.headers)
        if how.cut:
            self._reset([channel])
        elif answer is None:
            self._recorder.add("note", channel.id, unanswered=True)
        else:
            self._send_when(how, answer)

    def _send_when(self, how: s.Delivery, answer: Answer) -> None:
        channel = answer.request.channel
        if how.hold is not None:
            self.rules.held[how.hold] = answer
            self._recorder.add("note", channel.id, held=how.hold)
            if channel.kind == "post":
                self._begin_stream(channel, answer.headers)
        elif how.after_ms is not None:
            self.timers.later(how.after_ms, lambda: self._send_late(answer))
        else:
            self._send(answer)

    def _stream(self, channel: Channel, stream: s.Stream, headers: wire.Message) -> None:
        """Begin the answer as an event stream."""
        self._begin_stream(channel, headers)
        if stream.begin:
            self._write_bare(channel, stream.begin)
        if stream.notice is not None:
            message = wire.notice(stream.notice)
            wire.check_outgoing(message, self.revision)
            self._write(channel, message)

    def _shaped(self, request: Request, rule: s.Answer) -> Answer:
        """The answer as the rule wants it."""
        content, notify = rule.content, rule.delivery.notify
        if (error := content.error) is not None:
            refusal = Refusal(error.code, error.message, error.data, error.http)
            return Answer(request, refusal, notify=notify)
        if (status := content.status) is not None:
            return Answer(request, Bare(status.code, status.headers, status.body), notify=notify)
        if content.text is not None:
            text = content.text.replace("{id}", wire.encode_any(request.id))
            return Answer(request, Text(text), malformed=True, notify=notify)
        served, headers = self._served(request)
        kind = KIND_OF_METHOD.get(request.method)
        if content.page is not None and kind is not None:
            page = self._page(kind, content.page, request.channel)
            served = self._complete(request.method, page)
        if isinstance(served, Granted):
            if content.grant is not None:
                served = Granted({wire.FILTER_FIELD[kind]: True for kind in content.grant})
            served = Granted({**served.fields, **content.put})
        if not isinstance(served, Refusal | Granted):
            served = bent(served, kind, content)
        return Answer(request, served, headers, content.malformed, notify)

    def _page(self, kind: str, page: said.Page, channel: Channel) -> wire.Message:
        items = [self._item(kind, label, channel) for label in page.items]
        if page.next is None:
            return {wire.RESULT_KEY[kind]: items}
        following = page.next.replace("{n}", str(self._recorder.next_seq))
        return {wire.RESULT_KEY[kind]: items, "nextCursor": following}

    def _served(self, request: Request) -> tuple[wire.Message | Refusal | Granted, wire.Message]:
        """The well-behaved answer at this moment, whole, and its HTTP headers."""
        content = self._own(request) or self._content(request)
        if isinstance(content, Refusal | Granted):
            return content, {}
        return self._complete(request.method, content), self._headers(request)

    def _content(self, request: Request) -> wire.Message | Refusal:
        method, params, principal = request.method, request.params, request.channel.principal
        kind = KIND_OF_METHOD.get(method) or _KIND_OF_USE.get(method)
        if kind is not None and not self.catalogs.serves(kind):
            return self._unknown()
        match method:
            case "ping":
                return {}
            case "tools/call" if params["name"] in self.catalogs.tools(principal):
                return {"content": [{"type": "text", "text": f"called {params['name']}"}]}
            case "tools/call":
                return Refusal(wire.INVALID_PARAMS, "Unknown tool")
            case "prompts/get":
                label = self.catalogs.label(kind or "", params["name"], principal)
                return wire.prompt(label) or Refusal(wire.INVALID_PARAMS, "Unknown prompt")
            case "resources/read":
                text = self.catalogs.text(params["uri"], principal)
                return wire.contents(params["uri"], text) or self._not_found()
            case _ if kind is not None:
                return self._list(kind, params, request.channel)
            case _:
                return self._unknown()

    def _list(self, kind: str, params: wire.Message, channel: Channel) -> wire.Message | Refusal:
        page = self.catalogs.page(kind, params.get("cursor"), channel.principal)
        if page is None:
            return Refusal(wire.INVALID_PARAMS, "Unknown cursor")
        items = [self._item(kind, label, channel) for label in page.items]
        more = {} if page.next_cursor is None else {"nextCursor": page.next_cursor}
        return {wire.RESULT_KEY[kind]: items, **more}

    def _item(self, kind: str, label: str, channel: Channel) -> wire.Message:
        details = self.setup.details.get(label, {})
        return wire.item(kind, label) | wire.filled(details, str(channel.headers.get(URL, "")))

    def _page_of(self, message: wire.Message, channel: Channel) -> int | None:
        kind = KIND_OF_METHOD.get(str(message.get("method")))
        if kind is None:
            return None
        cursor = wire.params_of(message).get("cursor")
        if cursor is None:
            return 1
        known = isinstance(cursor, str)
        page = self.catalogs.page(kind, cursor, channel.principal) if known else None
        return None if page is None else page.number

    def _malformed(self, channel: Channel) -> None:
        if channel.kind == "post":
            self._close_exchange(
                channel, 400, wire.error_message(None, wire.INVALID_REQUEST, "Invalid request")
            )

    # --- sending ---

    def _send(self, answer: Answer) -> None:
        request, content = answer.request, answer.content
        match content:
            case Granted():
                self._acknowledge(request, content)
            case Bare():
                self._bare(request.channel, content)
            case Text():
                self._out(request, {"relist-text": content.text[:500]}, answer, text=content.text)
            case Refusal():
                told = content.code, content.message, content.data
                message = wire.error_message(request.id, *told)
                self._out(request, message, answer, content.http)
            case _:
                self._check(request.method, content, answer.malformed)
                self._out(request, wire.result_message(request.id, content), answer)
        if answer.notify is not None:
            self.notify(answer.notify)

    def _check(self, method: str, result: wire.Message, malformed: bool) -> None:
        """What is said to be malformed has to be, and nothing else may. Raises ``WireFault``."""
        try:
            wire.check_result(method, self.revision, result)
        except wire.WireFault:
            if not malformed:
                raise
        else:
            if malformed:
                raise wire.WireFault(f"result of {method}: the case calls it malformed, it is not")


_KIND_OF_USE = {
    "tools/call": "tools",
    "prompts/get": "prompts",
    "resources/read": "resources",
    "resources/subscribe": "resources",
    "resources/unsubscribe": "resources",
}

_BEARER = "Bearer relist-"


def token_of(principal: str) -> str:
    """The bearer token of a principal: made up, and no secret."""
    return f"relist-{principal}"


def _bearer(headers: wire.Message) -> str:
    """The principal whose token these headers carry; "" for anybody else."""
    told = str(headers.get("authorization", ""))
    return told.removeprefix(_BEARER)[:40] if told.startswith(_BEARER) else ""
