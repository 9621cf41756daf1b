"""The bars, and the verdict on each, printed after the benchmarks.

Verdicts go by the least times, which are what the machine can do undisturbed. The ratio of medians
stands beside: what is far from the other was measured on a busy machine.
"""

from typing import NamedTuple

import pytest
from pytest_benchmark.fixture import BenchmarkFixture


class Sample(NamedTuple):
    """What was measured: the least and the median, in any unit."""

    least: float
    median: float


class Bar(NamedTuple):
    """``over`` may be at most ``limit`` times ``under`` (``at_least``: must be)."""

    what: str
    over: str
    under: str
    limit: float
    at_least: bool = False


BARS = (
    Bar("a step, to a bare table with a frozen constructor", "step", "bare", 3),
    Bar("python-statemachine's engine, to a step", "engine", "step", 25, at_least=True),
    Bar("a read, to an empty call", "read", "empty", 12),
    Bar("10,000 items walked, to decoding them by orjson", "walk", "decode", 0.10),
    Bar("walked again and nothing changed, to the same", "rewalk", "decode", 0.30),
    Bar("an item among 100,000, to one among 1,000", "item of 100000", "item of 1000", 1.5),
    Bar("peak memory, to the bytes of the items", "peak", "items", 3),
    Bar("import beyond attrs and python-statemachine, ms", "import", "1 ms", 40),
    Bar("get and parsed items, to the SDK's cached lists", "get", "cached", 1),
    Bar("notice to published, to a listing of the SDK", "renewal", "listing", 1.25),
    Bar("canonical form and differences, to that walk", "judging", "renewal", 0.15),
    Bar("a notice, to one that the SDK's user ignores", "notice", "unhandled", 1.5),
    Bar("a notice, to one that the SDK ignores", "notice", "unknown", 1.5),
    Bar("an idle catalog in the core, bytes", "idle in the core", "1 byte", 1_024),
    Bar("the same alive, beyond the SDK's session, bytes", "idle alive", "1 byte", 4_096),
    Bar("timers of 10,000 idle catalogs", "timers", "1 timer", 1),
    Bar("10,000 tools seen again, to digesting them once", "seen again", "digest", 2),
    Bar("one of them changed, to rfc8785 of all", "one changed", "rfc8785", 0.05),
    Bar("what drift keeps of them, to their bytes", "drift kept", "drift raw", 4),
)

MEASURED = pytest.StashKey[dict[str, Sample]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[MEASURED] = dict.fromkeys(("1 ms", "1 byte", "1 timer"), Sample(1, 1))


@pytest.fixture
def measured(pytestconfig: pytest.Config) -> dict[str, Sample]:
    """Where a benchmark leaves what it found, by name."""
    return pytestconfig.stash[MEASURED]


def timed(benchmark: BenchmarkFixture, per: int = 1) -> Sample:
    """The benchmark that has just run, for one of ``per`` things that it did."""
    assert benchmark.stats is not None
    stats = benchmark.stats.stats
    return Sample(stats.min / per, stats.median / per)


def verdicts(measured: dict[str, Sample]) -> list[tuple[str, ...]]:
    """A line for each bar: what, the bar, the ratios of least times and of medians, the verdict."""
    lines: list[tuple[str, ...]] = []
    for bar in BARS:
        if not {bar.over, bar.under} <= set(measured):
            continue
        over, under = measured[bar.over], measured[bar.under]
        median, least = over.median / under.median, over.least / under.least
        met = least >= bar.limit if bar.at_least else least <= bar.limit
        sign = ">=" if bar.at_least else "<="
        lines.append(
            (
                bar.what,
                f"{sign} {bar.limit:g}",
                f"{least:.3g}",
                f"{median:.3g}",
                "met" if met else "MISSED",
            )
        )
    return lines


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    lines = [("ratio", "bar", "least", "medians", ""), *verdicts(config.stash[MEASURED])]
    terminalreporter.section("bars")
    for what, *rest in lines:
        terminalreporter.write_line(f"{what:<50}" + "".join(f"{cell:>10}" for cell in rest))
