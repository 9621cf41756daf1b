"""The cases as pytest tests: run this module with ``--pyargs``, or import its test into a file."""

import warnings
from collections.abc import Callable, Iterable, Sequence

import pytest

from relist_conformance.runner import Cell, Result


class RelistWarning(UserWarning):
    """A client did not do what a case only recommends."""


def test_client(
    relist_cells: Sequence[Cell],
    relist_run: Callable[[Sequence[Cell]], tuple[Result, ...]],
    relist_conclude: Callable[[Sequence[Result]], None],
) -> None:
    """One case, on all transports and in all revisions that the driver offers."""
    relist_conclude(relist_run(relist_cells))


def conclude(results: Iterable[Result], *, strict: bool = False) -> None:
    """Say of the results of one case what pytest says.

    Failed is what failed, what could not be told twice, and what the harness did wrong; with
    ``strict`` a warning, too, which otherwise is a ``RelistWarning``. Skipped is a case of which
    nothing could be tested or nothing applied.
    """
    by_word: dict[str, list[Result]] = {}
    for result in results:
        by_word.setdefault(result.word, []).append(result)
    failing = ("harness", "fail", "inconclusive", *(("warn",) if strict else ()))
    if failed := [line for word in failing for line in _lines(by_word.get(word, []))]:
        pytest.fail("\n".join(failed), pytrace=False)
    for line in _lines(by_word.get("warn", [])):
        warnings.warn(RelistWarning(line), stacklevel=2)
    if not by_word.keys() & {"pass", "warn"}:
        skipped = [*by_word.get("untestable", []), *by_word.get("not_applicable", [])]
        pytest.skip("; ".join(dict.fromkeys(result.observed.reason for result in skipped)))


def _lines(results: Iterable[Result]) -> list[str]:
    """One line for each finding, or for the reason where there is none."""
    return [
        f"{result.word}: {result.cell.case.id} on {result.cell.where}: {why}"
        for result in results
        for why in [f"{one.rule}: {one.text}" for one in result.observed.findings]
        or [result.observed.reason]
    ]
