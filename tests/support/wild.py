"""A peer that answers whatever it is asked with anything, and a session that has to bear it."""

import json
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from relist import effects as e
from relist import inputs as i
from relist.effects import Effect, Note, RequestEffect
from relist.inputs import SessionInput
from relist.messages import FILTERS, NAMES, NOTICES, UPDATED, read_failure
from relist.policy import Policy
from relist.requests import ACKNOWLEDGED, NO_TAGS, Tags, failed, id_of, understood
from relist.session import deadline_ms, new_session, receive
from relist.values import KINDS, LinkPhase, Wire
from support import anything
from support.anything import LONG, WILD
from support.one import LEGACY, METHOD_NOT_FOUND, MODERN

Any_ = st.SearchStrategy[Any]
ACTS = (
    *("answer",) * 7,
    *("refuse", "notify", "babble", "connect", "wake", "break_off", "wish", "subscribe"),
)
METHODS = [*NOTICES, UPDATED, ACKNOWLEDGED, "notifications/message"]


def canonical(value: object) -> bytes:
    """Bytes that are equal when the JSON values are."""
    return json.dumps(value, sort_keys=True, allow_nan=False).encode()


def _mostly(nearly_right: Any_) -> Any_:
    """Or anything at all."""
    return st.integers(0, 4).flatmap(lambda n: nearly_right if n else WILD)


def _results(effect: RequestEffect) -> Any_:
    """Results of this request that are nearly right."""
    match effect:
        case e.RequestPage(kind=kind):
            return anything.pages(kind, WILD)
        case e.RequestDiscover():
            return anything.discoveries(MODERN, WILD)
        case e.RequestInitialize():
            return anything.greetings(LEGACY, WILD)
        case _:
            return st.just({})


class WildPeer:
    """Over HTTP, where everything may come at any time. ``act`` draws what happens next."""

    def __init__(self, policy: Policy) -> None:
        self.session, self._policy = new_session(Wire.HTTP, "A"), policy
        self.now_ms = 1_000
        self._asked: dict[str, RequestEffect] = {}  # also what nobody waits for any more
        self.hear(i.ConnectWanted(self.now_ms))

    def step(self, heard: SessionInput) -> tuple[Effect, ...]:
        """The session hears this."""
        self.session, effects = receive(self.session, heard, self._policy)
        self._asked |= {id_of(told): told for told in effects if isinstance(told, RequestEffect)}
        return effects

    def hear(self, heard: SessionInput, notes: tuple[Note, ...] = ()) -> None:
        """The session hears what was read of a message, with these notes."""
        self.step(heard)

    def say(self, message: object, tags: Tags = NO_TAGS) -> None:
        """The session hears what this message means, if it means anything."""
        heard = understood(message, dict(self._asked), canonical, self.now_ms, tags)
        if heard is not None:
            self.hear(*heard)

    def start(self, era: str) -> None:
        """The transport opens; and the connection comes about as it should, if its era is known."""
        flag = {"listChanged": True, "subscribe": True}
        result: Mapping[str, object] = {
            "supportedVersions": [MODERN],
            "protocolVersion": LEGACY,
            "capabilities": {names.capability: flag for names in NAMES.values()},
        }
        self.hear(i.TransportOpened(self.session.link.epoch, self.now_ms))
        probe = self._last()
        if era == "modern":
            self.say({"id": probe, "result": result})
            grants = {"notifications": dict.fromkeys(FILTERS.values(), True)}
            message = {"method": ACKNOWLEDGED, "params": grants}
            self.say(message, Tags(lists=self.session.listen.serial))
        elif era == "legacy":
            self.say({"id": probe, "error": {"code": METHOD_NOT_FOUND.code}})
            self.say({"id": self._last(), "result": result})
            self.hear(i.PushEnded(self.session.listen.serial, METHOD_NOT_FOUND, self.now_ms))

    def _last(self) -> str:
        return next(reversed(self._asked))

    def act(self, data: st.DataObject) -> None:
        """One thing happens."""
        getattr(self, data.draw(st.sampled_from(ACTS)))(data)

    def _request(self, data: st.DataObject) -> str:
        """The id of a request, not always one that is still waited for."""
        return data.draw(st.sampled_from(["nobody's", *self._asked][-4:]))

    def answer(self, data: st.DataObject) -> None:
        """A request gets a result; or a stream its acknowledgement."""
        wire_id = self._request(data)
        effect = self._asked.get(wire_id)
        if isinstance(effect, e.OpenListen | e.OpenUpdates):
            lists = effect.serial if isinstance(effect, e.OpenListen) else 0
            params = data.draw(_mostly(anything.acknowledgements(WILD)))
            message = {"method": ACKNOWLEDGED, "params": params}
            self.say(message, Tags(lists, 0 if lists else effect.serial))
        elif effect is not None:
            self.say({"id": wire_id, "result": data.draw(_mostly(_results(effect)))})

    def refuse(self, data: st.DataObject) -> None:
        """A request gets an error, with a status over HTTP."""
        effect = self._asked.get(self._request(data))
        status = data.draw(st.sampled_from([None, 200, 400, 401, 404, 429, 500]))
        if effect is not None:
            failure = read_failure(data.draw(_mostly(anything.errors(WILD))), status)
            self.hear(*failed(effect, failure, self.now_ms))

    def notify(self, data: st.DataObject) -> None:
        """A notification comes, with any params and any tag."""
        tag = st.none() | st.integers(0, 9)
        about = st.fixed_dictionaries({"uri": LONG | st.sampled_from(["a:1", "a:2"]) | WILD})
        message = {"method": data.draw(st.sampled_from(METHODS)), "params": data.draw(about | WILD)}
        self.say(message, Tags(data.draw(tag), data.draw(tag)))

    def babble(self, data: st.DataObject) -> None:
        """A message that may be nothing at all."""
        wire_id = st.just(self._request(data)) | WILD
        parts = {"id": wire_id, "result": WILD, "error": WILD, "method": WILD, "params": WILD}
        self.say(data.draw(st.fixed_dictionaries({}, optional=parts) | WILD))

    def connect(self, _: st.DataObject) -> None:
        """The transport stands."""
        if self.session.link.phase is LinkPhase.OPENING:
            self.hear(i.TransportOpened(self.session.link.epoch, self.now_ms))

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
