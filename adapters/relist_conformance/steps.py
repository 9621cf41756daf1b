"""The step language: what a case makes the referee do, one frozen value per step.

``specs/case-format.md`` explains each step to authors of cases; ``performing.py`` performs them.
"""

from collections.abc import Mapping
from typing import Any, Literal

from attrs import field, frozen

from relist.check.history import RequestMatch
from relist_conformance.said import Error, Fill, Page, Status

Else = Literal["inconclusive", "not_applicable", "continue"]
LONGEST_WAIT_MS = 5_000
"""How long everybody waits for time to pass where a driver cannot move its client's clock."""

Pages = tuple[tuple[str, ...], ...]
"""A catalog as pages of items written ``name@version``."""

What = Literal["connection", "streams", "session"]
"""What can be cut."""

How = Literal["result", "error", "cancelled", "closed"]
"""The four endings of a subscription."""

Tag = Literal["right", "none", "foreign", "other_type"]
"""Which subscription id a notice bears: that of its subscription, none, one never given out, or
the right one as the other JSON type."""


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


# --- the driver ---


@frozen(kw_only=True)
class Connect(Step):
    """Have the driver start the client on the referee. The step does not wait for it.

    One of several connections has a ``name``; what follows is about it.
    """

    request_timeout_ms: int | None = None
    name: str = ""


@frozen(kw_only=True)
class Turn(Step):
    """What follows is about that connection."""

    to: str


@frozen(kw_only=True)
class Need(Step):
    """The application needs a list: once, or again until the answer is exactly ``until``.

    ``otherwise`` says how the run ends where that does not come.
    """

    kind: str
    name: str | None = None
    until: tuple[str, ...] | None = None
    tries: int = 7
    wait: bool = True
    otherwise: Else = "continue"
    why: str | None = None


@frozen(kw_only=True)
class Believe(Step):
    """Ask what the client believes, which must not cause traffic."""

    kind: str
    name: str | None = None


@frozen(kw_only=True)
class Refresh(Step):
    """The application wants the list as it is now, whatever the client holds."""

    kind: str
    name: str | None = None


@frozen(kw_only=True)
class Call(Step):
    """Call a tool through the driver; ``planned`` is the tool as the caller saw it."""

    tool: str
    name: str | None = None
    arguments: Mapping[str, Any] = field(factory=dict[str, Any])
    planned: str | None = None
    wait: bool = True


@frozen(kw_only=True)
class Read(Step):
    """The application wants what a resource contains: once, or again until that is ``until``."""

    uri: str
    name: str | None = None
    until: str | None = None
    tries: int = 7
    wait: bool = True


@frozen(kw_only=True)
class GetPrompt(Step):
    """The application has a prompt rendered."""

    prompt: str
    name: str | None = None
    arguments: Mapping[str, str] = field(factory=dict[str, str])


@frozen(kw_only=True)
class Subscribe(Step):
    """From now on the application wants to hear when this resource changes."""

    uri: str


@frozen(kw_only=True)
class Unsubscribe(Subscribe):
    """It does not want to hear of it any more."""


@frozen(kw_only=True)
class Credentials(Step):
    """From now on the client acts for another principal."""

    principal: str


@frozen(kw_only=True)
class Advance(Step):
    """Time passes for the client: its driver moves its clock, or everybody waits."""

    ms: int


@frozen(kw_only=True)
class Idle(Step):
    """Wait until the driver says that nothing is under way."""


@frozen(kw_only=True)
class Stop(Step):
    """Have the driver close the client."""


@frozen(kw_only=True)
class Fence(Step):
    """Make the client do something that it can only do after all that was sent before."""


# --- answers ---


@frozen(kw_only=True)
class Content:
    """What an answer says. At most one of the first five takes the place of the well-behaved one;
    the others bend the result. ``malformed`` owns that it does not fit the revision."""

    page: Page | None = None
    error: Error | None = None
    status: Status | None = None
    text: str | None = None
    grant: tuple[str, ...] | None = None
    put: Mapping[str, Any] = field(factory=dict[str, Any])
    drop: tuple[str, ...] = ()
    add: tuple[Any, ...] = ()
    fill: Fill | None = None
    malformed: bool = False


@frozen(kw_only=True)
class Stream:
    """An answer over HTTP as an event stream: what stands on it first, and a kind noticed on it."""

    begin: str = ""
    notice: str | None = None


