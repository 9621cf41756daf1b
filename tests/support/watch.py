"""A live client under watch: every step of its core is held to the promises by name."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import relist.core
import relist.session
from relist.check import invariants, isolation
from relist.check.isolation import SessionEdge
from relist.inputs import SessionInput
from relist.policy import Policy
from relist.session import Session, SessionStep
from support.stage import watched


@contextmanager
def under_watch(broken: list[str]) -> Iterator[None]:
    """While active, complaints about any core's steps are collected."""
    receive = relist.session.receive

    def watching(before: Session, heard: SessionInput, policy: Policy) -> SessionStep:
        with watched() as edges:
            stepped = receive(before, heard, policy)
        for edge in edges:
            kind = edge.before.kind.value
            broken.extend(f"{name}: {kind}: {why}" for name, why in invariants.broken(edge))
        whole = SessionEdge(before, heard, stepped.state, stepped.effects, policy)
        broken.extend(f"{name}: {why}" for name, why in isolation.broken(whole))
        return stepped

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(relist.core, "receive", watching)
        yield
