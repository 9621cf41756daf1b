"""One server: its link, its channel for notices, and four catalogs that know nothing of each other.

``receive`` routes an input to the machine it is for and lets the consequences follow in one order:
link, then listen, then coverage, then permission to list. Catalogs hear of the link and of coverage
only from here, so what they hear is already filtered by epoch and serial. A changed list, changed
content, other credentials and a lost connection are four inputs, and stay apart. Rule: STATE-15.
"""

from typing import NamedTuple

from relist import inputs as i
from relist.effects import Effect, Note, Withdraw
from relist.errors import ImpossibleAct
from relist.failures import UNSUPPORTED_VERSION
from relist.freshness import earliest, reached
from relist.frozen import frozen
from relist.inputs import CatalogInput, SessionInput
from relist.machine import deadline_ms as catalog_deadline_ms
from relist.machine import step, step_link, step_listen
from relist.policy import Policy
from relist.surface import Adoption, adopt
from relist.tags import Fault, fault_of_tag
from relist.updates import (
    NO_UPDATES,
    Updates,
    UpdatesStep,
    follow,
    hear,
    updates_deadline_ms,
)
from relist.values import (
    CHANNEL_OF,
    KINDS,
    Capabilities,
    Carrier,
    Catalog,
    Era,
    Kind,
    Link,
    LinkPhase,
    Listen,
    ListenPhase,
    Phase,
    Topic,
    Wire,
    new_catalog,
    new_link,
    new_listen,
)


@frozen
class Session:
    """Everything that is known about one server. Frozen, hashable, picklable.

    ``updates``: the subscriptions to single resources. ``adopted``: by kind, what the host gave its
    model.
    """

    link: Link
    listen: Listen
    catalogs: tuple[Catalog, ...]
    updates: Updates = NO_UPDATES
    adopted: tuple[Adoption | None, ...] = (None,) * len(KINDS)

    def catalog(self, kind: Kind) -> Catalog:
        """The catalog of this kind."""
        return self.catalogs[KINDS.index(kind)]

    def adoption(self, kind: Kind) -> Adoption | None:
        """What the host gave its model of this kind; None if nothing, or if it was withdrawn."""
        return self.adopted[KINDS.index(kind)]


class SessionStep(NamedTuple):
    """What a session became, and what it asks for, in order."""

    state: Session
    effects: tuple[Effect, ...] = ()


AboutKind = i.WishInput | i.StalenessProved | i.PageAnswer
_LINKED = (LinkPhase.PROBING, LinkPhase.HANDSHAKING, LinkPhase.LIVE)


def new_session(wire: Wire, partition: str = "") -> Session:
    """A session that has never been connected."""
    catalogs = tuple(new_catalog(kind, partition) for kind in KINDS)
    return Session(new_link(wire), new_listen(), catalogs)


def receive(session: Session, heard: SessionInput, policy: Policy) -> SessionStep:
    """What the session becomes on hearing this, and what it asks for, in order. Pure and total.

    Raises ImpossibleAct, with nothing changed, for an act that a caller cannot do now.
    """
    return Run(session, policy, heard.now_ms).hear(heard)


def deadline_ms(session: Session, policy: Policy) -> int | None:
    """When the session wants a TimePassed: the earliest of all that is pending."""
    return earliest(
        session.link.limit_at_ms,
        session.link.due_at_ms,
        session.listen.limit_at_ms,
        session.listen.due_at_ms,
        updates_deadline_ms(session.updates),
        *(catalog_deadline_ms(catalog, policy) for catalog in session.catalogs),
    )


def covered(listen: Listen, kind: Kind) -> bool:
    """Whether push vouches for this kind now. Rule: SUB-05, NOTE-05."""
    return CHANNEL_OF[kind] in listen.granted


def _check_caller(catalog: Catalog, heard: i.StalenessProved) -> None:
    """A generation that was never handed out cannot have been proved stale."""
    if not 1 <= heard.generation <= catalog.generation:
        raise ImpossibleAct(
            f"StalenessProved.generation {heard.generation} was never published"
            f" ({catalog.kind.value}: newest is {catalog.generation})"
        )


