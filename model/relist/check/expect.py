"""What a case expects of a history. Values only; ``misses`` gives them their meaning.

Items are written ``name@version``: an item of that name whose description is the whole text.
"""

from collections.abc import Mapping
from typing import Literal, get_args

from attrs import frozen

from relist.check.history import RequestMatch

Severity = Literal["fail", "warn"]

Anomaly = Literal[
    "lost notice",
    "late overwrite",
    "torn listing",
    "cut walk",
    "starvation",
    "live-lock",
    "unbounded traffic",
    "wrong gate",
    "wrong era",
    "lost subscription",
    "lost connection",
    "lost catalog",
    "stale list",
    "stale call",
    "partition leak",
    "wrong answer reused",
    "wrong frame taken",
    "lost cancellation",
]
"""What kinds of harm there are; ``specs/case-format.md`` explains each."""

ANOMALIES: tuple[str, ...] = get_args(Anomaly)


@frozen(kw_only=True)
class Expectation:
    """What all expectations share.

    ``rule`` names by revision the requirement, ``severity`` what breaking it means, ``anomaly`` the
    kind of harm. What is ``timed`` also rests on when things happened: a request or an answer that
    did not come in the time of the run is absent without a fence, and a harness that was late can
    not tell. With ``given`` the expectation counts only when the script came to that mark. What
    counts came after the mark ``since`` and before the mark ``before``.
    """

    rule: Mapping[str, str]
    severity: Mapping[str, Severity]
    anomaly: Anomaly
    timed: bool = False
    given: str | None = None
    since: str | None = None
    before: str | None = None


@frozen(kw_only=True)
class Requested(Expectation):
    """The client sent this request ``at_least`` and (when set) ``at_most`` so many times."""

    request: RequestMatch
    at_least: int = 1
    at_most: int | None = None


@frozen(kw_only=True)
class NeverRequested(Expectation):
    """The client sent none of these requests before the last fence it passed."""

    methods: tuple[str, ...]


@frozen(kw_only=True)
class Ordered(Expectation):
    """Whatever ``then`` matches (and ``first`` does not) came only after a ``first``."""

    first: RequestMatch
    then: RequestMatch


@frozen(kw_only=True)
class Each(Expectation):
    """Each request that ``request`` matches is matched by ``like`` as well."""

    request: RequestMatch
    like: RequestMatch


@frozen(kw_only=True)
class DistinctIds(Expectation):
    """No request has the id of another one: of the same *session*, ever, or of one still *open*."""

    among: Literal["session", "open"]


@frozen(kw_only=True)
class WellFormed(Expectation):
    """All that the client sends are requests, notifications, and answers to what it was asked."""


@frozen(kw_only=True)
class Cancelled(Expectation):
    """The client cancelled such a request, in the way of its transport."""

    request: RequestMatch


@frozen(kw_only=True)
class NewIds(Expectation):
    """No two of these requests had the same id, not even when the first was over."""

    request: RequestMatch


@frozen(kw_only=True)
class Uncancelled(Expectation):
    """The client sent no cancellation of such a request."""

    request: RequestMatch


@frozen(kw_only=True)
class Paced(Expectation):
    """A client that sent many of these varied the pauses between them, and (``backoff``) made them
    longer.

    The only expectation that looks at the clock of the referee; up to three such requests are too
    few to tell, and nobody is blamed.
    """

    request: RequestMatch
    backoff: bool = False


@frozen(kw_only=True)
class FullWalk(Expectation):
    """After the mark the client listed the kind once from the first page to the last."""

    kind: str


@frozen(kw_only=True)
class Answered(Expectation):
    """What the driver said under the name ``of`` was exactly one of these sets of items.

    ``which`` picks the last of several answers or demands it of each; ``in_order`` minds the order.
    None among ``one_of`` stands for no list at all. An error, and no list in answer to *believe*,
    say nothing: they are skipped. But without ``or_error`` it is a miss when there are only errors.
    """

    of: str
    one_of: tuple[tuple[str, ...] | None, ...]
    which: Literal["last", "every"] = "last"
    in_order: bool = False
    or_error: bool = True


@frozen(kw_only=True)
class NoDuplicates(Expectation):
    """No answer under the name ``of`` holds an item twice."""

    of: str


@frozen(kw_only=True)
class Opinion(Expectation):
    """Where the client gave its opinion of the list under the name ``of``, it was one of these."""

    of: str
    one_of: tuple[str, ...]


@frozen(kw_only=True)
class Outcome(Expectation):
    """Each call under the name ``of`` ended in one of these."""

    of: str
    one_of: tuple[str, ...]
