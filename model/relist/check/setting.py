"""What can happen in a world of one catalog, and how it is said to the catalog.

Small numbers everywhere: a world is finite, and everything in it is looked at.
"""

from collections.abc import Iterator, Mapping

from attrs import frozen

from relist import inputs as i
from relist.policy import Policy
from relist.values import Era, Failure, Kind, Scope

KIND = Kind.TOOLS
SERIAL, LATE = 1, 0  # a normal form waits for the first, none for the second

MODERN, LEGACY, OTHER = "2026-07-28", "2025-11-25", "1999-01-01"

FAILURES: Mapping[str, Failure] = {
    "transient": Failure("error answer", code=-32603),
    "throttled": Failure("error answer", status=429, retry_after_ms=3),
    "unauthorized": Failure("error answer", status=401),
    "refused": Failure("error answer", code=-32600),
    "dead cursor": Failure("error answer", code=-32602),
    "unknown method": Failure("error answer", code=-32601),
}
FAILING = tuple(FAILURES)

POLICY = Policy(
    seed=b"\x00",
    gather_ms=1,
    gap_base_ms=1,
    gap_max_ms=1,
    uncovered_grace_ms=1,
    spoiled_in_row_max=2,
    request_limit_ms=1,
    walk_limit_ms=1,
    pages_max=2,
    items_max=8,
    ttl_max_ms=2,
    unvouched_lifetime_ms=None,
    backoff_base_ms=1,
    backoff_max_ms=1,
    retry_after_max_ms=2,
    jitter_percent=0,
)
"""Small numbers: most orders of events that larger ones allow, in far fewer scenes."""


@frozen
class Setting:
    """What can happen in a world.

    ``wire`` bounds the notices on their way: more of them would tell the client nothing more.
    ``fails`` are names of FAILURES, ``wishes`` acts of the caller, ``grants`` answers to a new
    connection, ``offers`` what may change about it later. ``lifetimes``: what pages may say of
    themselves. ``reads``: in the calm world somebody reads now and then, so that lifetimes count.
    """

    name: str
    ordered: bool = True
    atomic: bool = True
    lossy: bool = False
    wire: int = 2
    pages: int = 2
    era: Era = Era.LEGACY
    cuts: bool = True
    push_ends: bool = False
    fails: tuple[str, ...] = ()
    wishes: tuple[str, ...] = ()
    grants: tuple[str, ...] = ("granted",)
    offers: tuple[str, ...] = ()
    shared: bool = False
    endless: bool = False
    lifetimes: tuple[tuple[int | None, Scope], ...] = ((None, Scope.PRIVATE),)
    reads: bool = False
    policy: Policy = POLICY


OFFERS = {
    "server declares the kind": True,
    "server still has no such kind": True,
    "server revokes the kind": False,
    "server offers as before": False,
    "server stops to promise notices": False,
}
"""What a later discovery may say: while the kind is unsupported, or while it is not."""


def fixed_inputs(setting: Setting) -> Iterator[tuple[str, tuple[i.CatalogInput, ...]]]:
    """What can be heard and needs no number: by label."""
    era, covered, opened = setting.era, i.CoverageGained(0), i.LinkOpened(1, 0)
    yield "client connects", (opened,)
    yield "connection is replaced", (opened,)
    yield "client hears of the cut", (i.LinkLost(0),)
    yield "credentials change", (i.CredentialsChanged("b", 0), i.LinkLost(0))
    allowed = i.ListingAllowed(era, "a", True, True, 0)
    yield "listing is granted", (covered, allowed)
    yield "listing is at another version", (covered, i.ListingAllowed(era, "b", True, True, 0))
    yield "listing is refused push", (allowed,)
    yield "listing is refused push after all", (covered, i.CoverageLost(0), allowed)
    yield "listing is without push", (i.ListingAllowed(era, "a", True, False, 0),)
    yield "listing is preceded by push", (covered,)
    elsewhere = i.ListingAllowed(era, "b", True, False, 0)
    yield "listing is without push, at another version", (elsewhere,)
    yield "listing is undeclared", (i.ListingAllowed(era, "a", False, False, 0),)
    yield "push begins", (covered,)
    yield "client hears that push ended", (i.CoverageLost(0),)
    offered = i.CapabilitiesChanged(True, True, 0)
    yield "server declares the kind", (covered, offered)
    yield "server offers as before", (offered,)
    yield "server stops to promise notices", (i.CapabilitiesChanged(True, False, 0),)
    revoked = i.CapabilitiesChanged(False, False, 0)
    yield "server still has no such kind", (revoked,)
    yield "server revokes the kind", (revoked, i.CoverageLost(0))
    yield "notice arrives", (i.ListChangedHeard(0),)
    yield "timer fires", (i.TimePassed(0),)
    yield "read is wanted", (i.ReadWanted(KIND, 0),)
    yield "verification is wanted", (i.VerificationWanted(KIND, 0),)
    yield "refresh is wanted", (i.RefreshWanted(KIND, 0),)
    yield "call proves the list stale", (i.StalenessProved(KIND, 1, 0),)
    yield "call proves an older list stale", (i.StalenessProved(KIND, 0, 0),)
    yield "late failure arrives", (i.PageFailed(KIND, LATE, FAILURES["transient"], 0),)
    for name, failure in FAILURES.items():
        yield f"failure: {name}", (i.PageFailed(KIND, SERIAL, failure, 0),)
