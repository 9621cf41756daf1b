"""What is checked in about strength is well formed: enough is killed, the rest has a reason."""

import tomllib

import pytest

from strength import figures
from strength.figures import as_entries
from strength.sources import MODULES, changed, function_of
from strength.tables import CHARTS

KINDS = pytest.mark.parametrize("kind", ["tables", "sources"])


@KINDS
def test_every_module_and_chart_has_its_figure(kind: str) -> None:
    assert set(figures.load()[kind]) == set(CHARTS if kind == "tables" else MODULES)


@KINDS
def test_enough_is_killed(kind: str) -> None:
    for name, figure in figures.load()[kind].items():
        assert figure.mutants >= figure.killed > 0, name
        assert figure.percent >= figures.LEAST_PERCENT, name


@KINDS
def test_every_survivor_is_listed_with_its_reason(kind: str) -> None:
    known = figures.listed(kind)
    assert all(why.strip() for _, why in known)
    for name, figure in figures.load()[kind].items():
        survived = [names for names, _ in known if names[0] == name]
        assert len(survived) == figure.mutants - figure.killed, name
    assert {names[0] for names, _ in known} <= set(figures.load()[kind])


DIFF = """--- relist/paging.py
+++ relist/paging.py
@@ -1,3 +1,3 @@
 def too_many(count):
-    return count > 1
+    return count >= 1
"""


def test_a_survivor_is_named_by_what_it_changes() -> None:
    assert changed(DIFF) == ("return count > 1", "return count >= 1")
    assert function_of("relist.paging.x__ends__mutmut_3") == "_ends"
    assert function_of("relist.session.x\u01c1_Run\u01c1link__mutmut_13") == "_Run.link"
    entry = as_entries("tables", [("link", "a -> b", "does nothing")])
    assert tomllib.loads(entry)["tables"] == [
        {"chart": "link", "row": "a -> b", "what": "does nothing", "why": ""}
    ]


@pytest.mark.nightly
@KINDS
def test_the_figures_are_about_the_present_sources(kind: str) -> None:
    """Else the strength run is to be repeated: see the README."""
    for name, figure in figures.load()[kind].items():
        assert figure.digest == figures.digest_of(kind, name), f"{name} changed since"
