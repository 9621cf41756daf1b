"""What the cases are: the list of all, one explained, and those that show one rule."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from relist_conformance.errors import ConformanceError, quoted
from relist_conformance.report.model import Requirement
from relist_conformance.report.requirements import requirements, why_unplayed
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
    """Explain one case, or a rule and each case that shows it.

    Raises ``ConformanceError`` for neither.
    """
    chosen = [case for case in cases if wanted in (case.id, *case.rules)]
    rule = requirements([wanted]).get(wanted)
    if not chosen and rule is None:
        raise ConformanceError(f"no case and no rule is called {quoted(wanted)}; see 'relist list'")
    if rule is not None:
        _print_rule(console, rule, judged=bool(chosen))
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
        print_sources(console, case.source)


def _print_rule(console: Console, rule: Requirement, *, judged: bool) -> None:
    console.print(Text.assemble((rule.id, "bold"), "  ", rule.strength), soft_wrap=True)
    print_indented(console, Text(rule.text))
    if not judged:
        why = why_unplayed(rule.id) or "a breach does not show in the traffic, or is no fault."
        print_indented(console, Text(f"No case judges it: {why}"))
    print_sources(console, rule.sources)
