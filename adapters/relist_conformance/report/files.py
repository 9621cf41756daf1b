"""The files that a run can write, all from the same reports."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from attrs import frozen

from relist_conformance.errors import must_be_writable
from relist_conformance.report.data import as_json
from relist_conformance.report.html import as_html
from relist_conformance.report.junit import as_junit
from relist_conformance.report.markdown import as_markdown
from relist_conformance.report.model import Report
from relist_conformance.report.sarif import as_sarif

Write = Callable[[Sequence[Report]], str]

KINDS: Mapping[str, tuple[str, Write]] = {
    "json": ("JSON", lambda reports: as_json(reports[0])),
    "junit": ("JUnit", as_junit),
    "sarif": ("SARIF", as_sarif),
    "markdown": ("Markdown", as_markdown),
    "html": ("HTML", as_html),
}
"""By option: what it is called, and what makes it."""


@frozen
class Wanted:
    """Which files are wanted: by option, where."""

    paths: Mapping[str, Path]

    def check(self) -> None:
        """Raises ``ConformanceError`` for a file that cannot be written."""
        for option, path in self.paths.items():
            must_be_writable(path, f"{KINDS[option][0]} file")

    def write(self, reports: Sequence[Report]) -> None:
        """Write them all."""
        for option, path in self.paths.items():
            path.write_text(KINDS[option][1](reports), encoding="utf-8", newline="\n")
