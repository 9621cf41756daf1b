"""A world for one catalog: a server whose list changes, a wire that misbehaves, the real ``step``.

A scene is one situation of that world in normal form (see ``normal``); a move is one thing that can
happen next. What the wire may do is the environment, and the promise depends on it:

- *ordered*: answers and notices share one stream; else an answer may overtake a notice;
- *atomic*: a change is announced together with it; else the server owes the notice for a while;
- *lossy*: a notice may get lost while the connection stands.

Every world repeats notices, answers late, lets time pass and (with ``cuts``) loses connections.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from relist import inputs as i
from relist.check.explore import Move
from relist.check.invariants import ALWAYS, Check
from relist.check.normal import Ages, page_items
from relist.check.numbered import Heard, Key, Numbered, Stepper
from relist.check.setting import FAILING, KIND, LATE, OFFERS, SERIAL, Setting, fixed_inputs
from relist.machine import step
from relist.values import Catalog, Phase, Scope, new_catalog

_NO_ANSWER = -1


class Scene(NamedTuple):
    """One situation, in small integers.

    ``catalog`` is a number (see ``numbered``). ``answer`` is what is on the wire: -1 for nothing,
    the age of a page, or below -1 a failure. ``ahead`` and ``behind`` count the notices before and
    after it. ``owed``: the server has changed and not yet said so. ``cut``: the connection is gone,
    but the client has not heard; ``ending``: the same of push alone.
    These three are 0 or 1.
    """

    catalog: int
    answer: int
    ahead: int
    behind: int
    owed: int
    cut: int
    ending: int


CatalogMove = Move[Scene]

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
        "push begins",
    }
)
"""What goes on in a calm world, before its clock does: the server answers in time."""


TIMELESS = frozenset(
    {
        "server changes",
        "server changes and announces",
        "server announces",
        "server repeats a notice",
        "server answers",
        "notice arrives",
        "notice is lost",
        "answer arrives",
        "endless page arrives",
        "timer fires",
        "push begins",
        "push ends",
        "client hears that push ended",
    }
)
"""What can go on while no time passes, no caller acts and the connection stays."""


class World:
    """The moves of every scene of a setting. Tests replace ``step`` and ``checks``."""

    def __init__(
        self, setting: Setting, step: Stepper = step, checks: Mapping[str, Check] = ALWAYS
    ) -> None:
        self.setting = setting
        self._shrugging: dict[int, bool] = {}
        self._items = setting.pages + setting.shared
        self._fixed = dict(fixed_inputs(setting))
        self._known = Numbered(
            setting.policy, step, checks, self.inputs, candidates="dead cursor" in setting.fails
        )

    @property
    def name(self) -> str:
        """The name of the setting."""
        return self.setting.name

    @property
    def urgent(self) -> frozenset[str]:
        """See URGENT; a new connection is granted what comes first."""
        return URGENT | {f"listing is {self.setting.grants[0]}"}

    @property
    def patient(self) -> frozenset[str]:
        """Time passes, and (with ``reads``) somebody reads."""
        return frozenset(
            {"a moment passes"} | ({"read is wanted"} if self.setting.reads else set())
        )

    @property
    def timeless(self) -> frozenset[str]:
        """See TIMELESS; a server may fail at once in each of the ways it can."""
        return TIMELESS | {f"server fails: {name}" for name in self.setting.fails}

    @property
    def costly(self) -> frozenset[str]:
        """Walks begin when a timer fires, and go on when an answer arrives."""
        return frozenset({"timer fires", "answer arrives"})

    @property
    def goals(self) -> Mapping[str, Callable[[Scene], bool]]:
        """``recovers`` everywhere, ``converges`` where notices get through or lifetimes help."""
        hopeless = self.setting.lossy and not self.setting.reads
        sure: dict[str, Callable[[Scene], bool]] = {"recovers": self._usable}
        return sure if hopeless else {**sure, "converges": self._current}

    @property
    def reached(self) -> frozenset[str]:
        """The phases, doubts and rows of the chart that were met."""
        return frozenset(self._known.reached)

    def initial(self) -> Scene:
        """Never connected."""
        return Scene(self._known.number(new_catalog(KIND)), _NO_ANSWER, 0, 0, 0, 0, 0)

    def moves(self, scene: Scene) -> Iterator[CatalogMove]:
        """Everything that can happen next and changes the scene, or breaks a promise."""
        for source in (self._server, self._wire, self._link, self._client):
            for move in source(scene):
                label, after, complaint = move
                closed = self._closed(after)
                if complaint is not None or closed != scene:
                    yield move if closed is after else Move(label, closed, complaint)

    # --- what the server does ---------------------------------------------------------------------

    def _server(self, scene: Scene) -> Iterator[CatalogMove]:
        traits = self._known.traits[scene.catalog]
        linked = traits.phase is not Phase.DISCONNECTED and not scene.cut
        older = self._older(scene, traits.ages)
        if not (linked and traits.covered) or scene.ending:
            yield Move("server changes", older, None)
        elif self.setting.atomic:
            yield Move("server changes and announces", self._notify(older), None)
        else:
            yield Move("server changes", older._replace(owed=1), None)
        if scene.owed:
            yield Move("server announces", self._notify(scene._replace(owed=0)), None)
        if linked and scene.ahead + scene.behind < self.setting.wire:
            yield Move("server repeats a notice", self._notify(scene), None)
        if linked and traits.page and scene.answer == _NO_ANSWER:
            yield Move("server answers", scene._replace(answer=0), None)
            for name in self.setting.fails:
                if name != "dead cursor" or traits.page > 1:
                    failed = scene._replace(answer=-2 - FAILING.index(name))
                    yield Move(f"server fails: {name}", failed, None)

    def _older(self, scene: Scene, ages: Ages) -> Scene:
        """All that anybody remembers is one change older."""
        catalog, answer, *rest = scene
        width = max(ages.bit_length(), answer + 1)
        catalog = self._known.aged(catalog, tuple(range(1, width + 1)))
        return Scene(catalog, answer + 1 if answer >= 0 else answer, *rest)

    def _notify(self, scene: Scene) -> Scene:
        """One more notice on the wire; a full wire merges it with the last one."""
        if self.setting.ordered and scene.answer != _NO_ANSWER:
            return scene._replace(behind=min(scene.behind + 1, self.setting.wire))
        return scene._replace(ahead=min(scene.ahead + 1, self.setting.wire))

    # --- what the wire does -----------------------------------------------------------------------

    def _wire(self, scene: Scene) -> Iterator[CatalogMove]:
        ordered, lossy = self.setting.ordered, self.setting.lossy
        if scene.ahead:
            fewer = scene._replace(ahead=scene.ahead - 1)
            yield self._hears("notice arrives", fewer)
            if lossy:
                yield Move("notice is lost", fewer, None)
        if scene.behind and lossy:
            yield Move("notice is lost", scene._replace(behind=scene.behind - 1), None)
        if scene.answer != _NO_ANSWER and not (ordered and scene.ahead):
            for key in self._answers(scene):
                endless = len(key) == 4 and key[3]
                yield self._hears(
                    "endless page arrives" if endless else "answer arrives", scene, key
                )
        if not self._shrugs_off(scene.catalog):
            yield from self._late(scene)

    def _late(self, scene: Scene) -> Iterator[CatalogMove]:
        """Answers to requests that were given up: late, and older than all that is remembered."""
        ages = self._known.traits[scene.catalog].ages
        yield self._hears("late page arrives", scene, (ages.bit_length(),))
        yield self._hears("late failure arrives", scene)

    def _shrugs_off(self, catalog: int) -> bool:
        """Whether late answers and early timers change nothing and break nothing, as they should.

        Looked at once for each catalog; only where it is not so do they make moves.
        """
        shrugs = self._shrugging.get(catalog)
        if shrugs is None:
            scene = Scene(catalog, _NO_ANSWER, 0, 0, 0, 0, 0)
            early = () if self._known.traits[catalog].due else (self._timer(scene),)
            shrugs = self._shrugging[catalog] = all(
                move.scene.catalog == catalog and move.complaint is None
                for move in (*self._late(scene), *early)
            )
        return shrugs

    def _answers(self, scene: Scene) -> Iterator[Key]:
        if scene.answer < _NO_ANSWER:
            yield f"failure: {FAILING[-2 - scene.answer]}"
            return
        page = self._known.traits[scene.catalog].page
        ends = (0, 1) if self.setting.endless and page == self.setting.pages else (0,)
        for lifetime in range(len(self.setting.lifetimes)):
            for endless in ends:
                yield scene.answer, page, lifetime, endless

    # --- what the client does ---------------------------------------------------------------------

    def _client(self, scene: Scene) -> Iterator[CatalogMove]:
        if self._known.traits[scene.catalog].due or not self._shrugs_off(scene.catalog):
            yield self._timer(scene)
        later = self._known.later(scene.catalog)
        yield Move("a moment passes", scene._replace(catalog=later), None)
        for wish in self.setting.wishes:
            yield self._hears(wish, scene)

    def _timer(self, scene: Scene) -> CatalogMove:
        fired = self._hears("timer fires", scene)
        changed = fired.scene.catalog != scene.catalog
        if changed and not self._known.traits[scene.catalog].due and fired.complaint is None:
            return fired._replace(complaint="timer: firing early changed something")
        return fired

    # --- what the connection does -----------------------------------------------------------------

    def _link(self, scene: Scene) -> Iterator[CatalogMove]:
        traits = self._known.traits[scene.catalog]
        bare = Scene(scene.catalog, _NO_ANSWER, 0, 0, 0, 0, 0)
        if "credentials change" in self.setting.offers:
            yield self._hears("credentials change", bare)
        if traits.phase is Phase.DISCONNECTED:
            yield self._hears("client connects", scene)
        elif scene.cut:
            yield self._hears("client hears of the cut", bare)
        else:
            if self.setting.cuts:
                yield Move("connection is cut", bare._replace(cut=1), None)
                yield self._hears("connection is replaced", bare)
            yield from self._push(scene)

    def _push(self, scene: Scene) -> Iterator[CatalogMove]:
        setting, traits = self.setting, self._known.traits[scene.catalog]
        if traits.phase is Phase.INITIALIZING:
            for grant in setting.grants:
                yield self._hears(f"listing is {grant}", scene)
            return
        for offer in setting.offers:
            if offer in OFFERS and OFFERS[offer] is (traits.phase is Phase.UNSUPPORTED):
                yield self._hears(offer, scene)
        if scene.ending:
            yield self._hears("client hears that push ended", scene._replace(ending=0))
        elif setting.push_ends and traits.covered:
            ended = scene._replace(ahead=0, behind=0, owed=0, ending=1)
            yield Move("push ends", ended, None)
        elif setting.push_ends:
            yield self._hears("push begins", scene)

    # --- hearing ----------------------------------------------------------------------------------

    def _hears(self, label: str, scene: Scene, key: Key = "") -> CatalogMove:
        """The catalog hears what the key (or else the label) stands for."""
        heard = self._known.hear(scene.catalog, key or label)
        return Move(label, self._after(scene, heard), heard.complaint)

    def _after(self, scene: Scene, heard: Heard) -> Scene:
        _, answer, ahead, behind, *rest = scene
        if heard.requests or not self._known.traits[heard.catalog].page:
            # Nobody waits any more for what was asked before: its answer would be late.
            answer, ahead, behind = _NO_ANSWER, min(ahead + behind, self.setting.wire), 0
        return Scene(heard.catalog, answer, ahead, behind, *rest)

    def inputs(self, key: Key) -> tuple[i.CatalogInput, ...]:
        """What a key stands for, at time 0."""
        if isinstance(key, str):
            return self._fixed[key]
        setting = self.setting
        if len(key) == 1:
            items = page_items(1, key[0], setting.shared)
            return (i.PageArrived(KIND, LATE, items, None, None, Scope.PUBLIC, 0),)
        age, page, lifetime, endless = key
        ttl_ms, scope = setting.lifetimes[lifetime]
        cursor = f"after {page}" if page < setting.pages or endless else None
        items = page_items(page, age, setting.shared)
        return (i.PageArrived(KIND, SERIAL, items, cursor, ttl_ms, scope, 0),)

    def _closed(self, scene: Scene) -> Scene:
        """The same scene without gaps between the ages that anybody remembers."""
        catalog, answer, *rest = scene
        ages = self._known.traits[catalog].ages | 1
        if answer > 0:
            ages |= 1 << answer
        if not ages & (ages + 1):
            return scene
        if answer > 0:
            answer = (ages & ((1 << answer) - 1)).bit_count()
        return Scene(self._known.closed(catalog, ages), answer, *rest)

    # --- what is promised -------------------------------------------------------------------------

    def promise(self, scene: Scene) -> str | None:
        """What this environment promises of a scene, beyond what holds on every edge."""
        traits = self._known.traits[scene.catalog]
        if traits.items not in (None, self._items):
            return "complete-or-nothing: a list that is not the whole of it"
        if self.setting.lossy or traits.phase is not Phase.FRESH or not traits.vouched:
            return None
        torn = traits.listed & (traits.listed - 1)
        if torn and self.setting.ordered and self.setting.atomic and not scene.ending:
            return "never-torn: FRESH and vouched for, with pages of different ages"
        told = scene.ahead or scene.behind or scene.owed or scene.cut or scene.ending
        if traits.listed != 1 and not told:
            return "freshness: FRESH and vouched for, not current, and nothing says so"
        return None

    def _current(self, scene: Scene) -> bool:
        """The client has the list as it is, and no doubt of it, or a reason to rest."""
        traits = self._known.traits[scene.catalog]
        return (traits.sound and traits.listed == 1) or self._rests(scene)

    def _usable(self, scene: Scene) -> bool:
        """The client has a list and no doubt of it, or a reason to rest."""
        traits = self._known.traits[scene.catalog]
        return (traits.sound and traits.listed > 0) or self._rests(scene)

    def _rests(self, scene: Scene) -> bool:
        """Unsupported, or parked where nothing but credentials helps."""
        traits = self._known.traits[scene.catalog]
        linked = traits.phase not in (Phase.DISCONNECTED, Phase.INITIALIZING)
        return linked and (traits.phase is Phase.UNSUPPORTED or traits.parked)

    def catalog(self, scene: Scene) -> Catalog:
        """The catalog of a scene, in normal form."""
        return self._known.catalog(scene.catalog)

    def show(self, scene: Scene) -> str:
        """The scene in one line. Contents are shown by age: 0 is what the server lists now."""
        traits, catalog = self._known.traits[scene.catalog], self.catalog(scene)
        words = [catalog.phase.value]
        if catalog.doubt is not None:
            words.append("doubted")
        if catalog.snapshot is not None:
            shown = ",".join(str(item.canonical_json[0]) for item in catalog.snapshot.items)
            words.append(f"list {shown}{'' if catalog.snapshot.clean else ' (spoiled)'}")
        if catalog.walk is not None:
            spoiled = ", spoiled" if catalog.walk.spoiled else ""
            words.append(f"page {traits.page} asked for{spoiled}")
        return ", ".join(words) + _wire_text(scene)


def _wire_text(scene: Scene) -> str:
    notices = "notice " * scene.ahead
    if scene.answer < _NO_ANSWER:
        notices += f"failure: {FAILING[-2 - scene.answer]} "
    elif scene.answer > _NO_ANSWER:
        notices += f"page of age {scene.answer} "
    notices += "notice " * scene.behind
    told = f" | wire: {notices.strip()}" if notices else ""
    for name, holds in (("notice owed", scene.owed), ("cut", scene.cut), ("push", scene.ending)):
        if holds:
            told += f" | {name}"
    return told