class Run:
    """One call of ``receive``: the machines as they change, and the effects in order.

    Whoever wants to see each of their steps overrides what hears: see ``check.observe``.
    """

    def __init__(self, session: Session, policy: Policy, now_ms: int) -> None:
        self._link = session.link
        self._listen = session.listen
        self._catalogs = list(session.catalogs)
        self._updates = session.updates
        self._adopted = session.adopted
        self._policy = policy
        self._now_ms = now_ms
        self._before = session
        self.effects: list[Effect] = []

    def hear(self, heard: SessionInput) -> SessionStep:
        """Route it to the machine it is for, and let the consequences follow."""
        if isinstance(heard, i.NoticeHeard):
            self.notice(heard)
        elif isinstance(heard, i.TimePassed):
            self.time(heard)
        elif isinstance(heard, i.CredentialsChanged):
            self.credentials(heard)
        elif isinstance(heard, i.TaskBegan):
            self.task(heard)
        elif isinstance(heard, i.SurfaceAdopted):
            self.adopt(heard)
        elif isinstance(heard, i.CatalogInput):
            self.about_kind(heard)
        elif isinstance(heard, i.LinkInput):
            self.link(heard)
        elif isinstance(heard, i.ListenInput):
            self.listen(heard)
        else:
            self.updates(heard)
        self.allow_listing()
        self.follow_link()
        return SessionStep(self.session(), tuple(self.effects))

    def session(self) -> Session:
        """The session as it is now: the same object if nothing changed."""
        catalogs = tuple(self._catalogs)
        before = self._before
        pairs = zip(catalogs, before.catalogs, strict=True)
        same = self._link is before.link and self._listen is before.listen
        same = same and self._updates is before.updates and self._adopted is before.adopted
        if same and all(a is b for a, b in pairs):
            return before
        return Session(self._link, self._listen, catalogs, self._updates, self._adopted)

    def catalog(self, kind: Kind, heard: CatalogInput) -> None:
        """Let one catalog hear something; the others do not hear of it. Rule: ATOM-21.

        What is withdrawn is nobody's surface any more.
        """
        index = KINDS.index(kind)
        self._catalogs[index], effects = step(self._catalogs[index], heard, self._policy)
        self.effects.extend(effects)
        if any(isinstance(told, Withdraw) for told in effects):
            self._adopt(index, None)

    def _adopt(self, index: int, adoption: Adoption | None) -> None:
        adopted = self._adopted
        self._adopted = (*adopted[:index], adoption, *adopted[index + 1 :])

    def adopt(self, heard: i.SurfaceAdopted) -> None:
        """The host says what it gave its model; no list changes by that. Rule: ATOM-16."""
        index = KINDS.index(heard.kind)
        self._adopt(index, adopt(self._catalogs[index], heard))

    def about_kind(self, heard: AboutKind) -> None:
        """An answer, a wish or a proof concerns one kind.

        Whoever wishes for a list needs what the server offers, too, and a refused version says that
        this has changed. Rule: LIFE-24, LIFE-45.
        """
        if isinstance(heard, i.StalenessProved):
            _check_caller(self._catalogs[KINDS.index(heard.kind)], heard)
        elif isinstance(heard, i.WishInput):
            self.link(i.DiscoveryWanted(self._now_ms))
        elif isinstance(heard, i.PageFailed) and self._refutes_version(heard):
            self.link(i.DiscoveryWanted(self._now_ms, doubted=True))
        self.catalog(heard.kind, heard)

    def _refutes_version(self, heard: i.PageFailed) -> bool:
        """Whether a request that is still awaited was refused at our version. Rule: ATOM-13."""
        walk = self._catalogs[KINDS.index(heard.kind)].walk
        awaited = walk is not None and walk.serial == heard.serial
        return awaited and heard.failure.code == UNSUPPORTED_VERSION

    def _all(self, heard: CatalogInput) -> None:
        for kind in KINDS:
            self.catalog(kind, heard)

    def link(self, heard: i.LinkInput) -> None:
        """Let the link hear something; catalogs and listen hear of what became of it."""
        before = self._link
        self._link, effects = step_link(before, heard, self._policy)
        after = self._link
        was, now = before.phase in _LINKED, after.phase in _LINKED
        replaced = before.epoch != after.epoch
        self.effects.extend(effects)
        if before.phase is LinkPhase.LIVE and (after.phase is not LinkPhase.LIVE or replaced):
            self.listen(i.PushReleased(self._now_ms))
        if was and (replaced or not now):
            self._all(i.LinkLost(self._now_ms))
        if now and (replaced or not was):
            self._all(i.LinkOpened(after.epoch, self._now_ms))
        if after.phase is LinkPhase.LIVE and before.phase is not LinkPhase.LIVE:
            self._want_push()
        elif after.phase is LinkPhase.LIVE and before.capabilities != after.capabilities:
            self._offer(before.capabilities, after.capabilities)

    def _want_push(self) -> None:
        topics: frozenset[Topic] = self._link.capabilities.channels
        self.listen(i.PushWanted(topics, _carrier(self._link), self._now_ms))

    def _offer(self, before: Capabilities, after: Capabilities) -> None:
        """A later discovery differs: tell the kinds that it concerns. Rule: CAP-18, LIFE-45."""
        for kind in KINDS:
            was, now = _offer_of(before, kind), _offer_of(after, kind)
            if was != now:
                self.catalog(kind, i.CapabilitiesChanged(*now, self._now_ms))
        self._want_push()

    def listen(self, heard: i.ListenInput) -> None:
        """Let the listen chart hear something; catalogs hear of gained and lost coverage."""
        before = self._listen
        self._listen, effects = step_listen(before, heard, self._policy)
        after = self._listen
        self.effects.extend(effects)
        # A stream that took over does not vouch for what was listed before it (SUB-27).
        other = after.stream != before.stream
        for kind in KINDS:
            was, now = covered(before, kind), covered(after, kind)
            if now and (other or not was):
                self.catalog(kind, i.CoverageGained(self._now_ms))
            elif was and not now and not isinstance(heard, i.PushReleased):
                self.catalog(kind, i.CoverageLost(self._now_ms))

    def allow_listing(self) -> None:
        """Once the link is live and push was granted, refused or overdue, lists may be asked for.

        Nothing is asked for earlier. Each kind hears what this very link declared.

        Rule: LIFE-02, LIFE-03, NOTE-11, REC-07, SUB-27.
        """
        link = self._link
        if link.phase is not LinkPhase.LIVE or self._listen.phase is ListenPhase.ASKED:
            return
        assert link.era is not None  # live means known
        for kind, catalog in zip(KINDS, self._catalogs, strict=True):
            if catalog.phase is Phase.INITIALIZING:
                offer = _offer_of(link.capabilities, kind)
                allowed = i.ListingAllowed(link.era, link.version, *offer, self._now_ms)
                self.catalog(kind, allowed)

    def follow_link(self) -> None:
        """Subscriptions to resources stand and fall with the link. Rule: RES-07."""
        self._hear_updates(follow(self._updates, self._link, self._now_ms, self._policy))

    def updates(self, heard: i.UpdatesInput) -> None:
        """Subscriptions to single resources never concern a list. Rule: RES-01, RES-02."""
        self._hear_updates(hear(self._updates, heard, self._link, self._policy))

    def _hear_updates(self, stepped: UpdatesStep) -> None:
        self._updates, effects = stepped
        self.effects.extend(effects)

    def task(self, heard: i.TaskBegan) -> None:
        """Renew what no push vouches for and is older than policy says. Rule: TTL-35."""
        self.link(i.DiscoveryWanted(heard.now_ms))
        for kind, catalog in zip(KINDS, self._catalogs, strict=True):
            listed, oldest_ms = catalog.snapshot, self._policy.task_max_age_ms
            if oldest_ms is None or listed is None or catalog.standing.covered:
                continue
            if reached(listed.listed_at_ms + oldest_ms, heard.now_ms):
                self.catalog(kind, i.VerificationWanted(kind, heard.now_ms))

    def time(self, heard: i.TimePassed) -> None:
        """Everybody looks at the clock."""
        self.link(heard)
        self.listen(heard)
        self.updates(heard)
        self._all(heard)

    def credentials(self, heard: i.CredentialsChanged) -> None:
        """Private lists of another partition go at once; then the link is renewed.

        New credentials within the partition (a refreshed token) end parking, too. The subscription
        goes with the link, so its notices are foreign. Rule: AUTH-08, AUTH-12, FAIL-04.
        """
        foreign = heard.partition != self._catalogs[0].standing.partition
        if not foreign:
            self.effects.append(Note("AUTH-03", "credentials changed within the partition"))
        self._all(heard)
        if foreign:
            self._forget_surfaces()
        self.link(heard)

    def _forget_surfaces(self) -> None:
        """A surface made of a list that was replaced since may hold what was private.

        Of lists that are published still, only public ones are left. Rule: AUTH-03.
        """
        for index, (catalog, made) in enumerate(zip(self._catalogs, self._adopted, strict=True)):
            listed = catalog.snapshot
            if made and (listed is None or listed.generation != made.generation):
                self._adopt(index, None)

    def notice(self, heard: i.NoticeHeard) -> None:
        """A notice reaches the kinds of its channel, if it may be believed.

        A foreign tag or an ungranted channel changes nothing; a missing tag, or one before its
        acknowledgement, may at most be a reason for doubt (D-15). Neither the link nor the other
        kinds hear of it, nor is anything read. Rule: LIFE-17, NOTE-04, RES-02, SUB-10, SUB-13 to
        SUB-16.
        """
        fault = self._fault_of(heard)
        if fault is not None:
            self.effects.append(Note(fault.rule, fault.text, (heard.channel.value, heard.serial)))
            if not fault.believed:
                return
        for kind in KINDS:
            if CHANNEL_OF[kind] is heard.channel:
                self.catalog(kind, i.ListChangedHeard(self._now_ms))

    def _fault_of(self, heard: i.NoticeHeard) -> Fault | None:
        if self._link.era is not Era.MODERN:
            return None
        fault = fault_of_tag("notice", heard.serial, self._listen)
        if fault is None and heard.channel not in self._listen.granted:
            return Fault("SUB-13", "notice that was not granted", False)
        return fault


def _offer_of(capabilities: Capabilities, kind: Kind) -> tuple[bool, bool]:
    """Whether this kind is declared, and whether its listChanged is."""
    return kind in capabilities.kinds, CHANNEL_OF[kind] in capabilities.channels


def _carrier(link: Link) -> Carrier:
    """Each era has its own, and is asked for no other. Rule: SUB-37."""
    if link.era is Era.MODERN:
        return Carrier.SUBSCRIPTION
    return Carrier.PIPE if link.wire is Wire.PIPE else Carrier.STREAM
