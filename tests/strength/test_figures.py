"""What is checked in about strength is well formed: enough is killed, the rest has a reason."""

import tomllib
from pathlib import Path

import pytest

from strength import figures
from strength.figures import as_entries, compare
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
    assert function_of("relist.session.x\u01c1Run\u01c1link__mutmut_13") == "Run.link"
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


# --- the comparison itself ------------------------------------------------------------------------

WELL, ILL = (("link", "a -> b", "does nothing"), True), (("link", "a -> b", "only goes"), False)


@pytest.fixture
def checked_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Figures of one chart with two mutants, one of which survives."""
    folder = tmp_path
    (folder / "figures.json").write_text("{}")
    (folder / "survivors.toml").write_text(f"{as_entries('tables', [ILL[0]])}")
    monkeypatch.setattr(figures, "FIGURES", folder / "figures.json")
    monkeypatch.setattr(figures, "SURVIVORS", folder / "survivors.toml")
    compare("tables", {"link": [WELL, ILL]}, rewrite=True)
    return folder / "survivors.toml"


def test_what_is_as_it_was_passes(checked_in: Path) -> None:
    assert figures.load()["tables"]["link"].percent == 50
    compare("tables", {"link": [WELL, ILL]}, rewrite=False)


@pytest.mark.parametrize("rewrite", [True, False])
def test_the_share_only_rises(checked_in: Path, rewrite: bool) -> None:
    worse = (WELL[0], False)
    with pytest.raises(AssertionError, match="the share fell"):
        compare("tables", {"link": [worse, ILL]}, rewrite=rewrite)
    assert figures.load()["tables"]["link"].killed == 1


def test_a_survivor_that_nobody_explained_is_shown(checked_in: Path) -> None:
    other = (("link", "a -> b", "goes wrong"), False)
    with pytest.raises(AssertionError, match='what = "goes wrong"'):
        compare("tables", {"link": [WELL, WELL, ILL, other]}, rewrite=True)


def test_what_is_explained_and_killed_has_to_go(checked_in: Path) -> None:
    better = (ILL[0], True)
    with pytest.raises(AssertionError, match="killed now"):
        compare("tables", {"link": [WELL, better]}, rewrite=True)
    checked_in.write_text("tables = []\n")
    with pytest.raises(AssertionError, match="--rewrite"):
        compare("tables", {"link": [WELL, better, better]}, rewrite=False)
    compare("tables", {"link": [WELL, better]}, rewrite=False)
