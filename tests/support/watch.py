"""A live client under watch: every step of its core is held to the promises by name."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import relist.core
from relist.check import observe
from relist.inputs import SessionInput
from relist.policy import Policy
from relist.session import Session, SessionStep


@contextmanager
def under_watch(broken: list[str]) -> Iterator[None]:
    """While active, complaints about any core's steps are collected."""

    def watching(before: Session, heard: SessionInput, policy: Policy) -> SessionStep:
        observed = observe.observe(before, heard, policy)
        broken.extend(map(str, observe.broken(observed)))
        return SessionStep(observed.whole.after, observed.whole.effects)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(relist.core, "receive", watching)
        yield
