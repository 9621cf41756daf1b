"""What all rules share: the result of a step, and the open walk."""

from typing import NamedTuple

from relist import inputs as i
from relist.effects import CatalogEffect
from relist.values import Catalog, Walk

Offer = i.ListingAllowed | i.CapabilitiesChanged
Answer = i.PageArrived | i.PageFailed


class Step(NamedTuple):
    """What a machine became, and what it asks for, in order."""

    state: Catalog
    effects: tuple[CatalogEffect, ...] = ()


def open_walk(catalog: Catalog) -> Walk:
    """The open walk: walking phases hold exactly one, by construction of the chart."""
    assert catalog.walk is not None
    return catalog.walk
