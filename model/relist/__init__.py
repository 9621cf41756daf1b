"""Relist: a pure state machine that keeps an MCP client's catalogs correct.

Values in, values out: no I/O, no clock, no randomness. ``Relist`` (``core.py``) is the object to
embed; the law stands in ``charts.py``, its words in ``values.py``, ``inputs.py``, ``effects.py``.
"""

from relist.core import Relist
from relist.errors import ImpossibleAct, PolicyError, RelistError
from relist.machine import Hit, Reading
from relist.policy import Policy
from relist.session import Session
from relist.values import (
    Capabilities,
    Channel,
    Doubt,
    Era,
    Failure,
    Item,
    Kind,
    Phase,
    Scope,
    Snapshot,
    Wire,
)

__version__ = "0.1.0"

__all__ = [
    "Capabilities",
    "Channel",
    "Doubt",
    "Era",
    "Failure",
    "Hit",
    "ImpossibleAct",
    "Item",
    "Kind",
    "Phase",
    "Policy",
    "PolicyError",
    "Reading",
    "Relist",
    "RelistError",
    "Scope",
    "Session",
    "Snapshot",
    "Wire",
]
