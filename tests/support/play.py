"""A play: what may happen on the stage, one action at a time, and a fair, quiet end."""

from collections.abc import Callable, Iterator

from attrs import evolve

from relist import effects as e
from relist import inputs as i
from relist.session import deadline_ms
from relist.values import (
    CHANNEL_OF,
    KINDS,
    Carrier,
    Channel,
    Kind,
    LinkPhase,
    ListenPhase,
    Phase,
    Scope,
    Wire,
)
from support.one import LEGACY, METHOD_NOT_FOUND, MODERN, TRANSIENT, UNAUTHORIZED
from support.server import DEAD_CURSOR
from support.stage import LIFETIME_MS, SETTINGS, Asked, Frame, Setting, Stage, Violation

__all__ = ["SETTINGS", "WEIGHTS", "Play", "Setting", "Violation"]

BUDGET = 600
Action = tuple[str, Callable[[], None]]

# How often each family of actions is drawn; the first is what a choice of 0 means (for shrinking).
WEIGHTS = {
    "answer": 5,
    "run": 2,
    "serve": 2,
    "deliver": 3,
    "change": 3,
    "notice": 3,
    "again": 2,
    "endless": 1,
    "repeat": 1,
    "fail": 1,
    "duplicate": 1,
    "break": 1,
    "wish": 2,
    "time": 2,
}
_DRAW = [family for family, weight in WEIGHTS.items() for _ in range(weight)]


