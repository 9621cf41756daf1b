"""What all reports are drawn from: one run against one client, as values.

A report is made from the results of a run (``data.py``) or read from a file that ``--json`` wrote.
Texts of a client are kept as they came: whoever shows them bounds and escapes them.
"""

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from relist.check.deviation import Deviation
from relist.check.expect import Severity
from relist.check.history import Event, History
from relist_conformance.baseline import worst
from relist_conformance.driver import Hello
from relist_conformance.runner import Word
from relist_conformance.script import Source

WORDS: tuple[Word, ...] = (
    "pass",
    "warn",
    "fail",
    "inconclusive",
    "not_applicable",
    "untestable",
    "harness",
)
"""In the order in which a summary counts them."""

_GRAVITY: tuple[Word, ...] = (
    "not_applicable",
    "untestable",
    "pass",
    "inconclusive",
    "warn",
    "fail",
    "harness",
)


@frozen
class Requirement:
    """A rule: its text in our words, how strongly it is put, and the pages that say so."""

    id: str
    text: str
    strength: str
    sources: tuple[Source, ...] = ()

    @property
    def url(self) -> str:
        """The first page that can be opened, empty if none can."""
        return next((source.url for source in self.sources if source.url), "")


@frozen
class CaseInfo:
    """What a case demands and who says so. ``judged``: the rules it judges, by revision."""

    id: str
    title: str
    text: str
    profile: str
    rules: tuple[str, ...]
    judged: Mapping[str, tuple[str, ...]]
    strength: Mapping[str, str]
    severity: Mapping[str, str]
    sources: tuple[Source, ...]


@frozen
class Found:
    """A finding. ``known``: why a baseline excuses it; ``anomaly``: what kind of harm it is."""

    rule: str
    severity: Severity
    text: str
    witness: tuple[int, ...] = ()
    anomaly: str = ""
    known: str = ""


@frozen
class CellResult:
    """The verdict on one case on one transport in one revision.

    ``history`` is kept where the cell did not pass. ``deviation`` is where the client first left
    what the reference machine allows, as far as that explains findings. Times in milliseconds, None
    when unknown.
    """

    case: str
    transport: str
    revision: str
    verdict: Word
    plays: int
    elapsed_ms: int
    client_start_ms: int | None
    lag_ms: float | None
    reason: str = ""
    findings: tuple[Found, ...] = ()
    history: History = ()
    deviation: Deviation | None = None

    @property
    def where(self) -> str:
        """Transport and revision as one text for people."""
        return f"{self.transport} {self.revision}"

    @property
    def excused(self) -> bool:
        """Whether there are findings, and a baseline knows all of them."""
        return bool(self.findings) and all(one.known for one in self.findings)

    @property
    def counted(self) -> Word:
        """The verdict without what is known: what the exit code goes by."""
        if not any(one.known for one in self.findings):
            return self.verdict
        return worst(one.severity for one in self.findings if not one.known)

    def events(self, finding: Found) -> tuple[Event, ...]:
        """The events that show a finding, as far as the history holds them."""
        return tuple(event for event in self.history if event.seq in finding.witness)


@frozen
class Report:
    """One run against one client. ``faults``: what is wrong with the baseline, one line each."""

    relist: str
    options: Mapping[str, Any]
    driver: Hello
    timing: Mapping[str, Any]
    rules: Mapping[str, Requirement]
    cases: Mapping[str, CaseInfo]
    results: tuple[CellResult, ...]
    faults: tuple[str, ...] = field(default=())

    @property
    def client(self) -> str:
        """Name and version of the client, as its driver told them."""
        return f"{self.driver.name} {self.driver.version}"

    @property
    def strict(self) -> bool:
        """Whether warnings and what could not be tested count as failures."""
        return self.options.get("strict") is True

    @property
    def summary(self) -> Mapping[Word, int]:
        """How often each verdict was given."""
        return {word: sum(one.verdict == word for one in self.results) for word in WORDS}

    def word_on(self, rule: str, result: CellResult) -> Word | None:
        """What a cell says about one of its rules; None where only another rule was broken."""
        if rule not in self.cases[result.case].judged.get(result.revision, ()):
            return None
        if not result.findings:
            return result.verdict
        mine: list[Severity] = [one.severity for one in result.findings if one.rule == rule]
        return worst(mine) if mine else None


def gravity(word: Word | None) -> int:
    """How much a verdict matters, beside others; none at all matters least."""
    return -1 if word is None else _GRAVITY.index(word)
