"""Metrics and spans: what they count, and that they hold few attributes and nothing foreign."""

import gc
import re
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from relist import inputs as i
from relist_mcp import Catalogs
from relist_mcp import events as ev
from relist_mcp.events import Cause, Outcome
from relist_mcp.fold import Told
from relist_mcp.identity import Identity
from relist_mcp.loop import Fed
from relist_mcp.telemetry import Telemetry, call_span
from support.brain import MODERN, tool
from support.live import ERAS, LIST, policy, serve, serve_http
from support.loops import everywhere, virtually
from support.one import REFUSED, TRANSIENT
from support.told import Teller

rule = pytest.mark.rule
CANARY = "can4ry"
WHO = Identity("a.test", "name", "1.2")

Point = tuple[Mapping[str, Any], Any]


class Sdk:
    """An SDK that keeps everything."""

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self._exporter = InMemorySpanExporter()
        self.meters = MeterProvider([self._reader])
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))

    def watching(self, teller: Teller, who: Identity = WHO) -> Telemetry:
        """From now on what happens is measured."""
        watcher = Telemetry(
            teller.core, lambda: who, meter_provider=self.meters, tracer_provider=self.tracers
        )
        hear = teller.hear

        def hear_and_measure(heard: i.SessionInput) -> Told:
            before, told = teller.session, hear(heard)
            watcher(Fed(heard, before, teller.session, teller.effects), told)
            return told

        teller.hear = hear_and_measure  # type: ignore[method-assign]
        return watcher

    def points(self) -> dict[str, list[Point]]:
        """All points by metric: their attributes, and a sum, a value, or (count, sum)."""
        found: dict[str, list[Point]] = {}
        data = self._reader.get_metrics_data()
        for resource in [] if data is None else data.resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    points: list[Any] = list(metric.data.data_points)
                    found[metric.name] = [(dict(p.attributes), _value(p)) for p in points]
        return found

    def spans(self) -> list[ReadableSpan]:
        """The spans that have ended."""
        return list(self._exporter.get_finished_spans())


def _value(point: Any) -> Any:
    return (point.count, point.sum) if hasattr(point, "count") else point.value


def total(points: list[Point], **wanted: object) -> Any:
    """The sum of the points with these attributes; dots are written as underscores."""
    return sum(
        value
        for attributes, value in points
        if all(attributes[key.replace("__", ".")] == one for key, one in wanted.items())
    )


@pytest.fixture
def sdk() -> Sdk:
    return Sdk()


def _eventful() -> Teller:
    return Teller(request_limit_ms=1_000)


def _live(teller: Teller) -> None:
    """A notice, a merged one, a failure, a silence, a late answer, a new link."""
    teller.link()
    teller.now_ms += 20
    teller.page("a", "b", more="c")
    teller.page("c")
    teller.notice()
    teller.notice()
    teller.notice(serial=9)
    teller.wait()
    teller.fail(TRANSIENT)
    teller.wait()
    teller.wait()  # no answer in time
    teller.page("late", serial=4)
    teller.wait()
    teller.page("d")
    teller.refresh()
    teller.page("d")
    teller.lose()
    teller.wait()


# --- metrics --------------------------------------------------------------------------------------


def test_walks_are_counted_by_kind_cause_and_outcome(sdk: Sdk) -> None:
    teller = _eventful()
    sdk.watching(teller)
    _live(teller)
    points = sdk.points()
    walks = points["relist.walks"]
    about = {"relist.kind": "tools", "network.transport": "pipe"}
    told = {
        (attributes["relist.cause"], attributes["relist.outcome"]): value
        for attributes, value in walks
        if attributes.items() >= about.items()
    }
    assert told == {
        (Cause.FIRST.value, Outcome.CHANGED.value): 1,
        (Cause.NOTICED.value, Outcome.FAILED.value): 1,
        (Cause.FAILED.value, Outcome.TIMED_OUT.value): 1,
        (Cause.FAILED.value, Outcome.CHANGED.value): 1,
        (Cause.REFRESH.value, Outcome.CHECKED.value): 1,
    }
    changed = {**about, "relist.outcome": "changed"}
    silent = {**about, "relist.outcome": "timed out"}
    durations = dict(map(_hashed, points["relist.walk.duration"]))
    assert durations[_key(changed)] == (2, 0.02)
    assert durations[_key(silent)] == (1, 1.0)
    assert points["relist.walk.pages"] == [(about, (5, 4))]
    assert points["relist.walk.items"] == [(about, (5, 5))]
    assert total(points["relist.walk.failures"], error__type="failed") == 1
    assert total(points["relist.walk.failures"], error__type="timed out") == 1


