"""``relist report``: results that were written before, as one page or document. Its options, too.

Imports that cost time happen in the command. Exit codes: 0, or 2 where a file is no result.
"""

from pathlib import Path
from typing import Annotated

import typer

from relist_conformance.commands import console_of, one_line_errors
from relist_conformance.errors import ConformanceError

Junit = Annotated[Path | None, typer.Option(metavar="FILE", help="Also write JUnit XML.")]
Sarif = Annotated[Path | None, typer.Option(metavar="FILE", help="Also write SARIF 2.1.0.")]
Markdown = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Also write a summary in Markdown.")
]
Html = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Also write one HTML file, with diagrams.")
]
BaselineFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Findings that are known (YAML); a stale entry fails."),
]


def chosen(**paths: Path | None) -> dict[str, Path]:
    """The files that are wanted, by option."""
    return {option: path for option, path in paths.items() if path is not None}


def report(
    results: Annotated[list[Path], typer.Argument(metavar="RESULT...", help="Files of --json.")],
    junit: Junit = None,
    sarif: Sarif = None,
    markdown: Markdown = None,
    html: Html = None,
) -> None:
    """Put the results of several runs together, one block for each client."""
    with one_line_errors():
        from relist_conformance.report.data import read_report
        from relist_conformance.report.files import Wanted
        from relist_conformance.report.table import counted

        wanted = Wanted(chosen(junit=junit, sarif=sarif, markdown=markdown, html=html))
        if not wanted.paths:
            raise ConformanceError("nothing to write: give --junit, --sarif, --markdown or --html")
        wanted.check()
        reports = [read_report(path) for path in results]
        wanted.write(reports)
        for one in reports:
            console_of().print(counted(one), soft_wrap=True)
