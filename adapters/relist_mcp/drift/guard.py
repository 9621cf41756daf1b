"""What one consumer of a live server may see and call: the surface that its ledger publishes.

Each list that the catalogs publish is an inventory for the ledger; what the ledger then exposes is
what an agent is handed, and what the gate lets through. Whatever goes wrong with the ledger exposes
nothing. Rule: DRIFT-21, DRIFT-33, DRIFT-46.
"""

import json
import logging
import time
from collections.abc import Callable
from typing import NoReturn, Protocol

from attrs import field, frozen
from mcp import UriTemplate

from relist import effects as e
from relist import inputs as i
from relist.drift.inputs import InventoryTaken, LedgerInput, ObservationFailed
from relist.drift.ledger import Ledger, LedgerStep, standing
from relist.drift.policy import chosen
from relist.drift.review import review_of
from relist.drift.values import (
    CapabilityId,
    CapabilityRef,
    Definition,
    Publication,
    Rule,
    ServerIdentity,
    Subject,
    Why,
)
from relist.errors import RelistError
from relist.session import Session
from relist.values import Item, Items, Kind, LinkPhase, Scope, Snapshot
from relist_mcp.drift import schemas
from relist_mcp.drift.definitions import SUBJECTS, Effect, Reader, definition_of, without_meta
from relist_mcp.events import Outcome, WalkEnded
from relist_mcp.fold import Told
from relist_mcp.loop import Fed
from relist_mcp.refusals import Withheld

logger = logging.getLogger("relist_mcp")

_OFFERS = (i.InitializeAnswered, i.DiscoverAnswered)
_PUBLISHED = (Outcome.CHANGED, Outcome.CHECKED)


class Keeper(Protocol):
    """Keeps a ledger: ``store.Store`` does, in a file. Each may raise RelistError."""

    @property
    def ledger(self) -> Ledger:
        """The ledger as it stands."""
        ...

    def tell(self, heard: LedgerInput) -> LedgerStep:
        """One step, kept."""
        ...

    def changed(self) -> bool:
        """Take in what others wrote; whether there was anything."""
        ...


class Speaking(Protocol):
    """What of a binding says how its server is to be used."""

    @property
    def instructions(self) -> str | None:
        """Its instructions, if it gives any."""
        ...


@frozen
class Pinned:
    """What ``Catalogs.connect(profile=...)`` takes: whose surface it is, and where it is kept.

    ``server`` is who the configuration says is connected to, ``partition`` names on whose authority
    (no secret; it outlives this process, unlike that of ``Credentials``). ``effect`` is what the
    host makes of an entry before a model sees it. ``wall_ms`` reads the clock of the history.
    """

    keeper: Keeper
    consumer: str
    server: ServerIdentity
    partition: str = ""
    effect: Effect = without_meta
    wall_ms: Callable[[], int] = field(default=lambda: int(time.time() * 1000), repr=False)


