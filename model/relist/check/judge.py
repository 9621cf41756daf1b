"""The judge: expectations and a history in, a verdict out. Pure, and the only place that decides.

Order is judged, never the clock. What was not observed is not judged, and what a harness that was
itself too slow may have caused is not held against the client: the verdict is inconclusive.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

from attrs import frozen

from relist.check.expect import Anomaly, Expectation, Severity
from relist.check.frames import misses
from relist.check.history import LIST_METHODS, Event, History, mapping, marked
from relist.check.misses import Miss
from relist.check.seen import Unknown, labels
from relist.check.witness import fewest

__all__ = ["Finding", "Verdict", "judge", "labels", "loud_beliefs"]

LAG_MAX_MS = 1_000
"""By how much a harness may have been late at worst and still call something absent."""

Word = Literal["pass", "warn", "fail", "inconclusive"]


@frozen
class Finding:
    """One expectation that was not met: the rule, the kind of harm, what was seen, and the fewest
    events that show it (``relist.check.witness``)."""

    rule: str
    severity: Severity
    anomaly: Anomaly
    text: str
    witness: tuple[int, ...] = ()


@frozen
class Verdict:
    """The judgement of one run. ``unjudged`` says why an expectation could not be looked at."""

    word: Word
    findings: tuple[Finding, ...] = ()
    unjudged: tuple[str, ...] = ()


def judge(
    expectations: Iterable[Expectation],
    history: History,
    revision: str,
    lag_ms: float = 0,
    *,
    whole: bool = True,
) -> Verdict:
    """Hold a history against expectations, by the rules and severities of the revision under test.

    ``lag_ms`` is by how much the harness was late at worst. Of a run that was broken off, so that
    the history is not ``whole``, nothing is called absent. Raises ``KeyError`` for an expectation
    that says nothing about the revision.
    """
    findings: list[Finding] = []
    unjudged: list[str] = []
    blocked = False
    for expectation in expectations:
        rule = expectation.rule[revision]
        if expectation.given is not None and marked(history, expectation.given) is None:
            unjudged.append(f"{rule}: the run did not come to '{expectation.given}'")
            continue
        try:
            for miss in misses(expectation, history):
                if (miss.absent or expectation.timed) and lag_ms > LAG_MAX_MS:
                    raise Unknown(f"the harness was {round(lag_ms)} ms late")
                if miss.absent and not whole:
                    raise Unknown("the run was broken off")
                witness = fewest(expectation, history, miss)
                findings.append(_finding(expectation, miss, witness, revision))
        except Unknown as unknown:
            unjudged.append(f"{rule}: {unknown.reason}")
            blocked = blocked or unknown.blocking
    return Verdict(_word(findings, blocked), tuple(findings), tuple(unjudged))


def _finding(
    expectation: Expectation, miss: Miss, witness: tuple[int, ...], revision: str
) -> Finding:
    return Finding(
        expectation.rule[revision],
        expectation.severity[revision],
        miss.anomaly or expectation.anomaly,
        miss.text,
        witness,
    )


def _word(findings: Sequence[Finding], blocked: bool) -> Word:
    severities = {finding.severity for finding in findings}
    if severities:
        return "fail" if "fail" in severities else "warn"
    return "inconclusive" if blocked else "pass"


def loud_beliefs(history: History) -> tuple[int, ...]:
    """The list requests that a *believe* seems to have caused (the contract forbids it).

    Only where the driver had said that it is idle, and nothing but the question happened since: all
    else may have a cause of its own.
    """
    loud: list[int] = []
    quiet = asking = False
    for event in history:
        if event.kind == "answer" and event.data.get("op") == "idle":
            quiet = (mapping(event.data.get("ok")) or {}).get("idle") is True
        elif event.kind == "ask" and event.data.get("op") == "believe":
            asking = True
        elif event.kind == "answer" and event.data.get("op") == "believe":
            asking = False
        elif event.kind == "in" and _method(event) in LIST_METHODS.values():
            loud += [event.seq] if quiet and asking else []
        elif event.kind in ("ask", "out", "cut", "close"):
            quiet = False
    return tuple(loud)


def _method(event: Event) -> str:
    return str((event.message or {}).get("method"))