def _key(attributes: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(attributes.items()))


def _hashed(point: Point) -> tuple[tuple[tuple[str, Any], ...], Any]:
    return _key(point[0]), point[1]


def test_notices_publications_doubts_and_links_are_counted(sdk: Sdk) -> None:
    teller = _eventful()
    sdk.watching(teller)
    _live(teller)
    points = sdk.points()
    notices = points["relist.notices"]
    states = {attributes["relist.notice"]: value for attributes, value in notices}
    assert states == {"heeded": 1, "merged": 1, "ignored": 1}
    publications = points["relist.publications"]
    shown = {attributes["relist.publication"]: value for attributes, value in publications}
    assert shown == {"changed": 2, "checked": 1}
    assert {attributes["relist.doubt"]: v for attributes, v in points["relist.doubts"]} == {
        "noticed": 1,
        "disconnected": 1,
    }
    assert total(points["relist.reconnects"]) == 1
    assert total(points["relist.late_answers"]) == 1
    (lag,) = (value for _, value in points["relist.notice.lag"])
    assert lag[0] == 1
    answered_ms = next(told.lag_ms for told in teller.of(ev.Published) if told.lag_ms is not None)
    assert lag[1] == pytest.approx(answered_ms / 1_000)
    assert answered_ms > 1_000


def test_each_request_is_measured_as_the_conventions_say(sdk: Sdk) -> None:
    teller = _eventful()
    sdk.watching(teller)
    _live(teller)
    about = {
        "mcp.method.name": "tools/list",
        "mcp.protocol.version": MODERN,
        "network.transport": "pipe",
    }
    operations = dict(map(_hashed, sdk.points()["mcp.client.operation.duration"]))
    assert operations[_key(about)] == (4, 0.02)
    assert operations[_key({**about, "error.type": "failed"})] == (1, 0.0)
    assert operations[_key({**about, "error.type": "timed out"})] == (1, 1.0)


def test_age_generation_and_size_are_observed_while_there_is_a_list(sdk: Sdk) -> None:
    teller = Teller()
    watcher = sdk.watching(teller)
    assert "relist.list.items" not in sdk.points()
    teller.link()
    teller.page("a", "b")
    points = sdk.points()
    about = {"relist.kind": "tools", "network.transport": "pipe"}
    assert points["relist.list.items"] == [(about, 2)]
    assert points["relist.list.generation"] == [(about, 1)]
    teller.now_ms += 7_000
    teller.notice()
    ((_, age),) = sdk.points()["relist.list.age"]
    assert age >= 7
    others = [Teller() for _ in range(6)]
    watchers = [sdk.watching(other) for other in others]
    for number, other in enumerate(others):
        other.link()
        other.page(*"abcdefgh"[: 3 + number % 4])
    assert sdk.points()["relist.list.items"] == [(about, 6)]  # the highest
    for other in others:
        other.hear(i.CloseWanted(0))
    assert sdk.points()["relist.list.items"] == [(about, 2)]
    del watcher, watchers


def test_who_is_gone_is_not_observed(sdk: Sdk) -> None:
    teller = Teller()
    sdk.watching(teller)
    teller.link()
    teller.page("a")
    assert "relist.list.items" in sdk.points()
    del teller
    gc.collect()
    assert "relist.list.items" not in sdk.points()


# --- spans ----------------------------------------------------------------------------------------