@frozen(kw_only=True)
class Delivery:
    """When an answer is sent: at once, on ``release`` of that name, later, never, or not at all
    because the channel is cut. ``notify`` and ``notify_first`` are kinds noticed with it."""

    hold: str | None = None
    after_ms: int | None = None
    never: bool = False
    cut: bool = False
    notify: str | None = None
    notify_first: str | None = None
    stream: Stream | None = None


@frozen(kw_only=True)
class Answer(Step):
    """Answer such requests otherwise: from the ``nth`` from now on, ``times`` of them (None: all).

    The answer is computed when the request arrives. Rules for some requests go before those for
    all, and among equals the first one.
    """

    request: RequestMatch
    nth: int = 1
    times: int | None = 1
    content: Content = field(factory=Content)
    delivery: Delivery = field(factory=Delivery)

    @property
    def overrides(self) -> bool:
        """Whether it does without the server, even for who would have been refused."""
        said = (self.content.error, self.content.status, self.content.text)
        return self.delivery.never or self.delivery.cut or any(one is not None for one in said)


@frozen(kw_only=True)
class Release(Step):
    """Send a held answer. Nothing happens when the request never came or its channel is gone."""

    name: str


# --- waiting and judging what a run is good for ---


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
class Excuse(Step):
    """The case is not applicable to a client that has sent such a request since a mark."""

    request: RequestMatch
    why: str
    since: str | None = None


@frozen(kw_only=True)
class Covered(Step):
    """Wait until such a notice could be sent, else the case is not applicable.

    ``topic``: a kind whose list changes, or the URI of a resource that changes.
    """

    topic: str


@frozen(kw_only=True)
class Mark(Step):
    """Name this moment for ``since``."""

    name: str


# --- the server ---


@frozen(kw_only=True)
class Change(Step):
    """Put new pages in force, and tell the client if ``notify`` (waiting for a channel first).

    ``contents`` is by URI what resources contain from now on. ``setup`` changes what the server
    says of itself and of its answers: ``capabilities``, ``server_info``, ``ttl_ms``,
    ``cache_scope``. Pages and contents are those of one ``principal`` if given.
    """

    pages: Mapping[str, Pages] = field(factory=dict[str, Pages])
    contents: Mapping[str, str] = field(factory=dict[str, str])
    setup: Mapping[str, Any] = field(factory=dict[str, Any])
    principal: str = ""
    notify: bool = False


@frozen(kw_only=True)
class Notify(Step):
    """Send a change notice without a change: ``times`` of them, ``every_ms``.

    It goes where a notice of the ``topic`` (kind or URI) may go, or (``to``: any) also to sessions
    that are not initialized and to subscriptions that were not granted it, or nothing as yet.
    """

    topic: str
    tag: Tag = "right"
    to: Literal["covered", "any"] = "covered"
    times: int = 1
    every_ms: int = 0
    wait: bool = True


@frozen(kw_only=True)
class Send(Step):
    """Write a text as it stands: where the newest such request waits, else where notices go.

    ``{id}`` in it is the id of that request. ``raw``: not as an event, but as lines of its stream.
    """

    text: str
    to: RequestMatch | None = None
    raw: bool = False


@frozen(kw_only=True)
class EndSubscriptions(Step):
    """End each subscription in one of the four ways."""

    how: How


@frozen(kw_only=True)
class Cut(Step):
    """Break off without a farewell: everything as a crash would, the streams of notices, or what
    the server knows of its sessions."""

    what: What


STEPS: Mapping[str, type[Step]] = {
    "connect": Connect,
    "turn": Turn,
    "need": Need,
    "believe": Believe,
    "refresh": Refresh,
    "call": Call,
    "read": Read,
    "get_prompt": GetPrompt,
    "subscribe": Subscribe,
    "unsubscribe": Unsubscribe,
    "credentials": Credentials,
    "advance": Advance,
    "idle": Idle,
    "stop": Stop,
    "fence": Fence,
    "answer": Answer,
    "release": Release,
    "await": Await,
    "excuse": Excuse,
    "covered": Covered,
    "mark": Mark,
    "change": Change,
    "notify": Notify,
    "send": Send,
    "end_subscriptions": EndSubscriptions,
    "cut": Cut,
}
"""Each step by its name in a case."""

OPTIONAL = (Refresh, Read, GetPrompt, Subscribe, Unsubscribe, Credentials)
"""What a driver need not offer: without it there is no other way."""

NAMES: Mapping[type[Step], str] = {step: name for name, step in STEPS.items()}
