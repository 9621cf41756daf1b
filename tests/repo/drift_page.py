"""The generated page about what changes of a definition are, and what becomes of them."""

import json
from collections.abc import Mapping
from typing import Any

import yaml

from relist.check.render import markdown_table
from repo.requirements import DATA

TABLE: Mapping[str, Any] = yaml.safe_load((DATA / "drift.yaml").read_text())


def drift_page(regenerate: str) -> str:
    """The page; it says how it is renewed."""
    follows = ", ".join(f"*{name}*" for name in TABLE["reader_follows"])
    told = [
        "# Drift\n",
        f"<!-- generated: {regenerate} -->\n",
        "What a changed definition is, and what becomes of it, row by row of"
        " [`drift.yaml`](relist_specs/drift.yaml); each is a test"
        " (`tests/adapters/test_drift_table.py`)."
        " *strict* is a profile that follows nothing, *reader* one whose host judged the item"
        f" harmless and follows {follows}. *quiet*: nothing happens. *follow*: the policy lets it"
        " through. *review*: it leaves the surface until a person has decided. *unresolved*: it is"
        " gone, and the wish stays. *rebind*: so, and something else looks like it; only a person"
        " binds.\n",
    ]
    for subject, base in TABLE["bases"].items():
        rows = [row for row in TABLE["rows"] if row["subject"] == subject]
        told += [
            f"## {subject.capitalize()}\n",
            f"Laid over `{_json(base)}`.\n",
            markdown_table(
                ("what", "before", "after", "classes", "strict", "reader", "source"),
                [
                    (
                        row["name"],
                        _shown(row.get("before", {})),
                        _shown(row["after"]),
                        ", ".join(row["classes"]) or "none",
                        row["strict"],
                        row["reader"],
                        ", ".join(row["source"]),
                    )
                    for row in rows
                ],
            ),
        ]
    return "\n".join(told)


def _shown(over: Mapping[str, Any] | None) -> str:
    if over is None:
        return "*gone*"
    return f"`{_json(over)}`" if over else "as the base"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=True)
