"""What a case expects of a history. Values only; ``judge`` gives them their meaning.

Items are written ``name@version``: an item of that name whose description is the whole text.
"""

from collections.abc import Mapping
from typing import Literal

from attrs import frozen

Severity = Literal["fail", "warn"]


@frozen(kw_only=True)
class Expectation:
    """What all expectations share.

    ``rule`` names by revision the requirement, ``severity`` what breaking it means. With ``given``
    the expectation counts only when the script came to that mark. ``since`` is a mark too.
    """

    rule: Mapping[str, str]
    severity: Mapping[str, Severity]
    given: str | None = None
    since: str | None = None


@frozen(kw_only=True)
class Requested(Expectation):
    """The client sent this request ``at_least`` and (when set) ``at_most`` so many times."""

    method: str
    page: int | None = None
    cursor: str | None = None
    at_least: int = 1
    at_most: int | None = None


@frozen(kw_only=True)
class FullWalk(Expectation):
    """After the mark the client listed the kind once from the first page to the last."""

    kind: str


@frozen(kw_only=True)
class Answered(Expectation):
    """What the driver said under the name ``of`` was exactly one of these sets of items.

    ``which`` picks the last of several answers or demands it of each. None among ``one_of`` stands
    for no list at all. An error, and no list in answer to *believe*, say nothing: they are skipped.
    """

    of: str
    one_of: tuple[tuple[str, ...] | None, ...]
    which: Literal["last", "every"] = "last"


@frozen(kw_only=True)
class NoDuplicates(Expectation):
    """No answer under the name ``of`` holds an item twice."""

    of: str


@frozen(kw_only=True)
class NeverRequested(Expectation):
    """The client sent none of these requests before the last fence it passed."""

    methods: tuple[str, ...]
