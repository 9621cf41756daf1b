"""The stage of a play: a client, a model server, the wire between them, and every promise.

Each step is checked: each edge of each catalog and of the session against ``relist.check``, and
what needs the other side (is a fresh list the server's?) here. A broken promise raises Violation.
"""

from typing import Any

from attrs import evolve, frozen

from relist import effects as e
from relist import inputs as i
from relist.check import observe
from relist.policy import Policy
from relist.session import Session, new_session
from relist.values import CHANNEL_OF, Catalog, Kind, Phase, Scope, Wire
from support.one import SEED
from support.server import Server

LIFETIME_MS = 400
POLICY = Policy(
    seed=SEED,
    pages_max=3,
    spoiled_in_row_max=2,
    gap_max_ms=2_000,
    unvouched_lifetime_ms=LIFETIME_MS,
    task_max_age_ms=LIFETIME_MS,
    discovery_lifetime_ms=LIFETIME_MS,
    discovery_gap_ms=100,
)


class Violation(AssertionError):
    """A promise was broken; ``invariant`` is its name."""

    def __init__(self, invariant: str, text: str) -> None:
        super().__init__(f"{invariant}: {text}")
        self.invariant = invariant


@frozen
class Setting:
    """Where a play takes place. A pipe keeps the order of messages, HTTP does not.

    ``lacks``: the kind that this server does not have, if there is one.
    """

    name: str
    wire: Wire
    modern: bool
    declares_push: bool = True
    lazy: bool = False
    ttl_ms: int | None = None
    scope: Scope = Scope.PUBLIC
    lacks: Kind | None = None


SETTINGS = (
    Setting("modern pipe", Wire.PIPE, modern=True),
    Setting("modern http", Wire.HTTP, modern=True, ttl_ms=LIFETIME_MS, scope=Scope.PRIVATE),
    Setting("legacy pipe, no prompts", Wire.PIPE, modern=False, lacks=Kind.PROMPTS),
    Setting("legacy http", Wire.HTTP, modern=False),
    Setting("modern pipe, lazy", Wire.PIPE, modern=True, lazy=True, ttl_ms=0, lacks=Kind.PROMPTS),
    Setting("modern http, no push", Wire.HTTP, modern=True, declares_push=False, ttl_ms=100),
    Setting("modern pipe, no push, no lifetimes", Wire.PIPE, modern=True, declares_push=False),
)


Request = (
    e.OpenTransport
    | e.RequestDiscover
    | e.RequestInitialize
    | e.RequestPage
    | e.OpenListen
    | e.OpenUpdates
    | e.RequestSubscribe
    | e.RequestUnsubscribe
)


@frozen
class Asked:
    """A request that the server has not answered; ``alive``: the client still waits for it."""

    epoch: int
    effect: Request
    alive: bool = True


@frozen
class Frame:
    """Something on its way to the client. ``heard`` says what it will be once ``now_ms`` is set."""

    epoch: int
    heard: i.PeerInput


