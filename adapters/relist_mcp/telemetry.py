"""OpenTelemetry metrics and spans, by its API alone: without an SDK next to nothing happens.

Names follow OpenTelemetry's conventions for MCP where these have one: ``mcp.method.name``,
``mcp.protocol.version``, ``network.transport``, ``server.address``, ``error.type`` and the metric
``mcp.client.operation.duration`` (of one page). What they do not know is called ``relist.*``.
Attributes take few values: kinds, causes, outcomes and versions that policy knows. No metric holds
a text of a server; spans hold what it says of itself (see ``identity``), and nothing else of it.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from time import monotonic
from typing import Any
from weakref import WeakSet

from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer, TracerProvider

from relist.core import Relist
from relist.messages import NAMES
from relist.values import Catalog, Kind, LinkPhase, Wire
from relist_mcp import events as ev
from relist_mcp.events import Event, Outcome
from relist_mcp.fold import Told
from relist_mcp.identity import CLIENT_VERSION, Identity
from relist_mcp.loop import Fed

SCOPE = "relist_mcp"
_UNFAILING = (Outcome.CHANGED, Outcome.CHECKED, Outcome.SPOILED)
_TRANSPORT = {Wire.PIPE: "pipe", Wire.HTTP: "tcp"}

_ROOT = Context()  # no span of the application lasts as long as its catalogs do

Attributes = dict[str, str | int | bool]


class Instruments:
    """What one provider of meters measures with."""

    def __init__(self, provider: MeterProvider | None) -> None:
        meter = metrics.get_meter(SCOPE, CLIENT_VERSION, meter_provider=provider)
        count, histogram = meter.create_counter, meter.create_histogram
        self.walks = count("relist.walks", "{walk}", "Walks that ended")
        self.walk_s = histogram("relist.walk.duration", "s", "From first request to end")
        self.pages = histogram("relist.walk.pages", "{page}", "Pages of a walk")
        self.items = histogram("relist.walk.items", "{item}", "Entries of a walk")
        self.failures = count("relist.walk.failures", "{walk}", "Walks that failed, by class")
        self.notices = count("relist.notices", "{notice}", "list_changed notices")
        self.lag_s = histogram("relist.notice.lag", "s", "From a notice to the list it told of")
        self.publications = count("relist.publications", "{publication}", "Lists published")
        self.doubts = count("relist.doubts", "{doubt}", "Lists that began to be doubted")
        self.reconnects = count("relist.reconnects", "{link}", "Links opened again")
        self.late = count("relist.late_answers", "{answer}", "Answers that came too late")
        self.operation_s = histogram("mcp.client.operation.duration", "s", "One MCP request")
        self._live: WeakSet[Telemetry] = WeakSet()
        self._guard = Lock()  # an SDK collects on a thread of its own
        for name, unit, look in _GAUGES:
            meter.create_observable_gauge(name, [self._observing(look)], unit)

    def watch(self, one: "Telemetry") -> None:
        """Observe the lists of this one, too, as long as it lives."""
        with self._guard:
            self._live.add(one)

    def _observing(self, look: "Look") -> Callable[[CallbackOptions], Iterable[Observation]]:
        """Where several catalogs have the same attributes, the highest value is told."""

        def observe(_: CallbackOptions) -> Iterable[Observation]:
            worst: dict[tuple[tuple[str, str | int | bool], ...], int | float] = {}
            with self._guard:
                live = tuple(self._live)
            for one in live:
                for attributes, value in one.look(look):
                    key = tuple(attributes.items())
                    worst[key] = max(value, worst.get(key, value))
            return [Observation(value, dict(key)) for key, value in worst.items()]

        return observe


Look = Callable[[Catalog, int], int | float | None]


def _age_s(catalog: Catalog, at_ms: int) -> float | None:
    listed = catalog.snapshot
    return None if listed is None else (at_ms - listed.listed_at_ms) / 1000


def _generation(catalog: Catalog, _: int) -> int | None:
    return None if catalog.snapshot is None else catalog.generation


def _count(catalog: Catalog, _: int) -> int | None:
    return None if catalog.snapshot is None else len(catalog.snapshot.items)


_GAUGES: tuple[tuple[str, str, Look], ...] = (
    ("relist.list.age", "s", _age_s),
    ("relist.list.generation", "{generation}", _generation),
    ("relist.list.items", "{item}", _count),
)

_instruments = cache(Instruments)


@cache
def _tracer(provider: TracerProvider | None) -> Tracer:
    return trace.get_tracer(SCOPE, CLIENT_VERSION, provider)


class Telemetry:
    """A watcher that measures ``core``, and makes one span for each walk.

    The providers are the global ones unless given.
    """

    __slots__ = ("__weakref__", "_core", "_identity", "_offset_ms", "_spans", "_to", "_tracer")

    def __init__(
        self,
        core: Relist,
        identity: Callable[[], Identity],
        *,
        meter_provider: MeterProvider | None = None,
        tracer_provider: TracerProvider | None = None,
    ) -> None:
        self._core = core
        self._identity = identity
        self._to = _instruments(meter_provider)
        self._tracer = _tracer(tracer_provider)
        self._spans: dict[Kind, Span] = {}
        self._offset_ms = 0.0  # from the clock of this machine to that of the loop
        self._to.watch(self)

    def __call__(self, fed: Fed, told: Told) -> None:
        """See ``fold.Watcher``."""
        self._offset_ms = fed.heard.now_ms - monotonic() * 1000
        for event in told:
            self._measure(event)
            if isinstance(event, ev.OfKind):
                self._trace(event)

    # --- metrics ----------------------------------------------------------------------------------

    def _measure(self, event: Event) -> None:
        to = self._to
        match event:
            case ev.Noticed():
                state = "merged" if event.merged else "heeded" if event.kinds else "ignored"
                about = {"relist.channel": event.channel.value, "relist.notice": state}
                to.notices.add(1, self._with(about))
            case ev.PageListed():
                to.operation_s.record(event.took_ms / 1000, self._of_page(event.kind))
            case ev.Published():
                self._published(event)
            case ev.WalkEnded():
                self._ended(event)
            case ev.Doubted():
                about = {"relist.kind": event.kind.value, "relist.doubt": event.doubt.value}
                to.doubts.add(1, self._with(about))
            case ev.LinkMoved(after=LinkPhase.OPENING) if event.epoch > 1:
                to.reconnects.add(1, self._with({}))
            case ev.Noted(late=True):
                to.late.add(1, self._with({}))
            case _:
                pass

    def _published(self, event: ev.Published) -> None:
        kind = {"relist.kind": event.kind.value}
        became = "changed" if event.changed else "checked"
        self._to.publications.add(1, self._with({**kind, "relist.publication": became}))
        if event.lag_ms is not None:
            self._to.lag_s.record(event.lag_ms / 1000, self._with(kind))

    def _ended(self, event: ev.WalkEnded) -> None:
        to, outcome = self._to, event.outcome
        kind = {"relist.kind": event.kind.value}
        how = {**kind, "relist.outcome": outcome.value}
        to.walks.add(1, self._with({**how, "relist.cause": event.cause.value}))
        to.walk_s.record(event.duration_ms / 1000, self._with(how))
        to.pages.record(event.pages, self._with(kind))
        to.items.record(event.entries, self._with(kind))
        if outcome not in _UNFAILING:
            to.failures.add(1, self._with({**kind, "error.type": outcome.value}))
        if event.failure is not None or outcome is Outcome.TIMED_OUT:
            about = {**self._of_page(event.kind), "error.type": outcome.value}
            to.operation_s.record(event.took_ms / 1000, about)

    def _of_page(self, kind: Kind) -> Attributes:
        about: Attributes = {"mcp.method.name": NAMES[kind].method}
        if version := self._core.session.link.version:
            about["mcp.protocol.version"] = version
        return self._with(about)

    def _with(self, about: Attributes | dict[str, str]) -> Attributes:
        """These attributes, and to which server: by where we were told to find it."""
        wire = self._core.session.link.wire
        common: Attributes = {"network.transport": _TRANSPORT[wire]}
        if wire is Wire.HTTP and (address := self._identity().address):
            common["server.address"] = address
        return {**about, **common}

    def look(self, look: Look) -> Iterator[tuple[Attributes, int | float]]:
        """What there is to observe of each list; nothing once the link is closed. On any thread."""
        session, at_ms = self._core.session, int(monotonic() * 1000 + self._offset_ms)
        if session.link.phase is LinkPhase.CLOSED:
            return
        for catalog in session.catalogs:
            value = look(catalog, at_ms)
            if value is not None:
                yield self._with({"relist.kind": catalog.kind.value}), value

    # --- spans ------------------------------------------------------------------------------------

    def _trace(self, event: ev.OfKind) -> None:
        match event:
            case ev.WalkBegan():
                about = {**self._of_page(event.kind), **self._said()}
                about |= {"relist.kind": event.kind.value, "relist.cause": event.cause.value}
                about |= {"relist.epoch": event.epoch, "relist.notices": event.notices}
                name = f"relist.walk {event.kind.value}"
                begun = self._tracer.start_span(name, _ROOT, SpanKind.INTERNAL, about)
                if begun.is_recording():  # else nobody looks at it
                    self._spans[event.kind] = begun
            case ev.PageListed() if (span := self._spans.get(event.kind)) is not None:
                span.add_event("relist.page", {"page": event.number, "entries": event.entries})
            case ev.Published() if (span := self._spans.get(event.kind)) is not None:
                generation = event.snapshot.generation
                about = {"relist.generation": generation, "relist.changed": event.changed}
                span.add_event("relist.published", about)
            case ev.WalkEnded() if (span := self._spans.pop(event.kind, None)) is not None:
                _end(span, event)
            case _:
                pass

    def _said(self) -> Attributes:
        server = self._identity()
        return {"relist.server.name": server.name, "relist.server.version": server.version}


def _end(span: Span, event: ev.WalkEnded) -> None:
    span.set_attributes(
        {
            "relist.outcome": event.outcome.value,
            "relist.pages": event.pages,
            "relist.items": event.entries,
            "relist.spoiled": event.spoiled,
        }
    )
    if event.outcome not in _UNFAILING:
        span.set_attribute("error.type", event.outcome.value)
        span.set_status(StatusCode.ERROR, event.reason)
    span.end()


@contextmanager
def call_span(method: str, provider: TracerProvider | None = None) -> Generator[Span]:
    """A span around one call of an application: around its gate, and all that is sent for it.

    ``method`` is an MCP method, such as ``tools/call``; never name a tool or its arguments. An
    exception marks it failed by the exception's type: its text may be the server's.
    """
    about: dict[str, Any] = {"mcp.method.name": method}
    with _tracer(provider).start_as_current_span(
        f"relist.call {method}",
        attributes=about,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield span
        except BaseException as error:
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(StatusCode.ERROR)
            raise
