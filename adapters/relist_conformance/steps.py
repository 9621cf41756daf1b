"""The step language: what a case makes the referee do, one frozen value per step.

``specs/case-format.md`` explains each step to authors of cases; ``referee.py`` performs them.
"""

from collections.abc import Mapping
from typing import Any, Literal

from attrs import field, frozen

from relist.check.history import mapping

Else = Literal["inconclusive", "not_applicable", "continue"]
Pages = tuple[tuple[str, ...], ...]
"""A catalog as pages of items written ``name@version``."""


@frozen
class RequestMatch:
    """Which requests are meant: a method and, when set, the page asked for or the exact cursor."""

    method: str
    page: int | None = None
    cursor: str | None = None

    def matches(self, message: Mapping[str, Any], page: int | None) -> bool:
        """Whether this JSON-RPC request, which asks for ``page`` of its list, is meant."""
        if message.get("method") != self.method or self.page not in (None, page):
            return False
        params = mapping(message.get("params")) or {}
        return self.cursor is None or params.get("cursor") == self.cursor


@frozen(kw_only=True)
class Step:
    """What all steps share: it is skipped for revisions and transports that it does not name, and
    where the run did not come to the mark ``given``."""

    revisions: tuple[str, ...] | None = None
    transports: tuple[str, ...] | None = None
    given: str | None = None

    def applies(self, revision: str, transport: str) -> bool:
        """Whether the step is meant for runs of this revision on this transport."""
        return (self.revisions is None or revision in self.revisions) and (
            self.transports is None or transport in self.transports
        )


@frozen(kw_only=True)
class Connect(Step):
    """Have the driver start the client on the referee. The step does not wait for it."""

    request_timeout_ms: int | None = None


@frozen(kw_only=True)
class Need(Step):
    """The application needs a list: once, or again until the answer is exactly ``until``."""

    kind: str
    name: str | None = None
    until: tuple[str, ...] | None = None
    tries: int = 7
    wait: bool = True


@frozen(kw_only=True)
class Believe(Step):
    """Ask what the client believes, which must not cause traffic."""

    kind: str
    name: str | None = None


@frozen(kw_only=True)
class Call(Step):
    """Call a tool through the driver."""

    tool: str
    name: str | None = None


@frozen(kw_only=True)
class Idle(Step):
    """Wait until the driver says that nothing is under way."""


@frozen(kw_only=True)
class Stop(Step):
    """Have the driver close the client."""


@frozen(kw_only=True)
class Hold(Step):
    """Keep back the answer to the ``nth`` such request from now on; it is computed on arrival."""

    request: RequestMatch
    name: str
    nth: int = 1


@frozen(kw_only=True)
class Release(Step):
    """Send a held answer. Nothing happens when the request never came or its channel is gone."""

    name: str


@frozen(kw_only=True)
class Fail(Step):
    """Answer the next ``times`` such requests with an error."""

    request: RequestMatch
    code: int
    message: str
    times: int = 1


@frozen(kw_only=True)
class Await(Step):
    """Wait for the ``nth`` such request since a mark (or the start).

    With ``need`` the application keeps needing that list meanwhile (answers go under ``name``), and
    the wait ends when it was given ``tries`` answers. ``name`` is a mark once the request came.
    """

    request: RequestMatch
    nth: int = 1
    since: str | None = None
    need: str | None = None
    tries: int = 6
    within_ms: int | None = None
    otherwise: Else = "inconclusive"
    why: str | None = None
    name: str | None = None


@frozen(kw_only=True)
class Covered(Step):
    """Wait until a change notice for the kind could be sent, else the case is not applicable."""

    kind: str


@frozen(kw_only=True)
class Change(Step):
    """Put new pages in force, and tell the client if ``notify`` (waiting for a channel first)."""

    pages: Mapping[str, Pages] = field(factory=dict[str, Pages])
    notify: bool = False


@frozen(kw_only=True)
class Notify(Step):
    """Send a change notice without a change."""

    kind: str


@frozen(kw_only=True)
class Cut(Step):
    """Break the connection without a farewell, as a crash would."""


@frozen(kw_only=True)
class Mark(Step):
    """Name this moment for ``since``."""

    name: str


@frozen(kw_only=True)
class Fence(Step):
    """Make the client do something that it can only do after all that was sent before."""