def test_each_walk_is_a_span_with_an_event_for_each_page(sdk: Sdk) -> None:
    teller = Teller()
    sdk.watching(teller)
    teller.link()
    teller.page("a", "b", more="c")
    assert sdk.spans() == []
    teller.page("c")
    (span,) = sdk.spans()
    assert (span.name, span.kind, span.parent) == ("relist.walk tools", SpanKind.INTERNAL, None)
    assert dict(span.attributes or {}) == {
        "mcp.method.name": "tools/list",
        "mcp.protocol.version": MODERN,
        "network.transport": "pipe",
        "relist.server.name": "name",
        "relist.server.version": "1.2",
        "relist.kind": "tools",
        "relist.cause": "first",
        "relist.epoch": 1,
        "relist.notices": 0,
        "relist.outcome": "changed",
        "relist.pages": 2,
        "relist.items": 3,
        "relist.spoiled": False,
    }
    assert [(event.name, dict(event.attributes or {})) for event in span.events] == [
        ("relist.page", {"page": 1, "entries": 2}),
        ("relist.page", {"page": 2, "entries": 1}),
        ("relist.published", {"relist.generation": 1, "relist.changed": True}),
    ]
    assert span.status.status_code is StatusCode.UNSET


def test_a_walk_that_failed_is_an_error_in_words_of_ours(sdk: Sdk) -> None:
    teller = Teller()
    sdk.watching(teller)
    teller.link()
    teller.fail(evolve(REFUSED, reason="error answer"))
    (span,) = sdk.spans()
    assert (span.attributes or {})["error.type"] == "refused"
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "error answer")


def test_a_spoiled_walk_is_no_error(sdk: Sdk) -> None:
    teller = Teller()
    sdk.watching(teller)
    teller.link()
    teller.notice()
    teller.page("a")
    (span,) = sdk.spans()
    assert (span.status.status_code, (span.attributes or {})["relist.spoiled"]) == (
        StatusCode.UNSET,
        True,
    )


def test_walks_belong_to_no_span_of_the_application(sdk: Sdk) -> None:
    """It would last as long as the connection."""
    teller = Teller()
    sdk.watching(teller)
    with sdk.tracers.get_tracer("app").start_as_current_span("app"):
        teller.link()
        teller.page("a")
    assert [span.parent for span in sdk.spans()] == [None, None]


def test_a_call_is_a_span_around_what_is_sent_for_it(sdk: Sdk) -> None:
    with (
        call_span("tools/call", sdk.tracers),
        sdk.tracers.get_tracer("sdk").start_as_current_span("MCP send tools/call"),
    ):
        pass
    inner, outer = sdk.spans()
    assert outer.name == "relist.call tools/call"
    assert dict(outer.attributes or {}) == {"mcp.method.name": "tools/call"}
    assert inner.parent == outer.context


def test_a_call_that_raised_is_marked_by_type_and_not_by_text(sdk: Sdk) -> None:
    with pytest.raises(ValueError, match=CANARY), call_span("tools/call", sdk.tracers):
        raise ValueError(CANARY)
    (span,) = sdk.spans()
    assert (span.attributes or {})["error.type"] == "ValueError"
    assert span.status.status_code is StatusCode.ERROR
    assert CANARY not in span.to_json()


# --- live -----------------------------------------------------------------------------------------


@ERAS
@everywhere
async def test_a_live_client_is_measured(era: str) -> None:
    sdk = Sdk()
    brain, pipe = serve(era, "a", "b", page_size=1)
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        core, who = catalogs._loop.core, Identity()
        watcher = Telemetry(
            core, lambda: who, meter_provider=sdk.meters, tracer_provider=sdk.tracers
        )
        catalogs.watch(watcher)
        await catalogs.idle()
        brain.set_tools("c")
        pipe.send(brain.change())
        await brain.until_seen(LIST, 3)
        await catalogs.idle()
        with ThreadPoolExecutor() as threads:  # as an exporter does
            points = threads.submit(sdk.points).result()
        assert total(points["relist.list.generation"]) == 2
    points = sdk.points()
    assert total(points["relist.publications"], relist__publication="changed") == 2
    assert total(points["relist.notices"], relist__notice="heeded") == 1
    assert [len(span.events) for span in sdk.spans()] == [3, 2]
    assert "relist.list.generation" not in points  # closed


