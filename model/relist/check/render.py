"""The law as people read it: tables, diagrams and SCXML, rendered from the compiled tables.

Pure: values in, text out. Whoever wants files writes them. Nothing here decides anything, and
nothing is said twice: what a guard or an action means is its docstring.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple, get_args

from attrs import frozen

from relist.inputs import CatalogInput, LinkInput, ListenInput
from relist.machine import CATALOG_TABLE, LINK_TABLE, LISTEN_TABLE, Cell, Table
from relist.values import WALKING, LinkPhase, ListenPhase, Phase


@frozen
class Chart:
    """One chart and the order in which it is told: its first phase is the initial one.

    ``groups`` names phases that are drawn as one where they do the same.
    """

    name: str
    title: str
    table: Table
    phases: tuple[Any, ...]
    inputs: tuple[type[Any], ...]
    groups: Mapping[str, tuple[Any, ...]]


CHARTS = (
    Chart(
        "catalog",
        "The catalog: one kind of one server",
        CATALOG_TABLE,
        tuple(Phase),
        get_args(CatalogInput),
        {"walking": WALKING},
    ),
    Chart(
        "link",
        "The link: transport, era, version",
        LINK_TABLE,
        tuple(LinkPhase),
        get_args(LinkInput),
        {"asking": (LinkPhase.PROBING, LinkPhase.HANDSHAKING)},
    ),
    Chart(
        "listen",
        "The listen channel: what carries notices",
        LISTEN_TABLE,
        tuple(ListenPhase),
        get_args(ListenInput),
        {},
    ),
)


class Line(NamedTuple):
    """One row of a chart, for all the phases that share it. ``to`` is empty for staying."""

    heard: type[Any]
    phases: tuple[Any, ...]
    guard: str
    to: str
    action: str
    because: str


def event_of(heard: type[Any]) -> str:
    """The chart's name of an input class: ListChangedHeard is ``list_changed_heard``."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in heard.__name__).lstrip("_")


def lines(chart: Chart) -> Iterator[Line]:
    """Every row of every cell; phases share the rows in which they do the same."""
    for heard in chart.inputs:
        alike: dict[tuple[str, str, str, str], list[Any]] = {}
        for phase in chart.phases:
            cell = chart.table[heard][phase]
            for row in _rows(cell, phase):
                alike.setdefault((*row, cell.because), []).append(phase)
        for (guard, to, action, because), phases in alike.items():
            yield Line(heard, tuple(phases), guard, to, action, because)


def _rows(cell: Cell, phase: Any) -> tuple[tuple[str, str, str], ...]:
    return tuple(
        (guard, "" if target == phase.value else target, action)
        for guard, target, action in cell.names
    )


# --- Markdown -------------------------------------------------------------------------------------


