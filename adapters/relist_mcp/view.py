"""One kind of a live server, as an application meets it: read, wait, follow, hand to a model."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TYPE_CHECKING

from attrs import frozen

from relist import inputs as i
from relist.machine import Hit, Reading
from relist.policy import Policy
from relist.rules.guards import wake_ms
from relist.session import Session
from relist.surface import Lag, adopt, lag
from relist.values import Catalog, Items, Kind, LinkPhase, ListenPhase, Phase, Snapshot
from relist_mcp.changes import Change, change
from relist_mcp.exchange import now_ms
from relist_mcp.parsed import Entries, Parsed

if TYPE_CHECKING:
    from relist_mcp.catalogs import Catalogs

ENDED = (LinkPhase.CLOSED, LinkPhase.PARKED, LinkPhase.REFUSED)


@frozen
class Surface:
    """What a host may hand to its model: entries in stable order, and which generation they are.

    Tell what became of it with ``adopted``: how many of them the model was given. It raises
    ImpossibleAct for a count that cannot be. Rule: ATOM-16.
    """

    kind: Kind
    generation: int
    items: Items
    adopted: Callable[[int], None]


def is_denied(session: Session, kind: Kind) -> bool:
    """Whether no list of this kind can come: unsupported, parked and not tried, or no link."""
    catalog = session.catalog(kind)
    parked = catalog.pacing.parked is not None and catalog.walk is None
    return catalog.phase is Phase.UNSUPPORTED or parked or session.link.phase in ENDED


def is_quiet(catalog: Catalog, policy: Policy) -> bool:
    """Whether nothing becomes of this catalog by itself."""
    if catalog.phase is Phase.STALE:
        return wake_ms(catalog, policy) is None
    return catalog.phase in (Phase.FRESH, Phase.UNSUPPORTED)


def is_served(asked: Session, now: Session, kind: Kind) -> bool:
    """Whether a wish made at ``asked`` and fed since has been served, or has failed once."""
    before, after = asked.catalog(kind), now.catalog(kind)
    if is_denied(now, kind) or now.link.failures > asked.link.failures:
        return True
    if after.wanted or after.walk is not None:
        return False
    listed = after.snapshot is not None and after.snapshot is not before.snapshot
    return listed or after.pacing.failures > before.pacing.failures


def is_idle(session: Session, policy: Policy) -> bool:
    """Whether nothing is under way that would go on without a new stimulus."""
    link, listen = session.link.phase, session.listen
    if link in ENDED:
        return True
    return (
        link is LinkPhase.LIVE
        and listen.phase is not ListenPhase.ASKED
        and listen.due_at_ms is None
        and all(is_quiet(catalog, policy) for catalog in session.catalogs)
    )


class View:
    """One of the four catalogs of ``Catalogs``."""

    __slots__ = ("_catalogs", "_moved", "_parsed", "kind")

    def __init__(
        self, catalogs: "Catalogs", kind: Kind, moved: Callable[[], Awaitable[None]]
    ) -> None:
        self._catalogs, self.kind, self._moved = catalogs, kind, moved
        self._parsed = Parsed()

    def read(self) -> Reading:
        """What is known now: free, no traffic."""
        return self._catalogs.read(self.kind)

    async def get(self, *, at_least: int | None = None, max_stale_ms: int | None = None) -> Reading:
        """The list, asked for if what is held is expired, doubted or missing. See ``Catalogs.get``.

        With ``max_stale_ms`` a list no older than that is good enough, whatever speaks against it.
        With ``at_least`` waits on until that generation is published, or none can be any more.
        """
        reading = self.read()
        stale = max_stale_ms is None or reading.age_ms is None or reading.age_ms > max_stale_ms
        if stale:
            reading = await self._catalogs.get(self.kind)
        while at_least is not None and self._generation() < at_least and not self._ended():
            await self._moved()
            reading = self.read()
        return reading

    def parsed(self, reading: Reading) -> Entries:
        """The items of this reading as JSON objects: with every field, in order, () if it has none.

        Free for a list that was parsed before, and for the items that a later list shares with it.
        All who ask are given the same objects: copy what is to be changed. The SDK's own type, if
        it is wanted, is ``mcp_types.Tool.model_validate(entry, by_name=False)``; it loses unknown
        fields, and may refuse an entry.
        """
        listed = reading.snapshot
        return () if listed is None else self._parsed.of(listed.items)

    async def refresh(self) -> Reading:
        """The list as of a walk begun after this call. See ``Catalogs.refresh``."""
        return await self._catalogs.refresh(self.kind)

    async def wait_fresh(self) -> Reading:
        """Wait, without asking for anything, until the list is undoubted or can not be had."""
        while self.read().hit in (Hit.DOUBTED, Hit.MISS) and not self._ended():
            await self._moved()
        return self.read()

    def changes(self) -> AsyncGenerator[Change]:
        """Each change of the published list from now on; nothing where nothing differs.

        Whoever is slow gets several changes as one. Ends when the block of ``Catalogs`` does.
        """
        return self._changes(self._published())

    async def _changes(self, seen: Snapshot | None) -> AsyncGenerator[Change]:
        while not self._catalogs.over:
            now = self._published()
            found = None if now is seen else change(self.kind, seen, now)
            seen = now
            if found is not None:
                yield found
            else:
                await self._moved()

    def surface(self) -> Surface | None:
        """What may be handed to a model now; None while nothing is published.

        With a profile: what its consumer may see. Rule: CALL-28, DRIFT-17.
        """
        listed = self._published()
        if listed is None:
            return None
        items = tuple(item for item in listed.items if item.key not in listed.ambiguous)
        if (guard := self._catalogs.guard) is not None:
            items = guard.exposed(self.kind, items)

        def adopted(count: int) -> None:
            told = i.SurfaceAdopted(self.kind, listed.generation, count, now_ms())
            adopt(self._catalogs.session.catalog(self.kind), told)  # raises here, not in the loop
            self._catalogs.tell(told, at_once=True)

        return Surface(self.kind, listed.generation, items, adopted)

    def lag(self) -> Lag:
        """How far what the model was given is behind what is published. Rule: OBS-04, OBS-05."""
        session = self._catalogs.session
        return lag(session.catalog(self.kind), session.adoption(self.kind))

    def _published(self) -> Snapshot | None:
        return self._catalogs.session.catalog(self.kind).snapshot

    def _generation(self) -> int:
        return self._catalogs.session.catalog(self.kind).generation

    def _ended(self) -> bool:
        return is_denied(self._catalogs.session, self.kind)
