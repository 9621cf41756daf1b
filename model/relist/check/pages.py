"""The generated pages of the specification, as text: tables, reads, invariants.

Pure: values in, text out. Whoever wants files writes them.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import product

from attrs import evolve

from relist.check.drift import DRIFT
from relist.check.invariants import ALWAYS
from relist.check.isolation import ISOLATED
from relist.check.joined import LINK_ALWAYS, LISTEN_ALWAYS
from relist.check.render import (
    CHARTS,
    markdown_table,
    mermaid,
    overview_table,
    rows_table,
    rules_table,
    split_rule,
)
from relist.machine import read
from relist.values import Catalog, Doubt, Kind, Phase, Scope, Snapshot, new_catalog


def state_machine_page(regenerate: str) -> str:
    """The page with the tables and diagrams of all three charts; it says how it is renewed."""
    told = [
        "# State machine\n",
        f"<!-- generated: {regenerate} -->\n",
        "Generated from the compiled tables of `relist.machine`, which are compiled from"
        " `model/relist/charts.py`. That file is the law; this page shows every cell of it. A row"
        " reads: when this is *heard* *in* that phase, and the guard (*if*) holds, *do* the action"
        " and *go to* the phase; `=` means stay. The guards of one cell exclude each other and"
        " leave nothing out. Each chart is there as SCXML too:"
        f" {', '.join(f'[{c.name}](charts/{c.name}.scxml)' for c in CHARTS)}."
        " What the phases mean stands in the [glossary](README.md#glossary), what is heard in"
        " `model/relist/inputs.py`.\n",
    ]
    for chart in CHARTS:
        cells = [chart.table[heard][phase] for heard in chart.inputs for phase in chart.phases]
        defaults = sum(bool(cell.because) for cell in cells)
        told += [
            f"## {chart.title}\n",
            f"{len(chart.phases)} phases, {len(chart.inputs)} inputs, {len(cells)} cells:"
            f" {len(cells) - defaults} declared, {defaults} defaults.\n",
            f"```mermaid\n{mermaid(chart)}```\n",
            "Steps that stay in their phase are not drawn. Where each cell may lead"
            " (`=` stays, `·` is a default):\n",
            overview_table(chart),
            f"### All rows of {chart.name}\n",
            rows_table(chart),
            f"### Guards and actions of {chart.name}\n",
            rules_table(chart),
        ]
    return "\n".join(told)


_HELD = Snapshot(
    items=(),
    generation=1,
    scope=Scope.PUBLIC,
    version="",
    partition="",
    epoch=1,
    walk=1,
    listed_at_ms=0,
    expires_at_ms=None,
    clean=True,
    ambiguous=frozenset(),
)
_NOW_MS = 10
_LISTS: Mapping[str, Snapshot | None] = {
    "none": None,
    "no deadline": _HELD,
    "deadline ahead": evolve(_HELD, expires_at_ms=_NOW_MS + 1),
    "deadline now": evolve(_HELD, expires_at_ms=_NOW_MS),
    "deadline past": evolve(_HELD, expires_at_ms=_NOW_MS - 1),
}


def excluded(catalog: Catalog) -> str | None:
    """The invariant that keeps this combination of phase, list and doubt from being reached."""
    listed = catalog.snapshot is not None
    if catalog.phase is Phase.UNSUPPORTED and listed:
        return "gated-by-capability"
    if catalog.phase is Phase.FRESH and (not listed or catalog.doubt is not None):
        return "fresh-is-undoubted"
    return None


def read_table() -> str:
    """What ``read`` finds for every phase, list, lifetime and doubt, by asking it."""
    doubts: tuple[Doubt | None, ...] = (None, *Doubt)
    rows: list[tuple[str, ...]] = []
    for phase, (name, snapshot) in product(Phase, _LISTS.items()):
        empty = evolve(new_catalog(Kind.TOOLS), phase=phase, snapshot=snapshot)
        found: list[str] = []
        for doubt in doubts:
            catalog = evolve(empty, doubt=doubt)
            hit = read(catalog, _NOW_MS).hit.value
            found.append(f"({hit})" if excluded(catalog) else hit)
        rows.append((phase.name, name, *found))
    return markdown_table(
        ("phase", "list", "no doubt", *(doubt.name for doubt in Doubt)),
        rows,
    )


def read_page(regenerate: str) -> str:
    """The page about reads."""
    return "\n".join(
        [
            "# What a read finds\n",
            f"<!-- generated: {regenerate} -->\n",
            "`read(catalog, now_ms)` looks and changes nothing: it begins no walk and sends no"
            " request. What it finds depends on the phase, on whether a list is held, on its"
            " deadline and on its doubt, and on nothing else. This table was made by asking it"
            " for every combination.\n",
            "| found | the reader gets | doubt | age |\n| --- | --- | --- | --- |\n"
            "| hit | the list | none | since the walk ended |\n"
            "| expired | the list | none | since the walk ended |\n"
            "| doubted | the list | why | since the walk ended |\n"
            "| miss | nothing: never listed is not empty | why, if any | none |\n"
            "| unsupported | nothing: the server does not have this kind | none | none |\n",
            "Doubt outranks expiry. A lifetime is over at its deadline, not after it (TTL-02)."
            " Whether a list is marked clean or spoiled makes no difference to what is found: a"
            " spoiled one is always doubted. In parentheses: cannot happen, since FRESH holds a"
            " list without a doubt (`fresh-is-undoubted`) and UNSUPPORTED holds none"
            " (`gated-by-capability`).\n",
            read_table(),
        ]
    )


Check = Callable[..., object]
CHECKS: Mapping[str, tuple[str, Mapping[str, Check]]] = {
    "one catalog": ("every environment", ALWAYS),
    "one session": ("every environment", ISOLATED),
    "one link": ("every environment", LINK_ALWAYS),
    "one channel for notices": ("every environment", LISTEN_ALWAYS),
    "one ledger of drift": ("every environment", DRIFT),
}
"""The named checks by what they look at, and the environment in which they hold."""


IN_THE_WORLD: Mapping[str, tuple[str, str]] = {
    "no-regression": (
        "No published list shows anything older than what the list before it showed.",
        "any",
    ),
    "freshness": (
        "What is FRESH and vouched for is what the server lists now, or something that says"
        " otherwise (a notice, the end of push, a cut) is on the wire or owed.",
        "no notice is lost while connected",
    ),
    "never-torn": (
        "What is FRESH and vouched for shows one moment of the server, not pages of several.",
        "answers and notices share one ordered stream, and a change is announced with it",
    ),
    "recovers": (
        "When the server is quiet and answers in time, the client comes to an undoubted list and"
        " keeps it; unless it is parked or the kind is unsupported.",
        "any",
    ),
    "converges": (
        "The same, and the list is what the server lists.",
        "no notice is lost while connected, or lists expire and somebody reads",
    ),
}
"""What depends on what the wire does: promise and environment, by name. Checked by worlds."""


def invariants_page(
    regenerate: str, all_in: Mapping[str, Sequence[str]], named_in: Mapping[str, Sequence[str]]
) -> str:
    """The page about invariants.

    ``all_in``: the test files that check all of a family, by what it looks at; ``named_in``: those
    that name one, by its name, because they break it on purpose or look for it alone.
    """
    told = [
        "# Invariants\n",
        f"<!-- generated: {regenerate} -->\n",
        "What must hold of every step, whatever the peer says and whatever the wire loses,"
        " repeats, delays or reorders. Each is one pure function over one edge: what was, what was"
        " heard, what became of it, what was asked for. All tests share these functions. Rule ids"
        " are those of the requirements.\n",
    ]
    for about, (environment, checks) in CHECKS.items():
        told += [
            f"## Of {about}, in {environment}\n",
            f"All are used by: {_files(all_in.get(about, ()))}.\n",
            markdown_table(
                ("name", "promise", "rules", "named in"),
                [
                    (f"`{name}`", *split_rule(check), _files(named_in.get(name, ())))
                    for name, check in checks.items()
                ],
            ),
        ]
    told += [
        "## Of a client and its server, by environment\n",
        "These speak of what the server lists, so a world with a server is needed to check them."
        " Without any promise about the wire only the last good list, a lifetime or a new"
        " connection helps.\n",
        markdown_table(
            ("name", "promise", "environment", "named in"),
            [
                (f"`{name}`", promise, environment, _files(named_in.get(name, ())))
                for name, (promise, environment) in IN_THE_WORLD.items()
            ],
        ),
    ]
    return "\n".join(told)


def _files(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
