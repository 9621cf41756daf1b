"""A world for one catalog: a server whose list changes, a wire that misbehaves, the real ``step``.

A scene is one situation of that world in normal form (see ``normal``); a move is one thing that can
happen next. What the wire may do is the environment, and the promise depends on it:

- *ordered*: answers and notices share one stream; else a notice may be overtaken by an answer;
- *atomic*: a change is announced together with it; else the server owes the notice for a while;
- *lossy*: a notice may get lost while the connection stands.

Every world repeats notices, answers late, lets time pass and (with ``cuts``) loses connections.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from attrs import frozen

from relist import inputs as i
from relist.check.invariants import ALWAYS, Check
from relist.check.normal import page_items
from relist.check.numbered import Heard, Key, Numbered, Stepper
from relist.machine import step
from relist.policy import Policy
from relist.values import Era, Failure, Kind, Phase, Scope, new_catalog

KIND = Kind.TOOLS
_SERIAL, _LATE = 1, 0  # a normal form waits for the first, none for the second

FAILURES: Mapping[str, Failure] = {
    "transient": Failure("error answer", code=-32603),
    "throttled": Failure("error answer", status=429, retry_after_ms=3),
    "unauthorized": Failure("error answer", status=401),
    "dead cursor": Failure("error answer", code=-32602),
    "unknown method": Failure("error answer", code=-32601),
}
_FAILING = tuple(FAILURES)
_NO_ANSWER = -1

POLICY = Policy(
    seed=b"\x00",
    gather_ms=1,
    gap_base_ms=1,
    gap_max_ms=2,
    uncovered_grace_ms=1,
    spoiled_in_row_max=2,
    request_limit_ms=1,
    walk_limit_ms=2,
    pages_max=2,
    items_max=8,
    ttl_max_ms=2,
    unvouched_lifetime_ms=None,
    backoff_base_ms=1,
    backoff_max_ms=2,
    retry_after_max_ms=3,
    jitter_percent=0,
)
"""Small numbers: the orders of events that larger ones allow, in far fewer situations."""


@frozen
class Setting:
    """What can happen in a world.

    ``wire`` bounds the notices on their way: more of them would tell the client nothing more.
    ``fails`` are names of FAILURES, ``wishes`` acts of the caller, ``grants`` and ``offers`` answers
    to a new connection and to a later discovery. ``patient``: reads are what makes it converge.
    """

    name: str
    ordered: bool = True
    atomic: bool = True
    lossy: bool = False
    wire: int = 2
    pages: int = 2
    era: Era = Era.LEGACY
    cuts: bool = True
    push_ends: bool = False
    fails: tuple[str, ...] = ()
    wishes: tuple[str, ...] = ()
    grants: tuple[str, ...] = ("granted",)
    offers: tuple[str, ...] = ()
    shared: bool = False
    endless: bool = False
    lifetimes: tuple[tuple[int | None, Scope], ...] = ((None, Scope.PRIVATE),)
    patient: bool = False
    policy: Policy = POLICY


class Scene(NamedTuple):
    """One situation, in small integers.

    ``catalog`` is a number (see ``numbered``). ``answer`` is what is on the wire: -1 for nothing,
    the age of a page, or below -1 a failure. ``ahead`` and ``behind`` count the notices before and
    after it. ``owed``: the server has changed and not yet said so. ``cut``: the connection is gone,
    but the client has not heard; ``ending``: the same of push alone.
    """

    catalog: int
    answer: int
    ahead: int
    behind: int
    owed: bool
    cut: bool
    ending: bool


class Move(NamedTuple):
    """Something that can happen: its name, what comes of it, and what is wrong with that."""

    label: str
    scene: Scene
    complaint: str | None


URGENT = frozenset(
    {
        "server announces",
        "server answers",
        "notice arrives",
        "answer arrives",
        "timer fires",
        "client hears of the cut",
        "client hears that push ended",
        "client connects",
        "listing is granted",
        "push begins",
    }
)
"""What goes on in a calm world, before its clock does: the server answers in time."""


class World:
    """The moves of every scene of a setting. Tests replace ``step`` and ``checks``."""

    def __init__(
        self, setting: Setting, step: Stepper = step, checks: Mapping[str, Check] = ALWAYS
    ) -> None:
        self.setting = setting
        self.known = Numbered(setting.policy, step, checks)
        self._fixed = dict(_fixed_inputs(setting))

    def initial(self) -> Scene:
        """Never connected."""
        return Scene(self.known.number(new_catalog(KIND)), _NO_ANSWER, 0, 0, False, False, False)

    def moves(self, scene: Scene) -> Iterator[Move]:
        """Everything that can happen next and changes the scene, or breaks a promise."""
        for label, after, complaint in self._moves(scene):
            closed = self._closed(after)
            if closed != scene or complaint is not None:
                yield Move(label, closed, complaint)

    def _moves(self, scene: Scene) -> Iterator[Move]:
        yield from self._server(scene)
        yield from self._wire(scene)
        yield from self._link(scene)
        yield from self._client(scene)

    # --- what the server does ---------------------------------------------------------------------

    def _server(self, scene: Scene) -> Iterator[Move]:
        setting, known = self.setting, self.known
        traits = known.traits(scene.catalog)
        width = max(traits.ages.bit_length(), scene.answer + 1)
        older = scene._replace(
            catalog=known.aged(scene.catalog, tuple(range(1, width + 1))),
            answer=scene.answer + 1 if scene.answer >= 0 else scene.answer,
        )
        linked = traits.phase is not Phase.DISCONNECTED and not scene.cut
        heard = traits.covered and linked and not scene.ending
        if not heard:
            yield Move("server changes", older, None)
        elif setting.atomic:
            yield Move("server changes and announces", self._notify(older), None)
        else:
            yield Move("server changes", older._replace(owed=True), None)
        if scene.owed:
            yield Move("server announces", self._notify(scene._replace(owed=False)), None)
        if linked and scene.ahead + scene.behind < setting.wire:
            yield Move("server repeats a notice", self._notify(scene), None)
        if linked and traits.page and scene.answer == _NO_ANSWER:
            yield Move("server answers", scene._replace(answer=0), None)
            for name in setting.fails:
                if name != "dead cursor" or traits.page > 1:
                    failed = scene._replace(answer=-2 - _FAILING.index(name))
                    yield Move(f"server answers: {name}", failed, None)

    def _notify(self, scene: Scene) -> Scene:
        """One more notice on the wire; a full wire merges it with the last one."""
        if self.setting.ordered and scene.answer != _NO_ANSWER:
            return scene._replace(behind=min(scene.behind + 1, self.setting.wire))
        return scene._replace(ahead=min(scene.ahead + 1, self.setting.wire))

    # --- what the wire does -----------------------------------------------------------------------

    def _wire(self, scene: Scene) -> Iterator[Move]:
        setting = self.setting
        if scene.ahead:
            fewer = scene._replace(ahead=scene.ahead - 1)
            yield self._hears("notice arrives", fewer)
            if setting.lossy:
                yield Move("notice is lost", fewer, None)
        if setting.lossy and scene.behind:
            yield Move("notice is lost", scene._replace(behind=scene.behind - 1), None)
        if scene.answer != _NO_ANSWER and not (setting.ordered and scene.ahead):
            for key in self._answers(scene):
                yield self._hears("answer arrives", scene, key)
        ages = self.known.traits(scene.catalog).ages
        yield self._hears("late page arrives", scene, ("late", ages.bit_length() or 1))
        yield self._hears("late failure arrives", scene)

    def _answers(self, scene: Scene) -> Iterator[Key]:
        if scene.answer < _NO_ANSWER:
            yield f"failure: {_FAILING[-2 - scene.answer]}"
            return
        page = self.known.traits(scene.catalog).page
        ends = (False, True) if self.setting.endless and page == self.setting.pages else (False,)
        for index in range(len(self.setting.lifetimes)):
            for endless in ends:
                yield "page", page, scene.answer, index, endless

    # --- what the client does ---------------------------------------------------------------------

    def _client(self, scene: Scene) -> Iterator[Move]:
        known = self.known
        fired = self._hears("timer fires", scene)
        if known.traits(scene.catalog).due:
            yield fired
        elif fired.scene.catalog != scene.catalog:
            yield fired._replace(complaint="a timer that fires early changes nothing")
        yield Move("a moment passes", scene._replace(catalog=known.later(scene.catalog)), None)
        for wish in self.setting.wishes:
            yield self._hears(wish, scene)

    # --- what the connection does -----------------------------------------------------------------

    def _link(self, scene: Scene) -> Iterator[Move]:
        setting, traits = self.setting, self.known.traits(scene.catalog)
        bare = Scene(scene.catalog, _NO_ANSWER, 0, 0, False, False, False)
        if traits.phase is Phase.DISCONNECTED:
            yield self._hears("client connects", scene)
            if "credentials" in setting.offers:
                yield self._hears("credentials change", bare)
            return
        if scene.cut:
            yield self._hears("client hears of the cut", bare)
        elif setting.cuts:
            yield Move("connection is cut", bare._replace(cut=True), None)
            yield self._hears("client connects", bare)
        if "credentials" in setting.offers:
            yield self._hears("credentials change", bare)
        if not scene.cut:
            yield from self._offers(scene)

    def _offers(self, scene: Scene) -> Iterator[Move]:
        setting, traits = self.setting, self.known.traits(scene.catalog)
        if traits.phase is Phase.INITIALIZING:
            for grant in setting.grants:
                yield self._hears(f"listing is {grant}", scene)
            return
        for offer in setting.offers:
            if offer != "credentials":
                yield self._hears(offer, scene)
        if scene.ending:
            yield self._hears("client hears that push ended", scene._replace(ending=False))
        elif setting.push_ends and traits.covered:
            ended = scene._replace(ahead=0, behind=0, owed=False, ending=True)
            yield Move("push ends", ended, None)
        elif setting.push_ends:
            yield self._hears("push begins", scene)

    # --- hearing ----------------------------------------------------------------------------------

    def _hears(self, label: str, scene: Scene, key: Key = "") -> Move:
        """The catalog hears what the key (or else the label) stands for."""
        key = key or label
        heard = self.known.hear(scene.catalog, key, self.inputs(key))
        return Move(label, self._after(scene, heard), heard.complaint)

    def _after(self, scene: Scene, heard: Heard) -> Scene:
        walks = self.known.traits(heard.catalog).page > 0
        if walks and not heard.requests:
            return scene._replace(catalog=heard.catalog)
        # Nobody waits any more for what was asked before: its answer would be late.
        notices = min(scene.ahead + scene.behind, self.setting.wire)
        return scene._replace(catalog=heard.catalog, answer=_NO_ANSWER, ahead=notices, behind=0)

    def inputs(self, key: Key) -> tuple[i.CatalogInput, ...]:
        """What a key stands for, at time 0."""
        if isinstance(key, str):
            return self._fixed[key]
        if key[0] == "late":
            age = int(key[1] or 0)
            items = page_items(1, age - 1, self.setting.shared)
            return (i.PageArrived(KIND, _LATE, items, None, None, Scope.PUBLIC, 0),)
        _, page, age, index, endless = (int(part) if part != "page" else 0 for part in key)
        ttl_ms, scope = self.setting.lifetimes[index]
        cursor = f"after {page}" if page < self.setting.pages or endless else None
        items = page_items(page, age, self.setting.shared)
        return (i.PageArrived(KIND, _SERIAL, items, cursor, ttl_ms, scope, 0),)

    def _closed(self, scene: Scene) -> Scene:
        """The same scene without gaps between the ages that anybody remembers."""
        ages = self.known.traits(scene.catalog).ages | 1
        if scene.answer > 0:
            ages |= 1 << scene.answer
        if not ages & (ages + 1):
            return scene
        answer = scene.answer
        if answer > 0:
            answer = (ages & ((1 << answer) - 1)).bit_count()
        return scene._replace(catalog=self.known.closed(scene.catalog, ages), answer=answer)

    # --- what is promised -------------------------------------------------------------------------

    def promise(self, scene: Scene) -> str | None:
        """What this environment promises of a scene, beyond what holds on every edge."""
        traits = self.known.traits(scene.catalog)
        if self.setting.lossy or traits.phase is not Phase.FRESH or not traits.vouched:
            return None
        told = scene.ahead or scene.behind or scene.owed or scene.cut or scene.ending
        if traits.listed != 1 and not told:
            return "freshness: FRESH and vouched for, not current, and nothing says so"
        torn = traits.listed & (traits.listed - 1)
        if torn and self.setting.ordered and self.setting.atomic and not scene.ending:
            return "never-torn: FRESH and vouched for, with pages of different ages"
        return None

    def current(self, scene: Scene) -> bool:
        """Whether the client has, and believes in, the list as it is (or has a reason to rest)."""
        traits = self.known.traits(scene.catalog)
        return self._rests(scene) or (traits.undoubted and traits.listed == 1)

    def usable(self, scene: Scene) -> bool:
        """Whether the client has an undoubted list, current or not (or has a reason to rest)."""
        traits = self.known.traits(scene.catalog)
        return self._rests(scene) or (traits.undoubted and traits.listed > 0)

    def _rests(self, scene: Scene) -> bool:
        traits = self.known.traits(scene.catalog)
        linked = traits.phase not in (Phase.DISCONNECTED, Phase.INITIALIZING)
        return linked and (traits.phase is Phase.UNSUPPORTED or traits.parked)


def _fixed_inputs(setting: Setting) -> Iterator[tuple[str, tuple[i.CatalogInput, ...]]]:
    """What can be heard and needs no number: by label."""
    era = setting.era
    yield "client connects", (i.LinkOpened(0, 0),)
    yield "client hears of the cut", (i.LinkLost(0),)
    yield "credentials change", (i.CredentialsChanged("b", 0), i.LinkLost(0))
    covered = i.CoverageGained(0)
    yield "listing is granted", (covered, i.ListingAllowed(era, "a", True, True, 0))
    yield (
        "listing is granted at another version",
        (
            covered,
            i.ListingAllowed(era, "b", True, True, 0),
        ),
    )
    yield "listing is refused push", (i.ListingAllowed(era, "a", True, True, 0),)
    yield "listing is without push", (i.ListingAllowed(era, "a", True, False, 0),)
    yield "listing is undeclared", (i.ListingAllowed(era, "a", False, False, 0),)
    yield "push begins", (covered,)
    yield "client hears that push ended", (i.CoverageLost(0),)
    for declared in (False, True):
        said = "declares" if declared else "revokes"
        yield f"server {said} the kind", (i.CapabilitiesChanged(declared, declared, 0),)
    yield "notice arrives", (i.ListChangedHeard(0),)
    yield "timer fires", (i.TimePassed(0),)
    yield "read is wanted", (i.ReadWanted(KIND, 0),)
    yield "refresh is wanted", (i.RefreshWanted(KIND, 0),)
    yield "call proves it stale", (i.StalenessProved(KIND, 1, 0),)
    yield "call proves an older list stale", (i.StalenessProved(KIND, 0, 0),)
    yield "late failure arrives", (i.PageFailed(KIND, _LATE, FAILURES["transient"], 0),)
    for name, failure in FAILURES.items():
        yield f"failure: {name}", (i.PageFailed(KIND, _SERIAL, failure, 0),)
