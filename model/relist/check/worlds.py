"""The settings that are explored: each small, all together every row of the catalog chart.

ENVIRONMENTS are the eight that the promise is stated for, FEATURES what can happen besides, LARGER
the same with more of everything (minutes, not seconds).
"""

from attrs import evolve

from relist.check.setting import POLICY, Setting
from relist.values import Era, Scope

ENVIRONMENTS = tuple(
    Setting(
        " ".join(
            (
                "ordered" if ordered else "unordered",
                "atomic" if atomic else "delayed",
                "lossy" if lossy else "lossless",
            )
        ),
        ordered=ordered,
        atomic=atomic,
        lossy=lossy,
    )
    for ordered in (True, False)
    for atomic in (True, False)
    for lossy in (False, True)
)
"""The eight environments of the promise, with cuts, time-outs and repeated notices in each."""

_PUBLIC, _PRIVATE = (None, Scope.PUBLIC), (None, Scope.PRIVATE)
_LIFETIMES = ((0, Scope.PUBLIC), (1, Scope.PUBLIC))
_WISHES = (
    "read is wanted",
    "refresh is wanted",
    "call proves the list stale",
    "call proves an older list stale",
)

FEATURES = (
    Setting(
        "failures",
        wire=1,
        cuts=False,
        fails=("transient", "throttled", "refused", "dead cursor", "unknown method"),
    ),
    Setting(
        "authorization",
        wire=1,
        cuts=False,
        fails=("unauthorized",),
        wishes=("refresh is wanted",),
        offers=("credentials change",),
    ),
    Setting("wishes", wire=1, wishes=_WISHES),
    Setting(
        "calls on doubt",
        wire=1,
        pages=1,
        cuts=False,
        fails=("transient", "refused", "unauthorized"),
        wishes=("verification is wanted", "refresh is wanted"),
        offers=("credentials change",),
    ),
    Setting(
        "push that comes and goes",
        ordered=False,
        wire=1,
        era=Era.MODERN,
        cuts=False,
        push_ends=True,
        grants=("granted", "refused push", "refused push after all"),
    ),
    Setting(
        "no push, only reads",
        ordered=False,
        era=Era.MODERN,
        grants=("without push",),
        wishes=("read is wanted",),
        reads=True,
        policy=evolve(POLICY, unvouched_lifetime_ms=1),
    ),
    Setting(
        "lifetimes",
        ordered=False,
        lossy=True,
        wire=1,
        era=Era.MODERN,
        cuts=False,
        lifetimes=_LIFETIMES,
        wishes=("read is wanted",),
    ),
    Setting("polling", lossy=True, wire=1, policy=evolve(POLICY, poll_ms=2)),
    Setting(
        "lazy",
        wire=1,
        wishes=("read is wanted", "refresh is wanted"),
        offers=("server declares the kind", "server revokes the kind"),
        reads=True,
        policy=evolve(POLICY, lazy=True),
    ),
    Setting(
        "capabilities",
        wire=1,
        fails=("unknown method",),
        grants=("granted", "undeclared", "at another version"),
        offers=(
            "server declares the kind",
            "server still has no such kind",
            "server revokes the kind",
            "server offers as before",
            "credentials change",
        ),
    ),
    Setting(
        "credentials",
        wire=1,
        cuts=False,
        era=Era.MODERN,
        lifetimes=(_PUBLIC, _PRIVATE),
        offers=("credentials change",),
    ),
    Setting("duplicates", wire=1, ordered=False, shared=True),
    Setting("endless", wire=1, endless=True),
    Setting("one page", wire=1, pages=1),
)
"""One world for each thing that can happen besides."""


def by_name(name: str) -> Setting:
    """One of the small settings. Raises KeyError for a name that none has."""
    return {setting.name: setting for setting in (*ENVIRONMENTS, *FEATURES)}[name]


_TIMES = evolve(POLICY, gap_max_ms=2, backoff_max_ms=2, walk_limit_ms=2, spoiled_in_row_max=3)
LARGER = (
    *(
        evolve(setting, name=f"{setting.name}, larger times", policy=_TIMES, wire=3)
        for setting in ENVIRONMENTS
    ),
    *(
        evolve(
            setting,
            name=f"{setting.name}, three pages",
            pages=3,
            policy=evolve(POLICY, pages_max=3),
        )
        for setting in ENVIRONMENTS
    ),
    *(
        evolve(setting, name=f"{setting.name}, with cuts", cuts=True)
        for setting in FEATURES
        if not setting.cuts
    ),
    evolve(
        by_name("lifetimes"),
        name="lifetimes, all",
        cuts=True,
        push_ends=True,
        reads=True,
        grants=("granted", "refused push", "without push"),
        policy=evolve(POLICY, unvouched_lifetime_ms=1),
    ),
    evolve(by_name("wishes"), name="wishes, unordered", ordered=False, atomic=False, wire=2),
)
"""The same with more of everything."""