@rule("OBS-06")
@virtually
async def test_no_metric_and_no_span_holds_anything_foreign() -> None:
    sdk = Sdk()
    brain, web = serve_http(MODERN)
    brain.lists["tools"] = [tool(f"{CANARY}{n}", description=CANARY) for n in range(3)]
    brain.page_size = 2
    target = evolve(web.target, url=f"http://{CANARY}:x@a.test:81/{CANARY}?{CANARY}")
    async with Catalogs.connect(target, policy=policy()) as catalogs:
        watcher = Telemetry(
            catalogs._loop.core,
            catalogs._identity,
            meter_provider=sdk.meters,
            tracer_provider=sdk.tracers,
        )
        catalogs.watch(watcher)
        await catalogs.idle()
        error = {"code": 987_654_321, "message": CANARY, "data": CANARY}
        brain.answers[LIST] = lambda _: {"error": error}
        await catalogs.tools.refresh()
        points = sdk.points()
    assert len(points) > 8
    assert CANARY not in str(points)
    assert "987654321" not in str(points)
    assert "scripted" not in str(points)
    spans = "".join(span.to_json() for span in sdk.spans())
    assert CANARY not in spans
    assert '"relist.server.name": "scripted"' in spans
    for found in points.values():
        assert all(attributes["server.address"] == "a.test:81" for attributes, _ in found)


PROGRAM = """
import sys
import relist_mcp
from relist_mcp.telemetry import call_span
assert not [name for name in sys.modules if name.startswith("opentelemetry.sdk")]

from support.told import Teller
from relist_mcp.telemetry import Telemetry
from relist_mcp.identity import Identity
from relist_mcp.loop import Fed

def live():
    teller = Teller()
    watcher = Telemetry(teller.core, Identity)
    hear = teller.hear
    def hear_and_measure(heard):
        before, told = teller.session, hear(heard)
        watcher(Fed(heard, before, teller.session, teller.effects), told)
        return told
    teller.hear = hear_and_measure
    teller.link()
    teller.page("a")
    return teller

quiet = live()  # nobody measures yet
with call_span("tools/call") as span:
    assert not span.is_recording()

from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
reader = InMemoryMetricReader()
metrics.set_meter_provider(MeterProvider([reader]))
loud = live()
data = reader.get_metrics_data()
scope = data.resource_metrics[0].scope_metrics[0]
assert scope.scope.name == "relist_mcp", scope.scope
print({m.name: m.data.data_points[0].value for m in scope.metrics if m.name == "relist.walks"})
"""


def test_without_an_sdk_nothing_happens_and_one_may_come_later() -> None:
    """Only the API is imported; what is measured from then on goes to the global provider."""
    path = [*sys.path]
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"import sys; sys.path[:] = {path!r}\n{PROGRAM}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "{'relist.walks': 1}"


def test_a_client_is_measured_by_itself() -> None:
    catalogs = Catalogs(Teller().core)
    assert Telemetry in {type(watcher) for watcher in catalogs._events.watchers}


# --- the page for operators -----------------------------------------------------------------------

PAGE = (Path(__file__).parents[2] / "specs" / "observability.md").read_text()


def test_the_page_for_operators_names_every_metric_and_attribute(sdk: Sdk) -> None:
    teller = _eventful()
    watcher = sdk.watching(teller, evolve(WHO, address=""))
    _live(teller)
    points = sdk.points()
    table = PAGE.partition("## Metrics")[2].partition("## Spans")[0]
    assert set(re.findall(r"(?m)^\| `([\w.]+)` \|", table)) == set(points)
    for name, found in points.items():
        row = next(line for line in table.splitlines() if line.startswith(f"| `{name}` |"))
        used = {key for attributes, _ in found for key in attributes} - {"network.transport"}
        assert used == set(re.findall(r"`([\w.]+)`", row)) - {name}
    del watcher