class Stage:
    """The session, the server, the wire, and what the client's effects do to them."""

    def __init__(self, setting: Setting, policy: Policy = POLICY) -> None:
        self.setting = setting
        self.policy = evolve(policy, lazy=setting.lazy)
        self.server = Server(
            setting.modern, setting.declares_push, setting.ttl_ms, setting.scope, setting.lacks
        )
        self.session: Session = new_session(setting.wire, "A")
        self.now_ms = 1_000
        self.asked: list[Asked] = []
        self.wire: list[Frame] = []
        self.seen: list[Frame] = []  # the last answers that arrived; they may come again
        self.transcript: list[tuple[int, str, object]] = []  # when, a mark, what
        self.partitions = 0
        self.broken = False
        self.hear(i.ConnectWanted(self.now_ms))

    # --- the client hears, and is watched ---------------------------------------------------------

    def hear(self, heard: i.SessionInput) -> None:
        """Let the session hear something, perform what it asks for, check every promise."""
        self.transcript.append((self.now_ms, "", heard))
        observed = observe.observe(self.session, heard, self.policy)
        self.session = observed.whole.after
        for broken in observe.broken(observed):
            raise self.violation(broken.name, f"{broken.where}: {broken.complaint}")
        for effect in observed.whole.effects:
            self.transcript.append((self.now_ms, "-> ", effect))
            self._perform(effect)
        self._check_fresh_is_current()

    def violation(self, name: str, text: str) -> Violation:
        self.broken = True  # what follows on a broken promise proves nothing
        return Violation(name, "\n".join((text, self.setting.name, self.told(60))))

    def told(self, count: int) -> str:
        """The last lines of the transcript."""
        lines = self.transcript[-count:]
        return "\n".join(f"{now_ms:>7} {mark}{what}" for now_ms, mark, what in lines)

    def _perform(self, effect: e.Effect) -> None:
        epoch = self.session.link.epoch
        match effect:
            case e.OpenTransport():
                self.asked.append(Asked(effect.epoch, effect))
            case e.CloseTransport():
                self.sever(effect.epoch)
            case e.SendInitialized() if self.setting.wire is Wire.PIPE:
                self.server.pushing = self.server.capabilities().channels
            case e.AbandonWalk():
                self._bury(effect.serial, e.RequestPage, effect.kind)
            case e.CancelSubscribe():
                self._bury(effect.serial, e.RequestSubscribe | e.RequestUnsubscribe)
            case e.CancelUpdates():
                self._bury(effect.serial, e.OpenUpdates)
                if self.server.updates == effect.serial:
                    self.server.updates = None
            case e.CancelListen():
                self._bury(effect.serial, e.OpenListen)
                if self.server.subscription == effect.serial:
                    self.server.silence()
            case _ if isinstance(effect, Request):
                self.asked.append(Asked(epoch, effect))
            case _:
                pass

    def _bury(self, serial: int, what: Any, kind: Kind | None = None) -> None:
        """Nobody waits for this any more; a server may answer it all the same."""

        def meant(request: Any) -> bool:
            same = isinstance(request, what) and request.serial == serial
            return same and kind in (None, getattr(request, "kind", None))

        self.asked = [evolve(a, alive=False) if meant(a.effect) else a for a in self.asked]

    def sever(self, epoch: int) -> None:
        """The transport of this epoch is gone. Answers may still drip out, untagged notices not."""
        self.server.silence()
        self.server.updates = None
        self.asked = [evolve(a, alive=False) if a.epoch == epoch else a for a in self.asked]
        self.wire = [frame for frame in self.wire if not self._dies(frame, epoch)]

    @staticmethod
    def _dies(frame: Frame, epoch: int) -> bool:
        untagged = isinstance(frame.heard, i.NoticeHeard) and frame.heard.serial is None
        return frame.epoch == epoch and untagged

    # --- promises that need the other side --------------------------------------------------------

    def _check_fresh_is_current(self) -> None:
        """FRESH and vouched is the server's list, or an announcement or the end is on its way."""
        for catalog in self.session.catalogs:
            vouched = catalog.phase is Phase.FRESH and catalog.vouched
            if not vouched or self.current(catalog):
                continue
            if not any(self._warns(frame, catalog.kind) for frame in self.wire):
                raise self.violation("fresh-is-current", f"{catalog.kind.value}: {catalog}")

    def current(self, catalog: Catalog) -> bool:
        assert catalog.snapshot is not None
        return frozenset(catalog.snapshot.items) == self.server.listed[catalog.kind].items()

    @staticmethod
    def _warns(frame: Frame, kind: Kind) -> bool:
        heard = frame.heard
        if isinstance(heard, i.NoticeHeard):
            return heard.channel is CHANNEL_OF[kind]
        return isinstance(heard, i.PushEnded)
