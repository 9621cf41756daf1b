"""The rules that reports speak of: text, strength and links, from ``requirements.yaml``."""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from relist_conformance.report.model import Requirement
from relist_conformance.script import Source

_HEADING = " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} "
# The data is ours; the parser in C reads it in a tenth of the time, where it is there.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def requirements(wanted: Collection[str]) -> Mapping[str, Requirement]:
    """Those rules, in the order of the data. What is not there, such as one's own, is left out."""
    return {name: rule for name, rule in _all().items() if name in wanted}


def why_unplayed(rule: str) -> str:
    """Why no case judges this rule, as far as its row says so."""
    rows: Sequence[Mapping[str, Any]] = _raw()["rows"]
    why: str = next((row.get("unplayed", "") for row in rows if row["id"] == rule), "")
    return " ".join(why.split())


@cache
def _raw() -> Mapping[str, Any]:
    text = (files("relist_specs") / "requirements.yaml").read_bytes()
    raw: Mapping[str, Any] = yaml.load(text, _Loader)
    return raw


@cache
def _all() -> Mapping[str, Requirement]:
    raw = _raw()
    return {
        row["id"]: Requirement(
            row["id"],
            " ".join(row["text"].split()),
            row["strength"],
            tuple(_source(raw["sources"], one) for one in row.get("source", ())),
        )
        for row in raw["rows"]
    }


def _source(known: Mapping[str, Any], text: str) -> Source:
    """A page of a source, and a heading of it: ``M:server/tools``, the mark, ``Listing``."""
    name, _, rest = text.partition(":")
    page, _, heading = rest.partition(_HEADING)
    source = known.get(name, {})
    told = f"{source.get('name', name)}: {rest}" if rest else str(source.get("name", name))
    if "url" not in source or not page:
        return Source(told)
    anchor = re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")
    return Source(told, f"{source['url']}{page}" + (f"#{anchor}" if anchor else ""))