class Play(Stage):
    """One run. ``options()`` are the actions that are possible now, in a fixed order."""

    # --- what may happen --------------------------------------------------------------------------

    def options(self) -> dict[str, list[Action]]:
        """Families of actions; within each, all that is possible now."""
        families = {
            "run": [("run", self.run)],
            "change": list(self._changes()),
            "repeat": self._repeats(),
            "answer": [("answer", _bound(self.answer, a)) for a in self.asked],
            "serve": [("serve", _bound(self.serve, asked)) for asked in self.asked],
            "fail": list(self._failures()),
            "deliver": [("deliver", _bound(self.deliver, frame)) for frame in self._deliverable()],
            "notice": [(f"notice {kind.value}", _bound(self.notice, kind)) for kind in KINDS],
            "endless": [(f"endless {k.value}", _bound(self.toggle_endless, k)) for k in KINDS],
            "again": [("again", _bound(self.again, frame)) for frame in reversed(self.seen)],
            "duplicate": [("duplicate", _bound(self.wire.append, frame)) for frame in self.wire],
            "break": list(self._breaks()),
            "wish": list(self._wishes()),
            "time": [
                ("wait", _bound(self.wait, 60)),
                ("wait long", _bound(self.wait, 1_000)),
                ("wake", self.wake),
            ],
        }
        return {name: actions for name, actions in families.items() if actions}

    def act(self, choice: int) -> None:
        """One number chooses a family and an action of it; of the next family, if that has none."""
        index, draw = divmod(choice, len(_DRAW))
        options = self.options()
        order = [*_DRAW[draw:], *_DRAW[:draw]]
        family = next(family for family in order if family in options)
        self.act_in(family, index)

    def act_in(self, family: str, choice: int) -> None:
        """Do the choice-th possible action of this family; nothing when there is none."""
        actions = self.options().get(family)
        if actions:
            self._do(actions[choice % len(actions)])

    def _do(self, action: Action) -> None:
        self.transcript.append(f"{self.now_ms:>7} [{action[0]}]")
        action[1]()

    def _changes(self) -> Iterator[Action]:
        for kind in KINDS:
            yield f"change {kind.value}", _bound(self.change, kind)
        for kind in (Kind.TOOLS, Kind.RESOURCES):
            yield f"turn {kind.value}", _bound(self.turn, kind)
        yield "scope", self.change_scope
        yield "chatter", self.toggle_chatter

    def change(self, kind: Kind) -> None:
        """The server's list changes, and those who are covered are told in the same instant."""
        listed = self.server.listed[kind]
        self.server.listed[kind] = evolve(listed, version=listed.version + 1)
        self.tell(CHANNEL_OF[kind])

    def tell(self, channel: Channel) -> None:
        """A notice goes out, if anybody listens."""
        if channel in self.server.pushing:
            notice = i.NoticeHeard(channel, self.server.subscription, 0)
            self.wire.append(Frame(self.session.link.epoch, notice))

    def _repeats(self) -> list[Action]:
        return [
            (f"repeat {channel.value}", _bound(self.tell, channel))
            for channel in Channel
            if channel in self.server.pushing
        ]

    def serve(self, asked: Asked) -> None:
        """The server answers now; the answer is on its way."""
        self.asked.remove(asked)
        heard = self._answer(asked)
        if heard is not None:
            self.wire.append(Frame(asked.epoch, heard))

    def answer(self, asked: Asked) -> None:
        """The server answers, and the answer arrives."""
        before = len(self.wire)
        self.serve(asked)
        self._arrive(self.wire[before:])

    def notice(self, kind: Kind) -> None:
        """A list changes, and the notice of it arrives, if one was sent."""
        before = len(self.wire)
        self.change(kind)
        self._arrive(self.wire[before:])

    def _arrive(self, news: list[Frame]) -> None:
        """These arrive now; over a pipe after all that went before them."""
        if news and self.setting.wire is Wire.PIPE:
            epoch = self.session.link.epoch
            news = [frame for frame in self.wire if frame.epoch == epoch]
        for frame in news:
            self.deliver(frame)

    def again(self, frame: Frame) -> None:
        """An answer that has arrived arrives once more."""
        self.hear(evolve(frame.heard, now_ms=self.now_ms))

    def run(self) -> None:
        """For a while all requests are answered, all answers arrive, and links come back."""
        for _ in range(12):
            if self.wire:
                self.deliver(self._deliverable()[0])
            elif self.asked:
                self.serve(self.asked[0])
            elif self.session.link.phase is LinkPhase.WAITING:
                self.wake()

    def _answer(self, asked: Asked) -> i.PeerInput | None:
        server, effect = self.server, asked.effect
        match effect:
            case e.OpenTransport():
                return i.TransportOpened(effect.epoch, 0) if asked.alive else None
            case e.RequestPage():
                if server.chatty:
                    self.tell(CHANNEL_OF[effect.kind])
                return server.answer(effect, 0)
            case e.RequestDiscover() if server.modern:
                return i.DiscoverAnswered(effect.serial, (MODERN,), server.capabilities(), 0)
            case e.RequestDiscover():
                return i.DiscoverFailed(effect.serial, METHOD_NOT_FOUND, 0)
            case e.RequestInitialize():
                return i.InitializeAnswered(effect.serial, LEGACY, server.capabilities(), 0)
            case e.OpenListen():
                if not asked.alive:
                    return None
                server.pushing = server.capabilities().channels & effect.topics
                server.subscription = effect.serial
                return i.PushOpened(effect.serial, server.pushing, 0)

    def _failures(self) -> Iterator[Action]:
        for asked in self.asked:
            effect = asked.effect
            if isinstance(effect, e.RequestPage):
                for failure in (TRANSIENT, UNAUTHORIZED, METHOD_NOT_FOUND, DEAD_CURSOR):
                    heard: i.PeerInput = i.PageFailed(effect.kind, effect.serial, failure, 0)
                    yield "fail page", _bound(self._fail, asked, heard)
            elif isinstance(effect, e.OpenTransport) and asked.alive:
                yield "fail open", _bound(self._fail, asked, i.TransportLost(effect.epoch, 0))
            elif isinstance(effect, e.RequestDiscover):
                heard = i.DiscoverFailed(effect.serial, TRANSIENT, 0)
                yield "fail discover", _bound(self._fail, asked, heard)
            elif isinstance(effect, e.OpenListen) and asked.alive:
                heard = i.PushEnded(effect.serial, TRANSIENT, 0)
                yield "fail listen", _bound(self._fail, asked, heard)

    def _fail(self, asked: Asked, heard: i.PeerInput) -> None:
        self.asked.remove(asked)
        self.wire.append(Frame(asked.epoch, heard))

    def _deliverable(self) -> list[Frame]:
        """A pipe keeps order; what is left over from an earlier one comes when it comes."""
        if self.setting.wire is Wire.HTTP:
            return list(self.wire)
        epoch = self.session.link.epoch
        now = [frame for frame in self.wire if frame.epoch == epoch]
        return [*now[:1], *(frame for frame in self.wire if frame.epoch != epoch)]

    def deliver(self, frame: Frame) -> None:
        """It arrives."""
        self.wire.remove(frame)
        if not isinstance(frame.heard, i.NoticeHeard):
            self.seen = [*self.seen[-2:], frame]
        self.hear(evolve(frame.heard, now_ms=self.now_ms))

    def _breaks(self) -> Iterator[Action]:
        link, listen = self.session.link, self.session.listen
        if link.phase in (LinkPhase.PROBING, LinkPhase.HANDSHAKING, LinkPhase.LIVE):
            yield "drop", self.drop
        if self.server.subscription is not None:
            yield "cut push", self.cut
        streams = self.setting.wire is Wire.HTTP and listen.carrier is Carrier.STREAM
        if streams and listen.phase is ListenPhase.OPEN:
            yield "cut stream", self.cut
        if streams and listen.phase in (ListenPhase.ASKED, ListenPhase.RESTING):
            yield "open stream", self.open_stream
        if link.phase is LinkPhase.LIVE and not self.setting.modern:
            yield "expire", self.expire

    def drop(self) -> None:
        """The connection breaks, and the client knows."""
        epoch = self.session.link.epoch
        self.sever(epoch)
        self.hear(i.TransportLost(epoch, self.now_ms))

    def expire(self) -> None:
        """The server forgets the legacy session."""
        epoch = self.session.link.epoch
        self.sever(epoch)
        self.hear(i.SessionExpired(epoch, self.now_ms))

    def cut(self) -> None:
        """The stream of notices ends; the client learns of it when the frame arrives."""
        serial = self.session.listen.serial
        if self.server.subscription is not None:
            serial = self.server.subscription
        self.server.silence()
        self.wire.append(Frame(self.session.link.epoch, i.PushEnded(serial, None, 0)))

    def open_stream(self) -> None:
        """The legacy GET stream stands (again)."""
        self.server.pushing = self.server.capabilities().channels
        self.wire = [f for f in self.wire if not isinstance(f.heard, i.PushEnded)]
        heard = i.PushOpened(self.session.listen.serial, frozenset(Channel), self.now_ms)
        self.hear(heard)

    def toggle_endless(self, kind: Kind) -> None:
        """From now on this list has no last page within any bound; or it has one again."""
        listed = self.server.listed[kind]
        self.server.listed[kind] = evolve(
            listed, endless=not listed.endless, version=listed.version + 1
        )
        self.tell(CHANNEL_OF[kind])

    def turn(self, kind: Kind) -> None:
        """The same entries in another order, which is nothing new, and a notice of it."""
        listed = self.server.listed[kind]
        self.server.listed[kind] = evolve(listed, turned=not listed.turned)
        self.tell(CHANNEL_OF[kind])

    def change_scope(self) -> None:
        """Lists become private or public, and all who listen are told."""
        private = self.server.scope is Scope.PRIVATE
        self.server.scope = Scope.PUBLIC if private else Scope.PRIVATE
        for channel in Channel:
            self.tell(channel)

    def toggle_chatter(self) -> None:
        """From now on each list request makes the server send a notice; or no longer."""
        self.server.chatty = not self.server.chatty

    def _wishes(self) -> Iterator[Action]:
        for kind in (Kind.TOOLS, Kind.RESOURCES):
            yield f"read {kind.value}", _bound(self.read, kind)
            yield f"verify {kind.value}", _bound(self.verify, kind)
            yield f"refresh {kind.value}", _bound(self.refresh, kind)
            if self.session.catalog(kind).generation:
                for generation in {1, self.session.catalog(kind).generation}:
                    yield f"prove {kind.value}", _bound(self.prove, kind, generation)
        yield "credentials", self.credentials

    def read(self, kind: Kind) -> None:
        """Somebody needs the list."""
        self.hear(i.ReadWanted(kind, self.now_ms))

    def verify(self, kind: Kind) -> None:
        """A call waits for the list to be verified."""
        self.hear(i.VerificationWanted(kind, self.now_ms))

    def refresh(self, kind: Kind) -> None:
        """Somebody asks for a new list."""
        self.hear(i.RefreshWanted(kind, self.now_ms))

    def prove(self, kind: Kind, generation: int) -> None:
        """A call planned on this list was rejected in a way that proves it stale."""
        self.hear(i.StalenessProved(kind, generation, self.now_ms))

    def credentials(self) -> None:
        """New credentials: of the same partition, of another, of the same, of the first again."""
        self.partitions += 1
        self.hear(i.CredentialsChanged("AB"[self.partitions // 2 % 2], self.now_ms))

    def wait(self, ms: int) -> None:
        """Time passes."""
        self.now_ms += ms
        self.hear(i.TimePassed(self.now_ms))

    def wake(self) -> None:
        """Time passes until the session wants to know of it."""
        at_ms = deadline_ms(self.session, self.policy)
        self.wait(0 if at_ms is None else max(0, at_ms - self.now_ms))

    def settle(self) -> None:
        """``converges``: the server is quiet and fair from now on; all lists become its own.

        Parked catalogs get other credentials; an uncovered list gets a read after its lifetime;
        a kind whose method the server denied stays unsupported until the next connection.
        """
        self.server.chatty = False
        for kind, listed in self.server.listed.items():
            if listed.endless:
                self.server.listed[kind] = evolve(listed, endless=False, version=listed.version + 1)
                self.tell(CHANNEL_OF[kind])
        self._drain()
        if any(catalog.pacing.parked for catalog in self.session.catalogs):
            self.credentials()
            self._drain()
        self.now_ms += LIFETIME_MS + 1
        for kind in KINDS:
            self.read(kind)
        self._drain()
        for catalog in self.session.catalogs:
            if catalog.phase is Phase.UNSUPPORTED:
                continue
            if catalog.phase is not Phase.FRESH or not self.current(catalog):
                raise self.violation("converges", f"{catalog.kind.value} stays {catalog}")

    def _drain(self) -> None:
        for _ in range(BUDGET):
            streams = [a for a in self._breaks() if a[0] == "open stream"]
            if self.asked:
                self.serve(self.asked[0])
            elif self.wire:
                self.deliver(self._deliverable()[0])
            elif streams:
                streams[0][1]()
            elif deadline_ms(self.session, self.policy) is not None:
                self.wake()
            elif self.session.link.phase is LinkPhase.PARKED:
                self.credentials()
            else:
                return
        raise self.violation("converges", f"not settled after {BUDGET} steps")


def _bound(act: Callable[..., None], *values: object) -> Callable[[], None]:
    return lambda: act(*values)
