"""A live client under watch: every step of its core is held to the promises by name."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import pytest

import relist.core
from relist.check import observe
from relist.check.isolation import SessionEdge
from relist.inputs import SessionInput
from relist.policy import Policy
from relist.session import Session, SessionStep

Check = Callable[[SessionEdge], Iterable[str]]


@contextmanager
def under_watch(broken: list[str], *checks: Check) -> Iterator[None]:
    """While active, complaints about any core's steps are collected; ``checks`` add their own."""

    def watching(before: Session, heard: SessionInput, policy: Policy) -> SessionStep:
        observed = observe.observe(before, heard, policy)
        broken.extend(map(str, observe.broken(observed)))
        for check in checks:
            broken.extend(check(observed.whole))
        return SessionStep(observed.whole.after, observed.whole.effects)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(relist.core, "receive", watching)
        yield
