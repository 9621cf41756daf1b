"""What all rules share: the result of a step, and the open walk."""

from typing import Any, NamedTuple

from relist import inputs as i
from relist.effects import CatalogEffect, DoubtList, LinkEffect, ListenEffect
from relist.values import Catalog, Doubt, Link, Listen, Walk, Wish

Offer = i.ListingAllowed | i.CapabilitiesChanged
Answer = i.PageArrived | i.PageFailed


class Step(NamedTuple):
    """What a catalog became, and what it asks for, in order."""

    state: Catalog
    effects: tuple[CatalogEffect, ...] = ()


class LinkStep(NamedTuple):
    """The same for the connection."""

    state: Link
    effects: tuple[LinkEffect, ...] = ()


class ListenStep(NamedTuple):
    """The same for the channel that carries notices."""

    state: Listen
    effects: tuple[ListenEffect, ...] = ()


_new: Any = tuple.__new__  # pyright: ignore


def unchanged(catalog: Catalog) -> Step:
    """The same state object, and no effect. Several times cheaper than ``Step(catalog)``."""
    step: Step = _new(Step, (catalog, ()))
    return step


def open_walk(catalog: Catalog) -> Walk:
    """The open walk: walking phases hold exactly one, by construction of the chart."""
    assert catalog.walk is not None
    return catalog.walk


def give_up_at_ms(catalog: Catalog) -> int:
    """When the open walk is given up: its outstanding request or the whole of it took too long."""
    walk = open_walk(catalog)
    return min(walk.request_limit_at_ms, walk.walk_limit_at_ms)


def news_of_doubt(catalog: Catalog, why: Doubt) -> tuple[DoubtList, ...]:
    """Told when a list begins to be doubted, and not again for each further reason."""
    first = catalog.doubt is None and catalog.snapshot is not None
    return (DoubtList(catalog.kind, why),) if first else ()


WISH_OF: dict[type, Wish] = {
    i.ReadWanted: Wish.READ,
    i.VerificationWanted: Wish.VERIFY,
    i.RefreshWanted: Wish.REFRESH,
}


def stronger(one: Wish | None, other: Wish | None) -> Wish | None:
    """The wish that serves both."""
    if one is None or other is None:
        return one or other
    return one if one.value >= other.value else other
