"""A play: what may happen on the stage, one action at a time, and a fair, quiet end."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from attrs import evolve

from relist import effects as e
from relist import inputs as i
from relist.session import deadline_ms
from relist.values import (
    CHANNEL_OF,
    CHANNELS,
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

__all__ = ["FAMILIES", "SETTINGS", "Action", "Play", "Setting", "Violation"]

BUDGET = 600
URIS = ("a:1", "a:2")


class Action(NamedTuple):
    """Something that can happen now: ``act(*on)``."""

    act: Callable[..., None]
    on: tuple[object, ...] = ()

    def __str__(self) -> str:
        names = (getattr(on, "name", None) or str(on) for on in self.on)
        return f"[{' '.join((self.act.__name__, *names))}]"


class Play(Stage):
    """One run. FAMILIES, below, says what of it can be chosen."""

    # --- choosing ---------------------------------------------------------------------------------

    def possible(self, family: str) -> list[Action]:
        """What is possible now of this family, in a fixed order."""
        return list(FAMILIES[family].actions(self))

    def act(self, choice: int) -> None:
        """One number chooses a family and an action of it; of the next family, if that has none."""
        index, draw = divmod(choice, len(_DRAW))
        for family in (*_DRAW[draw:], *_DRAW[:draw]):
            actions = self.possible(family)
            if actions:
                self._do(actions[index % len(actions)])
                return

    def act_in(self, family: str, choice: int) -> None:
        """Do the choice-th possible action of this family; nothing when there is none."""
        actions = self.possible(family)
        if actions:
            self._do(actions[choice % len(actions)])

    def _do(self, action: Action) -> None:
        self.transcript.append((self.now_ms, "", action))
        action.act(*action.on)

    # --- requests and answers ---------------------------------------------------------------------

    def answers(self) -> Iterable[Action]:
        return (Action(self.answer, (asked,)) for asked in self.asked)

    def holds(self) -> Iterable[Action]:
        return (Action(self.serve, (asked,)) for asked in self.asked)

    def arrivals(self) -> Iterable[Action]:
        return (Action(self.deliver, (frame,)) for frame in self._deliverable())

    def repetitions(self) -> Iterable[Action]:
        return (Action(self.again, (frame,)) for frame in reversed(self.seen))

    def runs(self) -> Iterable[Action]:
        return (Action(self.run),)

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
            case e.OpenUpdates():
                if not asked.alive:
                    return None
                server.updates = effect.serial
                return i.UpdatesOpened(effect.serial, effect.uris, 0)
            case e.RequestSubscribe() | e.RequestUnsubscribe():
                return i.SubscribeAnswered(effect.serial, None, 0)

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

    # --- failing ----------------------------------------------------------------------------------

    def failures(self) -> Iterator[Action]:
        for asked in self.asked:
            for heard in self._failures_of(asked):
                yield Action(self.fail, (asked, heard))

    def _failures_of(self, asked: Asked) -> Iterator[i.PeerInput]:
        effect = asked.effect
        match effect:
            case e.RequestPage():
                for failure in (TRANSIENT, UNAUTHORIZED, METHOD_NOT_FOUND, DEAD_CURSOR):
                    yield i.PageFailed(effect.kind, effect.serial, failure, 0)
            case e.OpenTransport() if asked.alive:
                yield i.TransportLost(effect.epoch, 0)
            case e.RequestDiscover():
                yield i.DiscoverFailed(effect.serial, TRANSIENT, 0)
                yield i.DiscoverFailed(effect.serial, UNAUTHORIZED, 0)
            case e.RequestInitialize():
                yield i.InitializeFailed(effect.serial, TRANSIENT, 0)
            case e.OpenListen() if asked.alive:
                yield i.PushEnded(effect.serial, TRANSIENT, 0)
            case e.OpenUpdates() if asked.alive:
                yield i.UpdatesEnded(effect.serial, TRANSIENT, 0)
            case e.RequestSubscribe() | e.RequestUnsubscribe():
                yield i.SubscribeAnswered(effect.serial, TRANSIENT, 0)
                yield i.SubscribeAnswered(effect.serial, METHOD_NOT_FOUND, 0)
            case _:
                pass

    def fail(self, asked: Asked, heard: i.PeerInput) -> None:
        """The request fails, and the client learns of it when the frame arrives."""
        self.asked.remove(asked)
        self.wire.append(Frame(asked.epoch, heard))

    # --- what is offered --------------------------------------------------------------------------

    def offers(self) -> Iterator[Action]:
        if self.setting.modern:  # a legacy server is asked once
            for kind in (None, Kind.PROMPTS, Kind.TOOLS):
                yield Action(self.offer, (kind,))

    def offer(self, lacks: Kind | None) -> None:
        """From now on the server declares all kinds but this one. Nobody is told."""
        self.server.lacks = lacks

    # --- lists change -----------------------------------------------------------------------------

    def changes(self) -> Iterable[Action]:
        return (Action(self.change, (kind,)) for kind in KINDS)

    def changes_between_pages(self) -> Iterator[Action]:
        for catalog in self.session.catalogs:
            if catalog.walk is not None and catalog.walk.pages:
                yield Action(self.change, (catalog.kind,))

    def upheavals(self) -> Iterable[Action]:
        return (Action(self.change_all), Action(self.change_scope))

    def turns(self) -> Iterable[Action]:
        return (Action(self.turn, (kind,)) for kind in KINDS)

    def endings(self) -> Iterable[Action]:
        return (Action(self.toggle_endless, (kind,)) for kind in KINDS)

    def change(self, kind: Kind) -> None:
        """The server's list changes, and those who are covered are told in the same instant."""
        listed = self.server.listed[kind]
        self.server.listed[kind] = evolve(listed, version=listed.version + 1)
        self.tell(CHANNEL_OF[kind])

    def change_all(self) -> None:
        """All four lists change at once."""
        for kind in KINDS:
            self.change(kind)

    def change_scope(self) -> None:
        """Lists become private or public, and all who listen are told."""
        private = self.server.scope is Scope.PRIVATE
        self.server.scope = Scope.PUBLIC if private else Scope.PRIVATE
        for channel in Channel:
            self.tell(channel)

    def turn(self, kind: Kind) -> None:
        """The same entries in another order, which is nothing new, and a notice of it."""
        listed = self.server.listed[kind]
        self.server.listed[kind] = evolve(listed, turned=not listed.turned)
        self.tell(CHANNEL_OF[kind])

    def toggle_endless(self, kind: Kind) -> None:
        """From now on this list has no last page within any bound; or it has one again."""
        listed = self.server.listed[kind]
        self.server.listed[kind] = evolve(
            listed, endless=not listed.endless, version=listed.version + 1
        )
        self.tell(CHANNEL_OF[kind])

    # --- notices ----------------------------------------------------------------------------------

    def notices(self) -> Iterable[Action]:
        return (Action(self.notice, (kind,)) for kind in KINDS)

    def storms(self) -> Iterator[Action]:
        yield Action(self.toggle_chatter)
        for channel in CHANNELS:
            if channel in self.server.pushing:
                yield Action(self.storm, (channel,))

    def duplicates(self) -> Iterator[Action]:
        for frame in self.wire:
            yield Action(self.wire.append, (frame,))
        for channel in CHANNELS:
            if channel in self.server.pushing:
                yield Action(self.tell, (channel,))

    def foreign_notices(self) -> Iterator[Action]:
        """Tagged for nobody, for what is over, untagged, or never promised."""
        serial = self.session.listen.serial
        for tag in (0, serial, serial - 1, None):
            for channel in (Channel.PROMPTS, Channel.RESOURCES):
                yield Action(self.stray, (channel, tag))

    def tell(self, channel: Channel) -> None:
        """A notice goes out, if anybody listens."""
        if channel in self.server.pushing:
            notice = i.NoticeHeard(channel, self.server.subscription, 0)
            self.wire.append(Frame(self.session.link.epoch, notice))

    def notice(self, kind: Kind) -> None:
        """A list changes, and the notice of it arrives, if one was sent."""
        before = len(self.wire)
        self.change(kind)
        self._arrive(self.wire[before:])

    def storm(self, channel: Channel) -> None:
        """Many notices of nothing arrive, one after the other."""
        for _ in range(4):
            before = len(self.wire)
            self.tell(channel)
            self._arrive(self.wire[before:])
            self.now_ms += 10

    def stray(self, channel: Channel, tag: int | None) -> None:
        """A notice arrives that may have nothing to do with what this client asked for."""
        self.hear(i.NoticeHeard(channel, tag, self.now_ms))

    def toggle_chatter(self) -> None:
        """From now on each list request makes the server send a notice; or no longer."""
        self.server.chatty = not self.server.chatty

    # --- the connection ---------------------------------------------------------------------------

    def breaks(self) -> Iterator[Action]:
        link = self.session.link
        if link.phase in (LinkPhase.PROBING, LinkPhase.HANDSHAKING, LinkPhase.LIVE):
            yield Action(self.drop)
        if self.server.subscription is not None:
            yield Action(self.cut)
        if self.server.updates is not None:
            yield Action(self.cut_updates)
        yield from self._streams()
        if link.phase is LinkPhase.LIVE and not self.setting.modern:
            yield Action(self.expire)
        yield Action(self.reopen)

    def _streams(self) -> Iterator[Action]:
        """What the legacy GET stream may do."""
        listen = self.session.listen
        if self.setting.wire is Wire.HTTP and listen.carrier is Carrier.STREAM:
            if listen.phase is ListenPhase.OPEN:
                yield Action(self.cut)
            elif listen.phase in (ListenPhase.ASKED, ListenPhase.RESTING):
                yield Action(self.open_stream)

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

    def reopen(self) -> None:
        """The caller closes the connection, and wants it again."""
        self.hear(i.CloseWanted(self.now_ms))
        self.hear(i.ConnectWanted(self.now_ms))

    def cut(self) -> None:
        """The stream of notices ends; the client learns of it when the frame arrives."""
        serial = self.session.listen.serial
        if self.server.subscription is not None:
            serial = self.server.subscription
        self.server.silence()
        self.wire.append(Frame(self.session.link.epoch, i.PushEnded(serial, None, 0)))

    def cut_updates(self) -> None:
        """The subscription for single resources ends."""
        assert self.server.updates is not None
        ended = i.UpdatesEnded(self.server.updates, None, 0)
        self.server.updates = None
        self.wire.append(Frame(self.session.link.epoch, ended))

    def open_stream(self) -> None:
        """The legacy GET stream stands (again)."""
        self.server.pushing = self.server.capabilities().channels
        self.wire = [f for f in self.wire if not isinstance(f.heard, i.PushEnded)]
        heard = i.PushOpened(self.session.listen.serial, frozenset(Channel), self.now_ms)
        self.hear(heard)

    # --- the caller -------------------------------------------------------------------------------

    def reads(self) -> Iterator[Action]:
        for kind in KINDS:
            yield Action(self.read, (kind,))
        yield Action(self.begin_task)

    def verifications(self) -> Iterable[Action]:
        return (Action(self.verify, (kind,)) for kind in KINDS)

    def refreshes(self) -> Iterable[Action]:
        return (Action(self.refresh, (kind,)) for kind in KINDS)

    def proofs(self) -> Iterator[Action]:
        for catalog in self.session.catalogs:
            for generation in {1, catalog.generation} if catalog.generation else ():
                yield Action(self.prove, (catalog.kind, generation))

    def adoptions(self) -> Iterator[Action]:
        for catalog in self.session.catalogs:
            if catalog.generation:
                yield Action(self.adopt, (catalog.kind, catalog.generation))

    def subscriptions(self) -> Iterator[Action]:
        for wish in (i.SubscribeWanted, i.UnsubscribeWanted):
            for uri in URIS:
                yield Action(self.subscribe, (wish, uri))

    def updates(self) -> Iterator[Action]:
        for tag in (self.server.updates, 0, None):
            for uri in URIS:
                yield Action(self.update, (uri, tag))

    def renewals(self) -> Iterable[Action]:
        return (Action(self.credentials),)

    def read(self, kind: Kind) -> None:
        """Somebody needs the list."""
        self.hear(i.ReadWanted(kind, self.now_ms))

    def begin_task(self) -> None:
        """A new task begins."""
        self.hear(i.TaskBegan(self.now_ms))

    def verify(self, kind: Kind) -> None:
        """A call waits for the list to be verified."""
        self.hear(i.VerificationWanted(kind, self.now_ms))

    def refresh(self, kind: Kind) -> None:
        """Somebody asks for a new list."""
        self.hear(i.RefreshWanted(kind, self.now_ms))

    def prove(self, kind: Kind, generation: int) -> None:
        """A call planned on this list was rejected in a way that proves it stale."""
        self.hear(i.StalenessProved(kind, generation, self.now_ms))

    def adopt(self, kind: Kind, generation: int) -> None:
        """The host gives its model what is published, in part."""
        self.hear(i.SurfaceAdopted(kind, generation, 0, self.now_ms))

    def subscribe(self, wish: type[i.SubscribeWanted | i.UnsubscribeWanted], uri: str) -> None:
        """Somebody wants to hear of a resource, or nobody does any more."""
        self.hear(wish(uri, self.now_ms))

    def update(self, uri: str, tag: int | None) -> None:
        """News of a resource arrives, perhaps for somebody else."""
        self.hear(i.UpdateHeard(uri, tag, self.now_ms))

    def credentials(self) -> None:
        """New credentials: of the same partition, of another, of the same, of the first again."""
        self.partitions += 1
        self.hear(i.CredentialsChanged("AB"[self.partitions // 2 % 2], self.now_ms))

    # --- time -------------------------------------------------------------------------------------

    def pauses(self) -> Iterable[Action]:
        return (Action(self.wait, (60,)), Action(self.wait, (1_000,)), Action(self.wake))

    def lifetimes(self) -> Iterator[Action]:
        for catalog in self.session.catalogs:
            if catalog.snapshot is not None and catalog.snapshot.expires_at_ms is not None:
                yield Action(self.outlive, (catalog.kind, catalog.snapshot.expires_at_ms))

    def wait(self, ms: int) -> None:
        """Time passes."""
        self.now_ms += ms
        self.hear(i.TimePassed(self.now_ms))

    def wake(self) -> None:
        """Time passes until the session wants to know of it."""
        at_ms = deadline_ms(self.session, self.policy)
        self.wait(0 if at_ms is None else max(0, at_ms - self.now_ms))

    def outlive(self, kind: Kind, expires_at_ms: int) -> None:
        """The lifetime of a list ends, and in that very millisecond somebody needs the list."""
        self.wait(max(0, expires_at_ms - self.now_ms))
        self.read(kind)

    # --- the end ----------------------------------------------------------------------------------

    def settle(self) -> None:
        """``converges``: the server is quiet and fair from now on; all lists become its own.

        Parked catalogs get other credentials; an uncovered list gets a read after its lifetime, and
        one more, since the first may bring to light that the server offers something else by now. A
        kind whose method the server denied stays unsupported until the next connection.
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
        for kind in (*KINDS, *KINDS):
            self.read(kind)
            self._drain()
        for catalog in self.session.catalogs:
            if catalog.phase is Phase.UNSUPPORTED:
                continue
            if catalog.phase is not Phase.FRESH or not self.current(catalog):
                raise self.violation("converges", f"{catalog.kind.value} stays {catalog}")

    def _drain(self) -> None:
        for _ in range(BUDGET):
            streams = [action for action in self._streams() if action.act == self.open_stream]
            if self.asked:
                self.serve(self.asked[0])
            elif self.wire:
                self.deliver(self._deliverable()[0])
            elif streams:
                self.open_stream()
            elif deadline_ms(self.session, self.policy) is not None:
                self.wake()
            elif self.session.link.phase is LinkPhase.PARKED:
                self.credentials()
            else:
                return
        raise self.violation("converges", f"not settled after {BUDGET} steps")


class Family(NamedTuple):
    """How often a family of actions is drawn, and those of it that are possible now."""

    weight: int
    actions: Callable[[Play], Iterable[Action]]


# The first is what a choice of 0 means (for shrinking).
FAMILIES = {
    "answer": Family(5, Play.answers),
    "run": Family(2, Play.runs),
    "hold": Family(2, Play.holds),
    "arrive": Family(3, Play.arrivals),
    "change": Family(2, Play.changes),
    "change_between_pages": Family(1, Play.changes_between_pages),
    "change_all": Family(1, Play.upheavals),
    "notice": Family(3, Play.notices),
    "storm": Family(1, Play.storms),
    "duplicate": Family(1, Play.duplicates),
    "foreign_notice": Family(1, Play.foreign_notices),
    "again": Family(1, Play.repetitions),
    "turn": Family(1, Play.turns),
    "offer": Family(1, Play.offers),
    "endless": Family(1, Play.endings),
    "fail": Family(1, Play.failures),
    "lose": Family(1, Play.breaks),
    "read": Family(1, Play.reads),
    "verify": Family(1, Play.verifications),
    "refresh": Family(1, Play.refreshes),
    "prove": Family(1, Play.proofs),
    "credentials": Family(1, Play.renewals),
    "adopt": Family(1, Play.adoptions),
    "subscribe": Family(1, Play.subscriptions),
    "update": Family(1, Play.updates),
    "expire": Family(1, Play.lifetimes),
    "wait": Family(2, Play.pauses),
}
_DRAW = [name for name, family in FAMILIES.items() for _ in range(family.weight)]
