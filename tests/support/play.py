"""A play: what can be chosen now, one action at a time, and a fair, quiet end."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from relist import effects as e
from relist import inputs as i
from relist.session import deadline_ms
from relist.updates import covered_uris
from relist.values import (
    CHANNELS,
    KINDS,
    Carrier,
    Era,
    Kind,
    LinkPhase,
    ListenPhase,
    Phase,
    Wire,
)
from support.acts import Acts
from support.one import METHOD_NOT_FOUND, TRANSIENT, UNAUTHORIZED
from support.server import DEAD_CURSOR
from support.stage import LIFETIME_MS, SETTINGS, Asked, Setting, Violation

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


class Play(Acts):
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

    # --- what is offered --------------------------------------------------------------------------

    def offers(self) -> Iterator[Action]:
        if self.setting.modern:  # a legacy server is asked once
            for kind in (None, Kind.PROMPTS, Kind.TOOLS):
                yield Action(self.offer, (kind,))

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
        return (Action(self.toggle_endless, kinds) for kinds in (KINDS, *((k,) for k in KINDS)))

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

    def foreign_notices(self) -> Iterable[Action]:
        """Tagged for nobody, for what is over, untagged, or never promised."""
        serial = self.session.listen.serial
        return (Action(self.stray, (tag,)) for tag in (0, serial, serial - 1, None))

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

    def subscriptions(self) -> Iterable[Action]:
        return (Action(self.subscribe, URIS[:count]) for count in (2, 1, 0))

    def updates(self) -> Iterator[Action]:
        for tag in (self.server.updates, 0, None):
            for uri in URIS:
                yield Action(self.update, (uri, tag))

    def renewals(self) -> Iterable[Action]:
        return (Action(self.credentials),)

    # --- time -------------------------------------------------------------------------------------

    def pauses(self) -> Iterable[Action]:
        return (Action(self.wait, (60,)), Action(self.wait, (1_000,)), Action(self.wake))

    def lifetimes(self) -> Iterator[Action]:
        for catalog in self.session.catalogs:
            if catalog.snapshot is not None and catalog.snapshot.expires_at_ms is not None:
                yield Action(self.outlive, (catalog.kind, catalog.snapshot.expires_at_ms))

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
                self.toggle_endless(kind)
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
        updates = self.session.updates
        missed = updates.wanted - covered_uris(updates) - updates.refused
        modern = self.session.link.era is Era.MODERN
        denied = updates.epoch is None or (modern and updates.listen.phase is ListenPhase.OFF)
        if missed and not denied:
            raise self.violation("converges", f"{sorted(missed)} are not heard of")

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
