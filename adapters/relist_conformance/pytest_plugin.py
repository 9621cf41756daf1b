"""A pytest plugin: the cases as tests of one's own test suite.

    pytest --pyargs relist_conformance.pytest_cases --relist-driver "python my_driver.py"

``pytest_cases`` holds the one test that there is, once for each case; import it into a test file to
have it among others. Who has a client in Python needs no process: see ``in_process``. This module
is loaded by each pytest run where Relist is installed, so it imports nothing before it is used.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from relist_conformance.runner import Cell, Result

    RunCells = Callable[[Sequence[Cell]], tuple[Result, ...]]
    """Plays cells on the driver of the session, several at a time."""

_AT_ONCE = 8


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options; without a use of the fixtures below they change nothing."""
    group = parser.getgroup("relist", "judging an MCP client with Relist")
    group.addoption("--relist-driver", metavar="COMMAND", help="the driver of the client to judge")
    group.addoption(
        "--relist-case",
        metavar="GLOB",
        action="append",
        default=[],
        help="only cases whose id matches",
    )
    group.addoption(
        "--relist-profile",
        choices=("relist", "mcp"),
        default="relist",
        help="relist: all rules; mcp: those of MCP itself",
    )
    group.addoption("--relist-strict", action="store_true", help="a warning fails its test")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each case, in the same order in each process."""
    if "relist_cells" not in metafunc.fixturenames:
        return
    from relist_conformance.errors import ConformanceError
    from relist_conformance.runner import select_cells
    from relist_conformance.script import REVISIONS, load_cases

    try:
        cells = select_cells(
            load_cases(),
            patterns=_option(metafunc.config, "--relist-case"),
            revisions=REVISIONS,
            transports=("stdio", "http"),
            profile=_option(metafunc.config, "--relist-profile"),
        )
    except ConformanceError as error:
        raise pytest.UsageError(str(error)) from None
    by_case: dict[str, list[Cell]] = {}
    for cell in cells:
        by_case.setdefault(cell.case.id, []).append(cell)
    metafunc.parametrize("relist_cells", list(by_case.values()), ids=list(by_case))


@pytest.fixture(scope="session")
def relist_driver(pytestconfig: pytest.Config) -> str:
    """The command of the driver; a ``conftest.py`` may say it instead of the command line."""
    command: str | None = _option(pytestconfig, "--relist-driver")
    if command is None:
        raise pytest.UsageError("--relist-driver is missing")
    return command


@pytest.fixture(scope="session")
def relist_run(relist_driver: str) -> "Iterator[RunCells]":
    """Plays cells on one driver process, which is started once in each pytest process."""
    from anyio.from_thread import start_blocking_portal

    from relist_conformance.check import play_on
    from relist_conformance.driver import Driver, parse_command
    from relist_conformance.play import open_stage
    from relist_conformance.referee import PATIENCE_MS
    from relist_conformance.runner import play_cells

    argv = parse_command(relist_driver)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Driver.start(argv)) as driver,
        portal.wrap_async_context_manager(open_stage()) as stage,
    ):
        play = partial(play_on, driver, stage, PATIENCE_MS)

        def run(cells: "Sequence[Cell]") -> "tuple[Result, ...]":
            return portal.call(partial(play_cells, cells, driver.hello, play, at_once=_AT_ONCE))

        yield run


@pytest.fixture
def relist_conclude(pytestconfig: pytest.Config) -> "Callable[[Sequence[Result]], None]":
    """Turns the results of one case into what a test says of them."""
    from relist_conformance.pytest_cases import conclude

    return partial(conclude, strict=_option(pytestconfig, "--relist-strict"))


def _option(config: pytest.Config, name: str) -> Any:
    return config.getoption(name)
