"""A peer that answers whatever it is asked with anything, and a session that has to bear it."""

import json
from typing import Any

from hypothesis import strategies as st

from relist import effects as e
from relist import inputs as i
from relist.effects import Effect, Note
from relist.inputs import SessionInput
from relist.messages import (
    FILTERS,
    NAMES,
    notes_on_failure,
    read_acknowledgement,
    read_discovery,
    read_failure,
    read_initialization,
    read_page,
    read_updates_acknowledgement,
)
from relist.policy import Policy
from relist.session import deadline_ms, new_session, receive
from relist.values import CHANNELS, KINDS, Failure, Wire
from support import anything
from support.anything import LONG, WILD
from support.one import LEGACY, METHOD_NOT_FOUND, MODERN
from support.stage import Request

ACTS = (*("answer",) * 7, "refuse", "notify", "wake", "break_off", "wish", "subscribe")


def canonical(value: object) -> bytes:
    """Bytes that are equal when the JSON values are."""
    return json.dumps(value, sort_keys=True, allow_nan=False).encode()


def _mostly(nearly_right: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Or anything at all."""
    return st.integers(0, 4).flatmap(lambda n: nearly_right if n else WILD)


class WildPeer:
    """Over HTTP, where everything may come at any time. ``act`` draws what happens next."""

    def __init__(self, policy: Policy) -> None:
        self.session, self._policy = new_session(Wire.HTTP, "A"), policy
        self.now_ms = 1_000
        self._asked: list[Request] = []  # whether or not the session still waits for an answer
        self.hear(i.ConnectWanted(self.now_ms))

    def step(self, heard: SessionInput) -> tuple[Effect, ...]:
        """The session hears this."""
        self.session, effects = receive(self.session, heard, self._policy)
        self._asked += [told for told in effects if isinstance(told, Request)]
        return effects

    def hear(self, heard: SessionInput, notes: tuple[Note, ...] = ()) -> None:
        """The session hears what was read of a message, with these notes."""
        self.step(heard)

    def start(self, era: str) -> None:
        """The transport opens; and the connection comes about as it should, if its era is known."""
        flag = {"listChanged": True}
        result = {
            "supportedVersions": [MODERN],
            "protocolVersion": LEGACY,
            "capabilities": {names.capability: flag for names in NAMES.values()},
        }
        self.hear(i.TransportOpened(self.session.link.epoch, self.now_ms))
        serial = self.session.link.serial
        if era == "modern":
            self.hear(*read_discovery(serial, result, self.now_ms))
            grants = {"notifications": dict.fromkeys(FILTERS.values(), True)}
            listen = self.session.listen.serial
            self.hear(*read_acknowledgement(listen, grants, self.now_ms))
        elif era == "legacy":
            self.hear(i.DiscoverFailed(serial, METHOD_NOT_FOUND, self.now_ms))
            self.hear(*read_initialization(serial + 1, result, self.now_ms))
            self.hear(i.PushEnded(self.session.listen.serial, METHOD_NOT_FOUND, self.now_ms))

    def act(self, data: st.DataObject) -> None:
        """One thing happens."""
        getattr(self, data.draw(st.sampled_from(ACTS)))(data)

    def answer(self, data: st.DataObject) -> None:
        """A request gets a result."""
        if not self._asked:
            return
        asked, now_ms = data.draw(st.sampled_from(self._asked[-4:])), self.now_ms
        match asked:
            case e.RequestPage(kind=kind, serial=serial):
                result = data.draw(_mostly(anything.pages(kind, WILD)))
                self.hear(*read_page(kind, serial, result, canonical, now_ms))
            case e.RequestDiscover(serial=serial):
                result = data.draw(_mostly(anything.discoveries(MODERN, WILD)))
                self.hear(*read_discovery(serial, result, now_ms))
            case e.RequestInitialize(serial=serial):
                result = data.draw(_mostly(anything.greetings(LEGACY, WILD)))
                self.hear(*read_initialization(serial, result, now_ms))
            case e.OpenListen(serial=serial):
                params = data.draw(_mostly(anything.acknowledgements(WILD)))
                self.hear(*read_acknowledgement(serial, params, now_ms))
            case e.OpenUpdates(serial=serial):
                params = data.draw(_mostly(anything.acknowledgements(WILD)))
                self.hear(*read_updates_acknowledgement(serial, params, now_ms))
            case e.RequestSubscribe(serial=serial) | e.RequestUnsubscribe(serial=serial):
                self.hear(i.SubscribeAnswered(serial, None, now_ms))
            case e.OpenTransport(epoch=epoch):
                self.hear(i.TransportOpened(epoch, now_ms))

    def refuse(self, data: st.DataObject) -> None:
        """A request gets an error."""
        if not self._asked:
            return
        asked = data.draw(st.sampled_from(self._asked))
        status = data.draw(st.sampled_from([None, 200, 400, 401, 404, 429, 500]))
        failure = read_failure(data.draw(_mostly(anything.errors(WILD))), status)
        self.hear(self._failed(asked, failure), notes_on_failure(failure))

    def _failed(self, asked: Request, failure: Failure) -> SessionInput:
        match asked:
            case e.RequestPage(kind=kind, serial=serial):
                return i.PageFailed(kind, serial, failure, self.now_ms)
            case e.RequestDiscover(serial=serial):
                return i.DiscoverFailed(serial, failure, self.now_ms)
            case e.RequestInitialize(serial=serial):
                return i.InitializeFailed(serial, failure, self.now_ms)
            case e.OpenListen(serial=serial):
                return i.PushEnded(serial, failure, self.now_ms)
            case e.OpenUpdates(serial=serial):
                return i.UpdatesEnded(serial, failure, self.now_ms)
            case e.RequestSubscribe(serial=serial) | e.RequestUnsubscribe(serial=serial):
                return i.SubscribeAnswered(serial, failure, self.now_ms)
            case e.OpenTransport(epoch=epoch):
                return i.TransportLost(epoch, self.now_ms)

    def notify(self, data: st.DataObject) -> None:
        """A notice comes, about a list or a resource, with any tag."""
        tag = data.draw(st.none() | st.integers(-1, 9))
        about = data.draw(st.sampled_from(CHANNELS) | LONG)
        if isinstance(about, str):
            self.hear(i.UpdateHeard(about, tag, self.now_ms))
        else:
            self.hear(i.NoticeHeard(about, tag, self.now_ms))

    def wake(self, _: st.DataObject) -> None:
        """Time passes until the session wants to know of it."""
        self.now_ms = max(self.now_ms, deadline_ms(self.session, self._policy) or 0)
        self.hear(i.TimePassed(self.now_ms))

    def break_off(self, data: st.DataObject) -> None:
        """The transport or the session ends, this one or another."""
        ended: Any = data.draw(st.sampled_from([i.TransportLost, i.SessionExpired]))
        self.hear(ended(self.session.link.epoch - data.draw(st.integers(0, 1)), self.now_ms))

    def wish(self, data: st.DataObject) -> None:
        """Somebody wants a list, or has new credentials."""
        kind = data.draw(st.sampled_from(KINDS))
        wishes: list[SessionInput] = [
            i.ReadWanted(kind, self.now_ms),
            i.VerificationWanted(kind, self.now_ms),
            i.RefreshWanted(kind, self.now_ms),
            i.CredentialsChanged("B", self.now_ms),
        ]
        listed = self.session.catalog(kind)
        if listed.generation:
            wishes.append(i.SurfaceAdopted(kind, listed.generation, 0, self.now_ms))
        self.hear(data.draw(st.sampled_from(wishes)))

    def subscribe(self, data: st.DataObject) -> None:
        """Somebody wants to hear of some resources, and of no others."""
        uris = data.draw(st.frozensets(st.sampled_from(["a:1", "a:2"])))
        self.hear(i.UpdatesWanted(uris, self.now_ms))
