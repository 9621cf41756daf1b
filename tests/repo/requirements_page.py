"""The generated page about the requirements, as text."""

from collections.abc import Iterable, Iterator, Mapping
from textwrap import shorten

from relist.check.pages import CHECKS
from relist.check.render import markdown_table
from repo.requirements import (
    CLIENT,
    DECIDED,
    MODEL,
    REQUIREMENTS,
    ROOT,
    ROWS,
    Place,
    Row,
    can_be_played,
    deciding,
    family,
    judging,
    must_be_decided,
    records,
    showing,
    treating,
)

TEXT_MAX = 140  # characters of a requirement; the data has all of it
INVARIANTS = {name for _, checks in CHECKS.values() for name in checks}


def requirements_page(regenerate: str) -> str:
    """The page; it says how it is renewed."""
    decided, shown, treated, judged = deciding(), showing(), treating(), judging()
    told = [
        "# Requirements\n",
        f"<!-- generated: {regenerate} -->\n",
        "What the specification and five articles ask of a client, and of a server whose lists"
        " change, and where it is decided here."
        " The rows are data: [`requirements.yaml`](relist_specs/requirements.yaml) has their whole"
        " text, their sources and what the columns mean. A row is decided by the code that cites"
        " its id, by a decision record, or it is excluded with its reason; a test fails when a row"
        " is decided in no way or in two. Names under *shown by* are invariants, tests and"
        " dialogues that cite the row.\n",
        "*level* is what must be seen to judge a client: its traffic (`wire`), its traffic when"
        " something tells it to act (`wire+act`), its own reports (`driver`), or both. *judged by*"
        " are the cases of the suite. A row whose breach the traffic shows has a case, or its"
        " reason stands there; a test fails when both or none is the case. Permissions and duties"
        " of servers have no case: nobody is judged by them.\n",
        _sums(decided, judged),
    ]
    for letters in DECIDED:
        told += [
            f"## {letters}: {REQUIREMENTS['families'][letters]}\n",
            markdown_table(
                ("id", "requirement", "strength", "decided", "shown by", "level", "judged by"),
                [
                    (
                        rule,
                        shorten(row["text"], TEXT_MAX, placeholder=" …"),
                        " of the ".join(filter(None, (row["strength"], row.get("obliges")))),
                        _how(row, decided.get(rule, ()), treated.get(rule, ())),
                        ", ".join(_shown(shown.get(rule, ()))),
                        row["wire"],
                        row.get("unplayed")
                        or ", ".join(f"`{one}`" for one in judged.get(rule, ())),
                    )
                    for rule, row in ROWS.items()
                    if family(rule) == letters
                ],
            ),
        ]
    others = [letters for letters in REQUIREMENTS["families"] if letters not in DECIDED]
    told += [
        "## The other families\n",
        "Duties of suites, and what later issues decide. Only the data has them.\n",
        markdown_table(
            ("family", "about", "rows"),
            [
                (name, REQUIREMENTS["families"][name], str(sum(family(r) == name for r in ROWS)))
                for name in others
            ],
        ),
    ]
    return "\n".join(told)


def _sums(decided: Mapping[str, Iterable[Place]], judged: Mapping[str, list[str]]) -> str:
    rows = {rule: row for rule, row in ROWS.items() if must_be_decided(rule)}
    excluded = [row["excluded"]["because"] for row in rows.values() if "excluded" in row]
    parts = [
        f"{len(rows)} rows",
        f"{sum(rule in decided for rule in rows)} decided by code",
        f"{sum('decision' in row for row in rows.values())} by a decision record alone",
        *(f"{excluded.count(why)} excluded ({why})" for why in dict.fromkeys(sorted(excluded))),
        f"{sum('open' in row for row in rows.values())} open",
    ]
    seen = [rule for rule, row in rows.items() if can_be_played(rule, row)]
    cases = sum(rule in judged for rule in seen)
    others = sum(rule in judged for rule in rows) - cases
    return (
        f"{', '.join(parts)}. Of {len(seen)} rows whose breach the traffic shows {cases} are judged"
        f" by a case, {len(seen) - cases} say why not; {others} of the other rows are, too.\n"
    )


def _how(row: Row, places: Iterable[Place], treated: Iterable[str]) -> str:
    numbers = [row["decision"]] if "decision" in row else treated
    links = [f"[{number}](decisions/{records()[number].name})" for number in numbers]
    if "excluded" in row:
        because = row["excluded"]["because"]
        issue = row["excluded"].get("issue")
        where = f"{because}, issue {issue}" if issue else because
        return f"excluded ({where}): {row['excluded']['why']}"
    if "open" in row:
        return f"open: {row['open']}"
    return "; ".join((*_by_file(places), *links))


def _by_file(places: Iterable[Place]) -> Iterator[str]:
    names: dict[str, list[str]] = {}
    for path, name in places:
        base = MODEL if path.is_relative_to(MODEL) else CLIENT.parent
        names.setdefault(path.relative_to(base).as_posix(), []).append(name)
    for file, named in names.items():
        inside = ", ".join(f"`{name}`" for name in named if name)
        yield f"`{file}`: {inside}" if inside else f"`{file}`"


def _shown(places: Iterable[Place]) -> Iterator[str]:
    """Invariants by their names, all else by file."""
    told: dict[str, None] = {}
    for path, name in places:
        invariant = name.replace("_", "-")
        if invariant in INVARIANTS:
            told[f"[`{invariant}`](invariants.md)"] = None
        else:
            file = path.relative_to(ROOT).as_posix()
            told[f"`{file.removeprefix('tests/').removeprefix('specs/relist_specs/')}`"] = None
    yield from told


def _names(cases: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in cases)
