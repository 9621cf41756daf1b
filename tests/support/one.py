"""One catalog under ``step``, with a clock: scenarios in the words of the chart."""

from collections.abc import Sequence
from typing import Any

from attrs import evolve

from relist import inputs as i
from relist.effects import AbandonWalk, CatalogEffect, Note, Publish, RequestPage
from relist.machine import Reading, deadline_ms, read, step
from relist.policy import Policy
from relist.values import (
    Catalog,
    Doubt,
    Era,
    Failure,
    Item,
    Items,
    Kind,
    Phase,
    Scope,
    Snapshot,
    new_catalog,
)

SEED = b"test"
MODERN, LEGACY = "2026-07-28", "2025-11-25"
TRANSIENT = Failure("error answer", code=-32603, status=500)
UNAUTHORIZED = Failure("error answer", status=401)
REFUSED = Failure("error answer", code=-32600)
INVALID_PARAMS = Failure("error answer", code=-32602)
METHOD_NOT_FOUND = Failure("error answer", code=-32601)


def policy(**changes: Any) -> Policy:
    """A policy without jitter, so that times in tests are exact."""
    return Policy(**{"seed": SEED, "jitter_percent": 0, **changes})


def item(text: str) -> Item:
    """``name@version``, or a bare name."""
    return Item(text.partition("@")[0], text.encode())


def items(*texts: str) -> Items:
    """Several of them."""
    return tuple(item(text) for text in texts)


class One:
    """One catalog, driven; ``told`` holds the effects of the last input."""

    def __init__(self, rules: Policy | None = None, *, era: Era = Era.MODERN) -> None:
        self.policy = rules or policy()
        self.era = era
        self.catalog: Catalog = new_catalog(Kind.TOOLS, "A")
        self.now_ms = 1_000
        self.told: tuple[CatalogEffect, ...] = ()

    # --- looking ----------------------------------------------------------------------------------

    def phase(self) -> Phase:
        """A call, so that an assertion about it does not hold for ever in the checker's eyes."""
        return self.catalog.phase

    @property
    def doubt(self) -> Doubt | None:
        return self.catalog.doubt

    @property
    def snapshot(self) -> Snapshot:
        assert self.catalog.snapshot is not None
        return self.catalog.snapshot

    @property
    def names(self) -> list[str]:
        return [entry.canonical_json.decode() for entry in self.snapshot.items]

    @property
    def deadline_ms(self) -> int | None:
        return deadline_ms(self.catalog, self.policy)

    def look(self) -> Reading:
        return read(self.catalog, self.now_ms)

    def requests(self) -> list[RequestPage]:
        return [effect for effect in self.told if isinstance(effect, RequestPage)]

    def publications(self) -> list[Publish]:
        return [effect for effect in self.told if isinstance(effect, Publish)]

    def abandoned(self) -> list[AbandonWalk]:
        return [effect for effect in self.told if isinstance(effect, AbandonWalk)]

    def notes(self) -> list[str]:
        return [effect.rule for effect in self.told if isinstance(effect, Note)]

    # --- hearing ----------------------------------------------------------------------------------

    def hear(self, heard: i.CatalogInput) -> Sequence[CatalogEffect]:
        self.catalog, self.told = step(self.catalog, heard, self.policy)
        return self.told

    def link(self) -> None:
        self.hear(i.LinkOpened(self.catalog.standing.epoch + 1, self.now_ms))

    def lose(self) -> None:
        self.hear(i.LinkLost(self.now_ms))

    def allow(self, *, declared: bool = True, push: bool = True, version: str = "") -> None:
        version = version or (MODERN if self.era is Era.MODERN else LEGACY)
        self.hear(i.ListingAllowed(self.era, version, declared, push, self.now_ms))

    def notice(self) -> None:
        self.hear(i.ListChangedHeard(self.now_ms))

    def cover(self) -> None:
        self.hear(i.CoverageGained(self.now_ms))

    def uncover(self) -> None:
        self.hear(i.CoverageLost(self.now_ms))

    def read(self) -> None:
        self.hear(i.ReadWanted(Kind.TOOLS, self.now_ms))

    def verify(self) -> None:
        self.hear(i.VerificationWanted(Kind.TOOLS, self.now_ms))

    def refresh(self) -> None:
        self.hear(i.RefreshWanted(Kind.TOOLS, self.now_ms))

    def prove(self, generation: int) -> None:
        self.hear(i.StalenessProved(Kind.TOOLS, generation, self.now_ms))

    def credentials(self, partition: str) -> None:
        self.hear(i.CredentialsChanged(partition, self.now_ms))

    def later(self, ms: int) -> None:
        """The clock moves; nobody is told."""
        self.now_ms += ms

    def tick(self) -> None:
        self.hear(i.TimePassed(self.now_ms))

    def wake(self) -> int:
        """Go to the deadline and tell the catalog; how long that took."""
        at_ms = self.deadline_ms
        assert at_ms is not None
        took_ms = max(0, at_ms - self.now_ms)
        self.now_ms += took_ms
        self.tick()
        return took_ms

    def page(
        self,
        *texts: str,
        more: str | None = None,
        ttl_ms: int | None = None,
        scope: Scope = Scope.PUBLIC,
        serial: int | None = None,
    ) -> None:
        """The page that is waited for arrives (or the one of ``serial``)."""
        serial = self.catalog.serial if serial is None else serial
        self.hear(
            i.PageArrived(Kind.TOOLS, serial, items(*texts), more, ttl_ms, scope, self.now_ms)
        )

    def fail(self, failure: Failure = TRANSIENT, serial: int | None = None) -> None:
        serial = self.catalog.serial if serial is None else serial
        self.hear(i.PageFailed(Kind.TOOLS, serial, failure, self.now_ms))

    def fail_after(self, retry_after_ms: int) -> None:
        self.fail(evolve(TRANSIENT, retry_after_ms=retry_after_ms))


def walking(rules: Policy | None = None, *, era: Era = Era.MODERN, covered: bool = True) -> One:
    """A catalog whose first walk is open."""
    one = One(rules, era=era)
    one.link()
    if covered:
        one.cover()
    one.allow()
    assert one.phase() is Phase.DISCOVERING
    return one


def fresh(
    rules: Policy | None = None,
    *,
    era: Era = Era.MODERN,
    covered: bool = True,
    ttl_ms: int | None = None,
    scope: Scope = Scope.PUBLIC,
) -> One:
    """A catalog that was listed once, cleanly, and long ago enough for gaps to be quiet."""
    one = walking(rules, era=era, covered=covered)
    one.page("a", "b", ttl_ms=ttl_ms, scope=scope)
    assert one.phase() is Phase.FRESH
    one.later(500)
    return one
