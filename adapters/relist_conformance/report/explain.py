"""What the cases are: the list of all, one explained, and those that show one rule."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from relist_conformance.errors import ConformanceError, quoted
from relist_conformance.report.table import print_indented, print_sources, strength
from relist_conformance.script import Case


def print_list(console: Console, cases: Sequence[Case]) -> None:
    """A table of all cases: what each is about and what breaking it means, by revision."""
    table = Table()
    table.add_column("case", overflow="fold")  # an id is broken rather than cut: it is to be used
    for heading in ("what it demands", "profile", "level"):
        table.add_column(heading)
    revisions = sorted({revision for case in cases for revision in case.revisions})
    for revision in revisions:
        table.add_column(f"breaking it\n{revision}")
    for case in cases:
        table.add_row(
            Text(case.id),
            Text(case.title),
            case.profile,
            case.level,
            *(
                case.severity[revision] if revision in case.revisions else "-"
                for revision in revisions
            ),
        )
    console.print(table)


def print_explanation(console: Console, cases: Sequence[Case], wanted: str) -> None:
    """Explain one case, or each case that shows a rule. Raises ``ConformanceError`` for neither."""
    chosen = [case for case in cases if wanted in (case.id, *case.rules)]
    if not chosen:
        raise ConformanceError(f"no case and no rule is called {quoted(wanted)}; see 'relist list'")
    for case in chosen:
        breaking = ", ".join(f"{case.severity[rev]} in {rev}" for rev in case.revisions)
        console.print(Text.assemble((case.id, "bold"), "  ", case.title), soft_wrap=True)
        for text in (
            case.text,
            strength(case),
            f"Rules: {', '.join(case.rules)}",
            f"Breaking it: {breaking}. Driver level: {case.level}.",
        ):
            print_indented(console, Text(text))
        print_sources(console, case)
