"""A policy for each revision of the protocol: what a client that speaks just that one may do.

The newest first. A legacy client accepts older versions as a counter-offer; a modern one has no
handshake to fall back to. ``Policy(seed=...)`` itself speaks both eras. What the revisions leave to
the client (every SHOULD and MAY) are fields of ``Policy`` and may be changed in the same call.
"""

from collections.abc import Mapping
from typing import Any

from relist.errors import PolicyError
from relist.policy import Policy

_LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26")

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "2026-07-28": {"modern_versions": ("2026-07-28",), "legacy_versions": ()},
    **{
        version: {
            "modern_versions": (),
            "legacy_versions": _LEGACY[number:],
        }
        for number, version in enumerate(_LEGACY)
    },
}


def preset(revision: str, seed: bytes, **changes: Any) -> Policy:
    """The policy of this revision, with these fields changed.

    Raises PolicyError for a revision that is not known, and for whatever ``Policy`` refuses.
    """
    found = PRESETS.get(revision)
    if found is None:
        known = ", ".join(PRESETS)
        raise PolicyError(f"revision {revision!r} is not known; there are {known}")
    values: dict[str, Any] = {**found, **changes}
    return Policy(seed=seed, **values)