class Guard:
    """The surface of one consumer of one ``Catalogs``."""

    def __init__(self, pinned: Pinned, binding: Callable[[], Speaking | None]) -> None:
        self._pinned, self._binding = pinned, binding
        self._readers = {kind: Reader(pinned.server.id, kind, pinned.effect) for kind in Kind}
        self._mine: str | None = None  # the partition of the credentials at the start
        self._untold: dict[Subject, LedgerInput] = {}  # what could not be kept when it was observed

    # --- what is observed -------------------------------------------------------------------------

    def observe(self, fed: Fed) -> None:
        """See ``loop.Observer``: each list that is published is told to the ledger.

        So is what the server says about its use, whenever it says what it offers.
        """
        now = fed.after.catalogs[0].standing.partition
        if self._mine is None:
            self._mine = fed.before.catalogs[0].standing.partition
        if isinstance(fed.heard, _OFFERS) and fed.after.link.phase is LinkPhase.LIVE:
            self._observed(self._said(), mine=now == self._mine)
        for effect in fed.effects:
            if isinstance(effect, e.Publish):
                listed = effect.snapshot
                mine = listed.scope is Scope.PUBLIC or listed.partition == self._mine
                self._observed(self._inventory(effect.kind, listed), mine=mine)

    def watch(self, _: Fed, told: Told) -> None:
        """See ``fold.Watcher``: a walk that comes to nothing proves nothing. Rule: DRIFT-33."""
        for event in told:
            if isinstance(event, WalkEnded) and event.outcome not in _PUBLISHED:
                subject, why = SUBJECTS[event.kind], event.outcome.value
                server, at_ms = self._pinned.server.id, self._pinned.wall_ms()
                self._tell(ObservationFailed(server, subject, why, at_ms))

    def _observed(self, taken: InventoryTaken, *, mine: bool) -> None:
        """What is private to somebody else, since credentials changed, proves nothing about what
        the profile was made for. Rule: AUTH-03, DRIFT-33."""
        heard: LedgerInput = taken
        if not mine:
            server, at_ms = self._pinned.server.id, taken.at_ms
            heard = ObservationFailed(server, taken.subject, "another partition", at_ms)
        self._untold[taken.subject] = heard
        self._catch_up()

    def _inventory(self, kind: Kind, snapshot: Snapshot) -> InventoryTaken:
        pinned = self._pinned
        reader = self._readers[kind]
        return reader.inventory(pinned.server, snapshot, pinned.partition, pinned.wall_ms())

    def _said(self) -> InventoryTaken:
        """Its instructions, as an inventory of one or none. Rule: DRIFT-26."""
        pinned, now = self._pinned, self._instructions_now()
        offered = {} if now is None else {now.ref.key: now}
        at_ms, subject = pinned.wall_ms(), Subject.INSTRUCTIONS
        return InventoryTaken(
            pinned.server, subject, offered, frozenset(), True, pinned.partition, at_ms
        )

    def _instructions(self) -> str | None:
        binding = self._binding()
        return None if binding is None else binding.instructions

    def _instructions_now(self) -> Definition | None:
        said = self._instructions()
        if said is None:
            return None
        ref = CapabilityRef(self._pinned.server.id, Subject.INSTRUCTIONS, "")
        return definition_of(ref, json.dumps({"instructions": said}).encode())

    def _catch_up(self) -> None:
        """Tell what is untold: the newest of each subject, for as long as it takes."""
        for subject, heard in list(self._untold.items()):
            if self._tell(heard):
                del self._untold[subject]

    def _tell(self, heard: LedgerInput) -> bool:
        try:
            self._pinned.keeper.tell(heard)
        except RelistError as error:  # an observer must not raise; nothing is exposed meanwhile
            logger.warning("drift: not kept, %s", type(error).__name__)
            return False
        return True

    # --- what follows -----------------------------------------------------------------------------

    def _ledger(self) -> Ledger | None:
        """The ledger, with what others decided meanwhile; None if it cannot be had."""
        try:
            self._pinned.keeper.changed()
            self._catch_up()
            return self._pinned.keeper.ledger
        except RelistError as error:
            logger.warning("drift: nothing is exposed, %s", type(error).__name__)
            return None

    def _ref(self, kind: Kind, key: str) -> CapabilityRef:
        return CapabilityRef(self._pinned.server.id, SUBJECTS[kind], key)

    def exposed(self, kind: Kind, items: Items) -> Items:
        """Those of the items that the consumer may see, in their order. Rule: DRIFT-17."""
        ledger = self._ledger()
        return (
            () if ledger is None else tuple(i for i in items if self._is_exposed(ledger, kind, i))
        )

    def _is_exposed(self, ledger: Ledger, kind: Kind, item: Item) -> bool:
        """Exactly this definition: a newer list may not be in the ledger yet. Rule: DRIFT-08."""
        shown = standing(ledger, self._pinned.consumer, self._ref(kind, item.key))
        return isinstance(shown, CapabilityId) and shown == self._readers[kind].one(item).id

    def instructions(self) -> str | None:
        """What the server says about its use, if the consumer may see it."""
        ledger, now = self._ledger(), self._instructions_now()
        if ledger is None or now is None:
            return None
        shown = standing(ledger, self._pinned.consumer, now.ref)
        return self._instructions() if shown == now.id else None

    def publication(self) -> Publication | None:
        """The consumer's publication; None if there is none, or the ledger cannot be had."""
        ledger = self._ledger()
        return None if ledger is None else ledger.publications.get(self._pinned.consumer)

    def rule(self, kind: Kind, key: str) -> Rule | None:
        """What the profile says of this entry; None if it does not select it. Rule: DRIFT-04."""
        ledger = self._ledger()
        profile = None if ledger is None else ledger.profiles.get(self._pinned.consumer)
        choice = None if profile is None else chosen(profile, self._ref(kind, key))
        return None if choice is None else choice.rule

    def check(self, session: Session, kind: Kind, key: str, item: Item | None) -> None:
        """Raises Withheld unless this very entry is on the surface; for a resource that is not
        listed, unless a template on the surface covers its URI. Rule: CALL-24, DRIFT-21."""
        ledger = self._ledger()
        if ledger is None:
            raise Withheld(kind, key, None, None)
        if item is not None and self._is_exposed(ledger, kind, item):
            return
        if item is None and kind is Kind.RESOURCES and self._is_covered(ledger, session, key):
            return
        self._withhold(ledger, kind, key)

    def _is_covered(self, ledger: Ledger, session: Session, uri: str) -> bool:
        listed = session.catalog(Kind.TEMPLATES).snapshot
        shown = () if listed is None else listed.items
        return any(
            _matches(item.key, uri)
            for item in shown
            if self._is_exposed(ledger, Kind.TEMPLATES, item)
        )

    def _withhold(self, ledger: Ledger, kind: Kind, key: str) -> NoReturn:
        ref = self._ref(kind, key)
        found = standing(ledger, self._pinned.consumer, ref)
        why = found if isinstance(found, Why) else None if found is None else Why.CHANGED
        review = review_of(ledger, self._pinned.consumer, ref, schemas.relate)
        raise Withheld(kind, key, why, review)


def _matches(template: str, uri: str) -> bool:
    try:
        return UriTemplate.parse(template).match(uri) is not None
    except ValueError:
        return False
