"""A check's history replayed through the reference machine, event by event.

``Replayed`` tells the machine what the client did and what it heard, and says of each message of
the client why the machine would not have sent it. What is told to the application is judged in
``deviation.py``. Total over arbitrary histories: what cannot be read is passed over.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from attrs import frozen

from relist import inputs as i
from relist.check.following import GONE, Following, Key, name_of, text_of
from relist.check.history import Event, History, mapping
from relist.check.partial import is_cut, is_cut_page
from relist.check.unheard import Notice, Unheard
from relist.check.walked import Walker, Walks, adopt
from relist.messages import (
    NAMES,
    NOTICES,
    is_integer,
    is_object,
    read_acknowledgement,
    read_failure,
    read_granted,
)
from relist.requests import ACKNOWLEDGED, CANCELLED, INITIALIZED
from relist.session import Session
from relist.values import CHANNEL_OF, Doubt, Era, Failure, Kind, LinkPhase, Phase, Wire

LISTEN = "subscriptions/listen"
PIPES = ("stdio", "memory")
KIND_OF = {names.method: kind for kind, names in NAMES.items()}
_VERSION = "io.modelcontextprotocol/protocolVersion"
_TAG = "io.modelcontextprotocol/subscriptionId"
_SESSION = "mcp-session-id"
_TEXT_MAX = 500  # characters of a frame that a history keeps


@frozen
class Reason:
    """Why the machine doubts its list for sure: since which event, in words."""

    seq: int
    told: str
    proved: int = -1
    """Since when the client knows of it; -1: since it has another link."""


class Replayed:
    """The machine as it stands after the events so far."""

    def __init__(self, history: History) -> None:
        pipes = any(one.data.get("channel_kind") in PIPES for one in history if one.kind == "open")
        self.machine = Following(Wire.PIPE if pipes else Wire.HTTP)
        self.walks = {kind: Walks(kind) for kind in Kind}
        self.reasons: dict[Kind, Reason] = {}
        self.asked_at = dict.fromkeys(Kind, -1)
        """When the client last asked for a page of the kind."""
        self.lost: set[Kind] = set()
        """Kinds of which something is not known, so that nothing is said of them."""
        self.partition = ""
        self.called: list[tuple[int, str]] = []
        self.gone_at: int | None = None
        """When the connection or session ended that the client has not renewed."""
        self._history = history
        self._pipe = ""
        self._epoch = 0
        self._channels: dict[str, Mapping[str, Any]] = {}
        self._listed: dict[Key, tuple[Kind, Walker | None]] = {}
        self._unheard = Unheard()
        self._step_seq = -1
        self._answered_at = dict.fromkeys(Kind, -1)

    def take(self, event: Event) -> str | None:
        """Go on by one event; why the machine would not have done what the client did in it."""
        self.machine.at(event)
        why: str | None = None
        match event.kind:
            case "open":
                self._open(event)
            case "in" if event.message is not None:
                why = self._in(event, event.message)
            case "out" if event.message is not None:
                self._out(event, event.message)
            case "status":
                self._status(event)
            case "cut" | "close":
                self._gone(event)
            case "note" if event.data.get("closed") is True:
                self._gone(event)
            case "step":
                self._step_seq = event.seq
            case "fence" if event.data.get("passed") is True:
                self._heard(self._unheard.before(self._step_seq), event)
            case "answer" if event.data.get("op") == "credentials" and "ok" in event.data:
                self._credentials(event)
            case "answer":
                self._answered_at |= {
                    kind: event.seq for kind in Kind if kind.value == event.data.get("kind")
                }
            case _:
                pass
        self._relink()
        return why

    # --- channels and links ---

    def _open(self, event: Event) -> None:
        self._channels[event.channel] = event.data
        sort = event.data.get("channel_kind")
        if sort in PIPES:
            self._lose(event)  # the one before, if there is one
            self._pipe, self.gone_at = event.channel, None
        elif sort == "get":
            self.machine.stream_opened(event.at_ms)

    def _gone(self, event: Event) -> None:
        if event.channel not in self._channels:
            return
        told = self._channels.pop(event.channel)
        if event.channel == self._pipe:
            self._pipe = ""
            refused = self.machine.link.phase is LinkPhase.REFUSED
            self.gone_at = None if refused else event.seq
            self._lose(event)
        elif told.get("channel_kind") == "get":
            self.machine.stream_ended(event.at_ms)
        else:
            self._fail(event, GONE)

    def _lose(self, event: Event) -> None:
        self.machine.lose(event.at_ms)
        self._disconnected(event)

    def _disconnected(self, event: Event) -> None:
        """What the machine doubts for want of the link it doubts for sure: the client knows."""
        self._unlink()
        for kind, walks in self.walks.items():
            if self.machine.link.era is Era.LEGACY:
                walks.given.clear()
            if self.machine.session.catalog(kind).doubt is Doubt.DISCONNECTED:
                why = f"the connection that it rested on ended (#{event.seq})"
                self.reasons.setdefault(kind, Reason(event.seq, why))

    def _relink(self) -> None:
        """No walk goes on over another link than the one that it began on."""
        if self.machine.link.epoch != self._epoch:
            self._epoch = self.machine.link.epoch
            self._unlink()

    def _unlink(self) -> None:
        self._listed = {}
        for walks in self.walks.values():
            walks.unlink()

    def _status(self, event: Event) -> None:
        """An HTTP answer without a message."""
        machine, code = self.machine, event.data.get("code")
        if not is_integer(code):
            return
        told = self._channels.pop(event.channel, {})
        headers = mapping(told.get("headers")) or {}
        failure = Failure("refused", None, code)
        if told.get("channel_kind") == "get":
            machine.stream_ended(event.at_ms, failure)
        self._fail(event, failure)
        if code == 404 and _SESSION in headers and machine.link.era is Era.LEGACY:
            machine.hear(i.SessionExpired(machine.link.epoch, event.at_ms))
            self._disconnected(event)
            self.gone_at = event.seq if self.gone_at is None else self.gone_at

    def _fail(self, event: Event, failure: Failure) -> None:
        """Nothing that was asked on this channel will be answered."""
        self.machine.broke(event.channel, failure, event.at_ms)
        for key in [key for key in self._listed if key[0] == event.channel]:
            kind, walker = self._listed.pop(key)
            if walker is not None:
                self._adopt(kind, walker, self.walks[kind].fails(walker, failure, event))

    def _adopt(self, kind: Kind, walker: Walker, walked: Session | None) -> None:
        """The machine goes by the walk that began last."""
        walks = self.walks[kind]
        if walked is None or walker.begin <= walks.newest:
            return
        walks.newest = walker.begin
        self.machine.session = adopt(self.machine.session, kind, walked)
        reason, sure = self.reasons.get(kind), self.machine.session.catalog(kind).doubt is None
        if reason is not None and sure and reason.seq < walker.begin:
            del self.reasons[kind]

    def _credentials(self, event: Event) -> None:
        asked = name_of(event.data.get("ask"))
        tokens = [
            text_of(one.data.get("token"))
            for one in self._history
            if one.kind == "ask" and name_of(one.data.get("ask")) == asked
        ]
        self.partition = tokens[-1] if tokens else ""
        self.machine.hear(i.CredentialsChanged(self.partition, event.at_ms))

    # --- what the client sends ---

    def _in(self, event: Event, message: Mapping[str, Any]) -> str | None:
        machine, method = self.machine, message.get("method")
        key = (event.channel, name_of(message.get("id")))
        if not isinstance(method, str):
            self._heard(self._unheard.ponged(key[1]), event)
            return None
        params = mapping(message.get("params")) or {}
        if method == INITIALIZED:
            machine.initialized(event.at_ms)
        elif method == CANCELLED:
            self._cancelled(event, params)
        elif method == "initialize":
            return self._shakes(event, key)
        elif method == "server/discover":
            machine.probed(key, event.at_ms)
        elif method in KIND_OF or method == LISTEN:
            return self._needs_link(event, message, params, key)
        elif method == "tools/call" and isinstance(params.get("name"), str):
            self.called.append((event.seq, params["name"]))
        return None

    def _shakes(self, event: Event, key: Key) -> str | None:
        why = self.machine.shook(key, event.at_ms)
        self.gone_at = None
        if self.machine.link.epoch != self._epoch:
            self._disconnected(event)
        return why

    def _needs_link(
        self, event: Event, message: Mapping[str, Any], params: Mapping[str, Any], key: Key
    ) -> str | None:
        machine, method = self.machine, text_of(message.get("method"))
        if len(self.lost) == len(Kind):
            return None
        if machine.link.phase is not LinkPhase.LIVE:
            if why := self._too_early(event, method, params):
                return why
            machine.assume(event.at_ms)
            self._relink()
        if method == LISTEN:
            if machine.link.era is Era.MODERN and read_granted(params):
                machine.listened(key)
            return None
        return self._lists(event, KIND_OF[method], params, key)

    def _too_early(self, event: Event, method: str, params: Mapping[str, Any]) -> str | None:
        """Why this may not be sent yet. Discovery may be skipped, a handshake may not."""
        machine = self.machine
        meta = mapping(params.get("_meta")) or {}
        if machine.shaken is not None:
            return f"{method} was sent before notifications/initialized"
        if _VERSION in meta:
            later = any(
                one.kind == "in"
                and one.channel == event.channel == self._pipe
                and (one.message or {}).get("method") == "server/discover"
                for one in self._history[event.seq + 1 :]
            )
            return f"{method} was sent before server/discover" if later else None
        headers = mapping(self._channels.get(event.channel, {}).get("headers")) or {}
        if machine.offered is not None and (event.channel == self._pipe or _SESSION in headers):
            return None
        return f"{method} was sent before initialize was answered"

    def _lists(self, event: Event, kind: Kind, params: Mapping[str, Any], key: Key) -> str | None:
        """A list request: it begins a walk, goes on with one, or renews a page."""
        machine, walks, now_ms = self.machine, self.walks[kind], event.at_ms
        machine.not_listening(now_ms)
        if machine.session.catalog(kind).phase is Phase.UNSUPPORTED:
            if kind not in machine.offers:
                return f"{NAMES[kind].method} was sent, and the server does not have {kind.value}"
            if self._answered_at[kind] > walks.refused:
                return f"{NAMES[kind].method} was sent again, and there is no such method"
        self.asked_at[kind] = event.seq
        cursor, partition = params.get("cursor"), self._partition_of(event.channel)
        if cursor is None:
            walker = walks.begin(machine.session, event.seq, partition, now_ms)
        elif not isinstance(cursor, str):
            walker = None
        elif (walker := walks.at(cursor)) is None:
            if cursor not in walks.given:
                return f"{NAMES[kind].method} was sent with a cursor that no answer gave out"
            walker = walks.renew(machine.session, cursor, event.seq, partition, now_ms)
        if walker is not None:
            walker.flying = True
        self._listed[key] = (kind, walker)
        return None

    def _partition_of(self, channel: str) -> str:
        """The token that stands for whom a channel is opened for."""
        principal = self._channels.get(channel, {}).get("principal")
        return f"relist-{principal}" if isinstance(principal, str) and principal else ""

    def _cancelled(self, event: Event, params: Mapping[str, Any]) -> None:
        wire_id = name_of(params.get("requestId"))
        self.machine.hung_up((event.channel, wire_id), event.at_ms)
        for key, (kind, walker) in list(self._listed.items()):
            same = key[0] == event.channel or event.channel != self._pipe
            if key[1] == wire_id and same and walker is not None:
                self.walks[kind].forget(walker)

    # --- what the server sends ---

    def _out(self, event: Event, message: Mapping[str, Any]) -> None:
        machine = self.machine
        message = self._text(event, message)
        key = (event.channel, name_of(message.get("id")))
        method = message.get("method")
        if isinstance(method, str):
            if "id" in message:
                self._unheard.pinged(key, event.seq)
            else:
                self._notified(event, method, mapping(message.get("params")) or {})
        elif key in machine.asked:
            if is_cut(message):
                self.lost = set(Kind)
            machine.answered(key, message, event.at_ms)
        elif key in self._listed:
            self._paged(event, message, *self._listed.pop(key))

    def _text(self, event: Event, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """A frame that the case wrote itself: the message in it, if it is one."""
        text = message.get("relist-text")
        if not isinstance(text, str):
            return message
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if len(text) >= _TEXT_MAX:
            self.lost |= {
                kind for key, (kind, _) in self._listed.items() if key[0] == event.channel
            }
        return found if is_object(found) else {}

    def _paged(
        self, event: Event, message: Mapping[str, Any], kind: Kind, walker: Walker | None
    ) -> None:
        walks = self.walks[kind]
        if is_cut_page(message, NAMES[kind].field):
            self.lost.add(kind)
        elif walker is None:
            walks.pass_over(message.get("result"), event, "belongs to no listing")
        elif "error" in message:
            http = event.data.get("http")
            status = http if isinstance(http, int) and http >= 400 else None
            failure = read_failure(message["error"], status)
            self._adopt(kind, walker, walks.fails(walker, failure, event))
        else:
            found = walks.arrived(walker, message.get("result"), event)
            self._adopt(kind, walker, found)

    def _notified(self, event: Event, method: str, params: Mapping[str, Any]) -> None:
        meta = mapping(params.get("_meta")) or {}
        serial = None if _TAG not in meta else self.machine.serial_of(meta[_TAG])
        if method in NOTICES:
            about = NOTICES[method]
            self._unheard.sent(Notice(event.seq, event.channel, about, serial))
            for kind, walks in self.walks.items():
                if CHANNEL_OF[kind] is about:
                    walks.kept = {}
        elif method == ACKNOWLEDGED:
            self.machine.hear(read_acknowledgement(serial or 0, params, event.at_ms).heard)
        elif method == CANCELLED:
            self.machine.end_subscription(params.get("requestId"), event.at_ms)

    def _heard(self, notices: Iterable[Notice], event: Event) -> None:
        """These notices have reached the client, for sure: the machine hears them.

        Unless the client has listed since: then it has what was announced.
        """
        for one in notices:
            doubted = self.machine.on_notice(one.about, one.serial)
            if doubted is None:
                continue
            for kind in Kind:
                if CHANNEL_OF[kind] is one.about and self.walks[kind].newest < one.seq:
                    self.machine.session = adopt(self.machine.session, kind, doubted)
                    why = f"a change was announced (#{one.seq})"
                    self.reasons.setdefault(kind, Reason(one.seq, why, event.seq))
