"""What every test of the live client is held to: nothing is left behind."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _frozen() -> None:
    """What is imported by now is not looked at again, so that collecting is quick."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _nothing_is_left_behind(_frozen: None) -> Iterator[None]:
    """Streams and generators that were not closed warn when collected, and warnings are errors."""
    yield
    gc.collect()
