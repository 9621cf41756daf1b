"""What all rules share: the result of a step, and the open walk."""

from typing import Generic, NamedTuple, TypeVar

from relist import inputs as i
from relist.effects import CatalogEffect, LinkEffect, ListenEffect
from relist.values import Catalog, Link, Listen, Walk

Offer = i.ListingAllowed | i.CapabilitiesChanged
Answer = i.PageArrived | i.PageFailed


StateT = TypeVar("StateT")
EffectT = TypeVar("EffectT")


class Stepped(NamedTuple, Generic[StateT, EffectT]):
    """What a machine became, and what it asks for, in order."""

    state: StateT
    effects: tuple[EffectT, ...] = ()


Step = Stepped[Catalog, CatalogEffect]
LinkStep = Stepped[Link, LinkEffect]
ListenStep = Stepped[Listen, ListenEffect]


def open_walk(catalog: Catalog) -> Walk:
    """The open walk: walking phases hold exactly one, by construction of the chart."""
    assert catalog.walk is not None
    return catalog.walk