def words(name: str) -> str:
    """A name as it is said: ``list_changed_heard`` is list changed heard."""
    return name.replace("_", " ")


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; cells are escaped as far as a table needs it."""
    told = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in (head, *rows)]
    told.insert(1, ["---"] * len(head))
    return "\n".join(f"| {' | '.join(row)} |" for row in told) + "\n"


def rows_table(chart: Chart) -> str:
    """All rows of a chart, defaults with their reasons."""
    return markdown_table(
        ("heard", "in", "if", "go to", "do", "a default, because"),
        [
            (
                words(event_of(line.heard)),
                ", ".join(phase.name for phase in line.phases),
                _code(line.guard),
                line.to.upper() or "=",
                _code(line.action),
                line.because,
            )
            for line in lines(chart)
        ],
    )


def _code(name: str) -> str:
    return f"`{name}`" if name else ""


def overview_table(chart: Chart) -> str:
    """Inputs by phases: where each cell may lead; ``=`` stays, ``·`` is a default."""
    return markdown_table(
        ("heard", *(phase.name for phase in chart.phases)),
        [
            (
                words(event_of(heard)),
                *(_ways(chart.table[heard][phase], phase) for phase in chart.phases),
            )
            for heard in chart.inputs
        ],
    )


def _ways(cell: Cell, phase: Any) -> str:
    if cell.because:
        return "·"
    return ", ".join(dict.fromkeys(to.upper() or "=" for _, to, _ in _rows(cell, phase)))


def rules_table(chart: Chart) -> str:
    """What each guard and action of a chart means, and the requirements it serves."""
    told: dict[tuple[str, str], tuple[str, str]] = {}
    for heard, phase in product(chart.inputs, chart.phases):
        cell = chart.table[heard][phase]
        for row, (guard, _, action) in zip(cell.rows, cell.names, strict=True):
            if row.guard is not None:
                told["guard", guard] = split_rule(row.guard)
            told["action", action or row.action.__name__] = split_rule(row.action)
    return markdown_table(
        ("", "name", "what it is", "rules"),
        [(sort, _code(name), *said) for (sort, name), said in sorted(told.items(), reverse=True)],
    )


def split_rule(rule: Callable[..., object]) -> tuple[str, str]:
    """The docstring of a rule in one line, and the requirement ids that it names."""
    text = " ".join((rule.__doc__ or "").split())
    said, _, rest = text.partition("Rule: ")
    rules, _, more = rest.partition(".")
    return f"{said}{more.strip()}".strip(), rules


# --- Mermaid --------------------------------------------------------------------------------------


def mermaid(chart: Chart) -> str:
    """A state diagram: edges that change the phase. What comes from nearly everywhere is a note."""
    edges: dict[tuple[str, str], dict[str, None]] = {}
    notes: dict[str, list[str]] = {}
    for heard, to in product(chart.inputs, chart.phases):
        sources = {
            phase: guards for phase in chart.phases if (guards := _guards(chart, heard, phase, to))
        }
        if 2 * len(sources) > len(chart.phases):
            guards = next(iter(sources.values()))
            notes.setdefault(to.value, []).append(
                f"{_label(heard, guards)} {_from(chart, sources, to)}"
            )
            sources = {phase: sources[phase] for phase in chart.phases[:1] if phase in sources}
        for source, guards in _grouped(chart, sources, to):
            edges.setdefault((source, to.value), {})[_label(heard, guards)] = None
    drawn = ["stateDiagram-v2", f"    [*] --> {chart.phases[0].value}"]
    for group, members in chart.groups.items():
        drawn += [f"    state {group} {{", *(f"        {m.value}" for m in members), "    }"]
    drawn += [f"    {a} --> {b}: {', '.join(labels)}" for (a, b), labels in edges.items()]
    drawn += [f"    note left of {to}: {' or '.join(said)}" for to, said in notes.items()]
    return "\n".join(drawn) + "\n"


def _label(heard: type[Any], guards: tuple[str, ...]) -> str:
    label = words(event_of(heard))
    return label if guards == ("",) else f"{label} [{' or '.join(map(words, guards))}]"


def _guards(chart: Chart, heard: type[Any], phase: Any, to: Any) -> tuple[str, ...]:
    """The guards under which hearing this leads from the phase to another one."""
    if phase is to:
        return ()
    return tuple(guard for guard, way, _ in chart.table[heard][phase].names if way == to.value)


def _grouped(
    chart: Chart, sources: Mapping[Any, tuple[str, ...]], to: Any
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The sources of one edge; a group instead of its members if they all do the same."""
    left = dict(sources)
    for group, members in chart.groups.items():
        ways = {left.get(member) for member in members}
        if to not in members and len(ways) == 1 and None not in ways:
            yield group, left[members[0]]
            left = {phase: guards for phase, guards in left.items() if phase not in members}
    for phase, guards in left.items():
        yield phase.value, guards


def _from(chart: Chart, sources: Mapping[Any, object], to: Any) -> str:
    others = [phase for phase in chart.phases if phase not in sources and phase is not to]
    if not others:
        return "(from any other phase)"
    return f"(from all but {', '.join(phase.value for phase in others)})"


# --- SCXML ----------------------------------------------------------------------------------------


def scxml(chart: Chart) -> str:
    """The chart as W3C SCXML. Staying is a transition without a target, an action a log entry.

    Guards are names, to be bound by whoever runs it. Defaults are there as well, with their reason.
    """
    told = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0" datamodel="python"',
        f'       name="{chart.name}" initial="{chart.phases[0].value}">',
    ]
    for phase in chart.phases:
        told.append(f'  <state id="{phase.value}">')
        for heard in chart.inputs:
            told += _transitions(chart.table[heard][phase], event_of(heard), phase)
        told.append("  </state>")
    return "\n".join([*told, "</scxml>"]) + "\n"


def _transitions(cell: Cell, event: str, phase: Any) -> Iterator[str]:
    if cell.because:
        yield f"    <!-- {cell.because.replace('--', '-')} -->"
    for guard, to, action in _rows(cell, phase):
        cond = f' cond="{guard}"' if guard else ""
        target = f' target="{to}"' if to else ""
        what = action or "nothing"
        yield (
            f'    <transition event="{event}"{cond}{target}>'
            f'<log label="do" expr="\'{what}\'"/></transition>'
        )
