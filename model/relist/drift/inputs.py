"""What a ledger is told. Every input carries ``at_ms``, a wall clock's milliseconds since 1970."""

from collections.abc import Mapping

from relist.drift.values import (
    CapabilityId,
    CapabilityRef,
    Definition,
    Profile,
    ServerIdentity,
    Subject,
)
from relist.frozen import frozen


@frozen
class InventoryTaken:
    """All that a server offered of one subject, by key, in one walk of all pages.

    ``clean``: nothing disturbed the walk. ``ambiguous`` are keys with two different definitions;
    they are not among ``definitions``. ``partition`` names whose view it is. What is not clean
    proves nothing. When to look is a matter of lifetimes and notices, and of nothing here.
    Rule: DRIFT-32, DRIFT-34, DRIFT-40.
    """

    server: ServerIdentity
    subject: Subject
    definitions: Mapping[str, Definition]
    ambiguous: frozenset[str]
    clean: bool
    partition: str
    at_ms: int


@frozen
class ObservationFailed:
    """An inventory was not completed: failed, cut, refused. It changes nothing. Rule: DRIFT-33."""

    server: str
    subject: Subject
    why: str
    at_ms: int


@frozen
class ProfileSet:
    """Somebody says what a consumer is meant to see; it replaces what was said before."""

    profile: Profile
    who: str
    why: str
    at_ms: int


@frozen
class Approved:
    """Somebody lets these definitions through, for one consumer: all or none. Rule: DRIFT-22."""

    consumer: str
    items: Mapping[CapabilityRef, CapabilityId]
    who: str
    why: str
    at_ms: int


@frozen
class Rejected:
    """Somebody does not let them through; the relations stay. Rule: DRIFT-22."""

    consumer: str
    items: Mapping[CapabilityRef, CapabilityId]
    who: str
    why: str
    at_ms: int


@frozen
class Rebound:
    """Somebody says that ``new`` is what ``old`` was, and approves this definition of it.

    The wish moves to the new reference; the history of the old one stays. Rule: DRIFT-30, DRIFT-31.
    """

    consumer: str
    old: CapabilityRef
    new: CapabilityRef
    id: CapabilityId
    who: str
    why: str
    at_ms: int


@frozen
class ServerConfirmed:
    """Somebody says that the server is still the same, as it was seen last. Rule: DRIFT-13."""

    server: ServerIdentity
    who: str
    why: str
    at_ms: int


Observation = InventoryTaken | ObservationFailed
Act = ProfileSet | Approved | Rejected | Rebound | ServerConfirmed
LedgerInput = Observation | Act
