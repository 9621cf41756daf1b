"""What happens to one server's catalogs, as values that say so by name.

``fold.py`` makes them of what the loop fed; logs, metrics, status and live views are made of them.
No event holds a credential, an argument or a text of the server but ``Published``, whose lists are
what readers see. All times are milliseconds of the clock of the loop.
"""

from enum import Enum

from attrs import field, frozen

from relist.values import (
    Capabilities,
    Carrier,
    Channel,
    Doubt,
    Era,
    Failure,
    Kind,
    LinkPhase,
    ListenPhase,
    Parked,
    Snapshot,
)


class Cause(Enum):
    """Why a walk began. Rule: OBS-03."""

    FIRST = "first"  # listing became allowed, and there is no list
    RELINKED = "relinked"  # listing became allowed again, and the kept list does not hold
    NOTICED = "noticed"
    UNCOVERED = "uncovered"
    SUSPECTED = "suspected"
    UNVOUCHED = "unvouched"
    SPOILED = "spoiled"  # the walk before it was disturbed
    FAILED = "failed"  # the walk before it failed
    POLL = "poll"  # policy lists by itself
    READ = "read"  # somebody needs the list
    VERIFY = "verify"  # a call needs to be sure of it
    REFRESH = "refresh"  # somebody asked for a refresh


class Outcome(Enum):
    """How a walk ended. Rule: OBS-08."""

    CHANGED = "changed"  # published, and its content is new
    CHECKED = "checked"  # published, and it is as it was
    SPOILED = "spoiled"  # complete, and held back: something changed meanwhile, or it contradicts
    DEAD_CURSOR = "dead cursor"  # the server refused a cursor that it gave out
    OVERLONG = "overlong"  # cut by a bound of policy
    TIMED_OUT = "timed out"  # no answer in time
    FAILED = "failed"  # an error that may pass
    UNAUTHORIZED = "unauthorized"
    REFUSED = "refused"  # an error that does not pass
    UNKNOWN = "unknown method"  # declared, and not there
    ABANDONED = "abandoned"  # the link, the credentials or the declaration went


@frozen(kw_only=True)
class Event:
    """At ``at_ms``, on the connection of this epoch."""

    at_ms: int
    epoch: int


# --- the link and the channel for notices ---------------------------------------------------------


@frozen(kw_only=True)
class LinkMoved(Event):
    """The connection went from one phase to another. ``due_at_ms``: when it is tried again."""

    before: LinkPhase
    after: LinkPhase
    failures: int
    due_at_ms: int | None


@frozen(kw_only=True)
class Agreed(Event):
    """Era, version and capabilities are known, or became others. Rule: OBS-09."""

    era: Era
    version: str
    capabilities: Capabilities


@frozen(kw_only=True)
class ListenMoved(Event):
    """The channel for notices went from one phase to another, or carries others.

    ``failure``: why it ended, if an answer said so.
    """

    before: ListenPhase
    after: ListenPhase
    carrier: Carrier
    granted: frozenset[Channel]
    serial: int
    failure: Failure | None


@frozen(kw_only=True)
class CredentialsMoved(Event):
    """The caller shows other credentials; ``foreign``: they are of another partition."""

    foreign: bool


# --- notices --------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Noticed(Event):
    """A list_changed notice; ``serial`` is that of its subscription. Rule: OBS-01.

    ``kinds`` are those that heed it; none if it is not believed. ``fault`` is the rule that it
    breaks. ``merged``: what it says is known already, so nothing became of it.
    """

    channel: Channel
    serial: int | None
    kinds: tuple[Kind, ...]
    fault: str | None
    merged: bool


@frozen(kw_only=True)
class ContentNoticed(Event):
    """An update of a resource was heard: never about a list. ``serial`` as in ``Noticed``."""

    serial: int | None
    believed: bool


# --- one catalog ----------------------------------------------------------------------------------


@frozen(kw_only=True)
class OfKind(Event):
    """About the catalog of one kind."""

    kind: Kind


@frozen(kw_only=True)
class WalkBegan(OfKind):
    """A walk began; ``walk`` is its number, the serial of its first request.

    ``noticed_at_ms`` is when the first notice was heard that no list has answered yet, ``notices``
    how many have been since.
    """

    walk: int
    cause: Cause
    covered: bool
    noticed_at_ms: int | None
    notices: int


@frozen(kw_only=True)
class PageListed(OfKind):
    """The page of this number (from 1) arrived, after ``took_ms``, and the walk made use of it."""

    walk: int
    number: int
    entries: int
    more: bool
    took_ms: int


@frozen(kw_only=True)
class WalkEnded(OfKind):
    """A walk ended. Rule: OBS-02, OBS-08.

    ``pages`` and ``entries`` count what was received, ``cursors`` how many pages named a next one.
    ``spoiled``: something was heard during it. ``failure`` is the answer that ended it, if one did;
    ``took_ms`` how long its request was waited for. ``reason`` is a short text of ours; empty if
    the list was published. ``spoiled_in_row``, ``failures``: how many walks in a row ended so.
    ``due_at_ms``: when the next begins by itself.
    """

    walk: int
    cause: Cause
    outcome: Outcome
    reason: str
    failure: Failure | None
    began_at_ms: int
    took_ms: int
    pages: int
    entries: int
    cursors: int
    spoiled: bool
    spoiled_in_row: int
    failures: int
    due_at_ms: int | None

    @property
    def duration_ms(self) -> int:
        """From the first request to the end."""
        return self.at_ms - self.began_at_ms


@frozen(kw_only=True)
class Published(OfKind):
    """Readers see this list from now on; ``replaced`` is what they saw before.

    ``notices`` were heard since the last list that answered one, ``lag_ms`` ago the first of them,
    None if there was none or the walk was spoiled by one. ``covered``: push vouched for the list
    during the walk, so that a change without a notice is one that nobody announced.
    """

    snapshot: Snapshot = field(repr=False)
    replaced: Snapshot | None = field(repr=False)
    changed: bool
    covered: bool
    notices: int
    lag_ms: int | None


@frozen(kw_only=True)
class Withdrawn(OfKind):
    """Readers see nothing of this kind any more."""


@frozen(kw_only=True)
class Doubted(OfKind):
    """What readers see may be wrong, for this first reason."""

    doubt: Doubt


@frozen(kw_only=True)
class WasParked(OfKind):
    """Nothing is tried again by itself."""

    why: Parked


@frozen(kw_only=True)
class Unparked(OfKind):
    """What was parked is tried again."""


@frozen(kw_only=True)
class Adopted(OfKind):
    """The host gave its model ``count`` of the ``listed`` entries. Rule: OBS-04."""

    generation: int
    count: int
    listed: int


# --- defects and lateness -------------------------------------------------------------------------


@frozen(kw_only=True)
class Noted(Event):
    """The core found something worth recording, by rule. ``late``: an answer that came too late.

    ``kind`` and ``serial``: what it is about, if it is about one kind, and one request.
    """

    rule: str
    text: str
    late: bool
    kind: Kind | None
    serial: int | None
