"""The conftest of the folder in which mutants run: what kills most comes first.

mutmut names each test; pytest collects file by file several times faster.
"""

import pytest

CHOSEN = pytest.StashKey[frozenset[str]]()
LAST = "tests/strength/"


def pytest_configure(config: pytest.Config) -> None:
    chosen = frozenset(name for name in config.args if "::" in name)
    config.stash[CHOSEN] = chosen
    if chosen:
        config.args[:] = sorted({name.partition("::")[0] for name in chosen})


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen = config.stash[CHOSEN]
    items[:] = [item for item in items if not chosen or item.nodeid in chosen]
    items.sort(key=lambda item: item.nodeid.startswith(LAST))
