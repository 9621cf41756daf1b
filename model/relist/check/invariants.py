"""What must hold on every edge: named checks, shared by the explorer, Hypothesis and the judge.

A check looks at one edge (one step of one catalog) and returns None, or a short text that says what
is wrong. Those in ALWAYS hold in every environment: whatever the wire loses, repeats, delays or
reorders, and whatever the peer says. What depends on the environment (is the list current? is it
torn?) stands with the worlds that have one.
"""

from collections.abc import Callable, Iterator, Mapping

from relist import inputs as i
from relist.check.edge import Edge
from relist.check.heeded import HEEDED
from relist.inputs import size_bytes
from relist.values import WALKING, Doubt, Era, Item, Items, Parked, Phase, Scope, Wish

Check = Callable[[Edge], str | None]


def broken(edge: Edge) -> Iterator[tuple[str, str]]:
    """The name and the complaint of every check in ALWAYS that this edge breaks."""
    for name, check in ALWAYS.items():
        complaint = check(edge)
        if complaint is not None:
            yield name, complaint


def single_flight(edge: Edge) -> str | None:
    """One outstanding request while walking, none otherwise. Rule: ATOM-06.

    A request is settled by its answer or by AbandonWalk before another is made; no serial is used
    twice.
    """
    before, after = edge.before, edge.after
    if (after.phase in WALKING) is (after.walk is None):
        return f"{after.phase.value} with{'out' if after.walk is None else ''} a walk"
    requests, abandoned = edge.requests, edge.abandoned
    outstanding = None if before.walk is None or edge.answered else before.walk.serial
    if abandoned not in ((), (outstanding,)):
        return f"abandons {abandoned} while {outstanding} is outstanding"
    if len(requests) > 1:
        return f"{len(requests)} requests in one step"
    now = None if after.walk is None else after.walk.serial
    if not requests:
        kept = None if abandoned else outstanding
        return None if now == kept else f"{kept} is outstanding, the walk waits for {now}"
    if outstanding is not None and not abandoned:
        return f"requests {requests[0].serial} while {outstanding} is outstanding"
    if not before.serial < requests[0].serial == now == after.serial:
        return f"requests {requests[0].serial} after {before.serial}, the walk waits for {now}"
    return None


def walk_from_the_start(edge: Edge) -> str | None:
    """A walk begins without a cursor and goes on with the cursor of its last page, unchanged.

    Rule: DISC-02, DISC-07, DISC-11, DISC-18, NOTE-22, TTL-19.
    """
    walk, old, heard = edge.after.walk, edge.before.walk, edge.heard
    if walk is None:
        return None
    if not edge.requests:
        same = old is not None and (walk.cursor, walk.pages) == (old.cursor, old.pages)
        return None if same else "the open walk changed its pages without a request"
    (request,) = edge.requests
    if request.cursor != walk.cursor:
        return f"requests cursor {request.cursor!r}, the walk holds {walk.cursor!r}"
    if request.cursor is None:
        return "a walk begins with pages" if walk.pages or walk.count or walk.spoiled else None
    if old is None or not isinstance(heard, i.PageArrived) or not edge.answered:
        return f"cursor {request.cursor!r} from nowhere"
    if request.cursor != heard.next_cursor:
        return f"requests cursor {request.cursor!r}, the page named {heard.next_cursor!r}"
    if walk.pages != (*old.pages, heard.items):
        return "the page was not put aside as it came"
    return None


def spoiled_stays_spoiled(edge: Edge) -> str | None:
    """A walk that was spoiled, or began uncovered, is so until it ends. Rule: NOTE-07."""
    walk, old = edge.after.walk, edge.before.walk
    if walk is None or old is None or edge.begins:
        return None
    if old.spoiled and not walk.spoiled:
        return "a spoiled walk goes on unspoiled"
    if (walk.covered, walk.serves) != (old.covered, old.serves):
        return "an open walk changed what it began as"
    return None


def complete_or_nothing(edge: Edge) -> str | None:
    """What is published or held back is one whole walk, from first page to last.

    The one exception of shape, not of substance: a candidate that was held back earlier.
    Rule: ATOM-01, ATOM-02, RES-15, TTL-28.
    """
    before, after, publish, whole = edge.before, edge.after, edge.published, edge.whole
    if publish is not None:
        if after.snapshot != publish.snapshot:
            return "another list is held than was published"
        if whole is None and publish.snapshot != before.candidate:
            return "published without the end of a walk"
        if whole is not None and not _holds(publish.snapshot.items, whole):
            return "the published list is not the walk"
    fresh = after.candidate is not None and after.candidate is not before.candidate
    if fresh and after.candidate is not None:
        if whole is None or after.candidate.clean:
            return "held back something else than a spoiled walk"
        if not _holds(after.candidate.items, whole):
            return "the list held back is not the walk"
    return None


def _holds(items: Items, pages: tuple[Items, ...]) -> bool:
    """Whether the list has each key of the pages once, with a definition that was on a page."""
    listed: set[Item] = {item for page in pages for item in page}
    keys = {item.key for item in listed}
    return set(items) <= listed and len(items) == len(keys) == len({item.key for item in items})


def fresh_is_undoubted(edge: Edge) -> str | None:
    """FRESH means: a clean list, and no doubt but time. Rule: STATE-02, STATE-07, ATOM-10.

    It is entered by the clean end of an unspoiled walk, or by a kept list that still holds.
    """
    before, after = edge.before, edge.after
    publish = edge.published
    if after.phase is Phase.FRESH:
        if after.doubt is not None:
            return f"FRESH and {after.doubt.value}"
        if after.snapshot is None or not after.snapshot.clean:
            return "FRESH without a clean list"
        kept = before.phase in (Phase.FRESH, Phase.INITIALIZING)
        if publish is None and not (kept and after.snapshot is before.snapshot):
            return f"{before.phase.value} became FRESH without a list of its own"
    if publish is not None and publish.snapshot.clean:
        if before.walk is None or before.walk.spoiled or edge.whole is None:
            return "published as clean what was not the end of a clean walk"
        if after.doubt is not None:
            return f"a clean list was published, and is {after.doubt.value}"
    return None


def doubt_sticks(edge: Edge) -> str | None:
    """The first doubt of a list stays until a clean list replaces it or it is withdrawn.

    A held list that becomes doubted is announced so, once. Rule: STATE-02.
    """
    before, after, publish = edge.before, edge.after, edge.published
    gone = edge.withdrawn or after.phase is Phase.UNSUPPORTED
    cleared = gone or (publish is not None and publish.snapshot.clean)
    if before.doubt is not None and not cleared and after.doubt is not before.doubt:
        return f"doubt {before.doubt.value} became {after.doubt and after.doubt.value}"
    news = before.doubt is None and after.doubt is not None and after.snapshot is not None
    expected = (after.doubt,) if news else ()
    if edge.doubted != expected and not edge.withdrawn:
        return f"announced {edge.doubted} instead of {expected}"
    return None


def doubt_is_heeded(edge: Edge) -> str | None:
    """A reason for doubt ends FRESH and spoils an open walk. Rule: NOTE-02, NOTE-07, SUB-27.

    Not counted: a notice the server never promised, and a proof about another generation. A link
    that goes leaves doubt of every legacy list, and of any that push vouched for. Rule: REC-05.
    """
    before, after, heard = edge.before, edge.after, edge.heard
    if isinstance(heard, i.LinkOpened | i.LinkLost) and after.snapshot and after.doubt is None:
        leant = before.vouched or before.standing.era is Era.LEGACY
        return "the list leant on a link that is gone, and is not doubted" if leant else None
    if not isinstance(heard, i.DoubtInput):
        return None
    if isinstance(heard, i.ListChangedHeard) and not (
        before.standing.push or before.standing.covered
    ):
        return None
    if isinstance(heard, i.StalenessProved) and (
        before.snapshot is None or heard.generation != before.snapshot.generation
    ):
        return None
    if before.phase is Phase.FRESH and after.doubt is None:
        return "FRESH ignored a reason for doubt"
    if before.phase in WALKING and (after.walk is None or not after.walk.spoiled):
        return "the open walk was not spoiled"
    return None


def generation_rises(edge: Edge) -> str | None:
    """The generation rises by one exactly when a published list differs.

    Rule: ATOM-04, ATOM-19, DISC-33, NOTE-20.
    """
    before, after, publish = edge.before, edge.after, edge.published
    if publish is None:
        same = after.generation == before.generation
        return None if same else f"generation {after.generation} was never published"
    held, new = before.snapshot, publish.snapshot
    unchanged = held is not None and (
        frozenset(held.items) == frozenset(new.items)
        and held.scope is new.scope
        and held.ambiguous == new.ambiguous
    )
    expected = before.generation + (not unchanged)
    if not expected == new.generation == after.generation or publish.changed is unchanged:
        return f"generation {before.generation} -> {after.generation}, unchanged {unchanged}"
    if unchanged and held is not None and new.items is not held.items:
        return "an unchanged list lost its identity"
    return None


def keep_last_good(edge: Edge) -> str | None:
    """A list goes only when another is published or it may not be shown any more. Rule: FAIL-01."""
    before, after, heard = edge.before, edge.after, edge.heard
    publish = edge.published
    if edge.withdrawn:
        if before.snapshot is None or after.snapshot is not None:
            return "withdrawn, with a list held after or none before"
        foreign = isinstance(heard, i.CredentialsChanged) and (
            before.snapshot.scope is Scope.PRIVATE
        )
        if not foreign and after.phase is not Phase.UNSUPPORTED:
            return "withdrawn, though supported and not private to somebody else"
    elif publish is None and after.snapshot is not before.snapshot:
        return "the list changed or went without being published or withdrawn"
    return None


def gated_by_capability(edge: Edge) -> str | None:
    """Nothing is requested or shown of an undeclared kind, nor before listing is allowed.

    Rule: CAP-01, CAP-02, CAP-13, LIFE-03, STATE-09.
    """
    before, after = edge.before, edge.after
    if after.phase is Phase.UNSUPPORTED and (after.walk or after.snapshot or after.candidate):
        return "unsupported, with a walk or a list"
    if not edge.requests:
        return None
    if not after.standing.declared:
        return "requests a kind that was not declared"
    offered = isinstance(edge.heard, i.ListingAllowed | i.CapabilitiesChanged)
    if before.phase not in (*WALKING, Phase.FRESH, Phase.STALE) and not offered:
        return f"requests in {before.phase.value}"
    return None


def private_stays_private(edge: Edge) -> str | None:
    """What is private is held for the present partition only; public needs every page to say so.

    Rule: AUTH-03, TTL-23, TTL-26.
    """
    after, heard, publish = edge.after, edge.heard, edge.published
    for listed in (after.snapshot, after.candidate):
        foreign = listed is not None and listed.partition != after.standing.partition
        if listed is not None and foreign and listed.scope is Scope.PRIVATE:
            return f"holds what is private to {listed.partition!r}"
    if isinstance(heard, i.CredentialsChanged) and (after.walk or after.candidate):
        return "a walk or a candidate outlived its credentials"
    if publish is not None and edge.whole is not None and isinstance(heard, i.PageArrived):
        walk, standing = edge.before.walk, edge.before.standing
        public = (
            walk is not None
            and walk.scope is heard.scope is Scope.PUBLIC
            and standing.era is Era.MODERN
        )
        if (publish.snapshot.scope is Scope.PUBLIC) is not public:
            return f"published as {publish.snapshot.scope.value}"
        if publish.snapshot.partition != standing.partition:
            return "published for another partition"
    return None


def bounded_walk(edge: Edge) -> str | None:
    """A walk is bounded by pages, items, bytes and time, and time is kept.

    Rule: DISC-16, FAIL-09, FAIL-10.
    """
    walk, old, policy, now_ms = edge.after.walk, edge.before.walk, edge.policy, edge.heard.now_ms
    if walk is None:
        listed = () if edge.after.snapshot is None else edge.after.snapshot.items
        over = len(listed) > policy.items_max or size_bytes(listed) > policy.bytes_max
        return "published more items or bytes than the bound" if over else None
    pages, items, size = len(walk.pages), walk.count, walk.size_bytes
    if pages >= policy.pages_max or items > policy.items_max or size > policy.bytes_max:
        return f"an open walk of {pages} pages, {items} items, {size} bytes"
    if (items, size) != (sum(map(len, walk.pages)), sum(map(size_bytes, walk.pages))):
        return "items or bytes were miscounted"
    if edge.requests and walk.request_limit_at_ms != now_ms + policy.request_limit_ms:
        return "the request has another limit than policy says"
    if edge.begins:
        limited = walk.walk_limit_at_ms == now_ms + policy.walk_limit_ms
        return None if limited else "the walk has another limit than policy says"
    if old is None or walk.walk_limit_at_ms != old.walk_limit_at_ms:
        return "the limit of an open walk moved"
    if isinstance(edge.heard, i.TimePassed) and now_ms >= min(
        walk.request_limit_at_ms, walk.walk_limit_at_ms
    ):
        return "waits beyond its limit"
    return None


_CAUSES = i.ListingAllowed | i.CapabilitiesChanged | i.WishInput | i.TimePassed | i.PageArrived


def bounded_traffic(edge: Edge) -> str | None:
    """A walk begins for a cause: permission, a wish, or a time that has come.

    No notice begins one or moves a time that is set, no call breaks a failure backoff. A parked
    catalog is tried for an explicit refresh only. It is un-parked by an answer or other
    credentials, and by another link or offer where the server had refused the request as such.
    Rule: FAIL-20, NOTE-19, TTL-36.
    """
    before, after, heard = edge.before, edge.after, edge.heard
    insists = isinstance(heard, i.RefreshWanted) or before.wanted is Wish.REFRESH
    released = edge.answered or isinstance(heard, i.CredentialsChanged)
    new_link = before.pacing.parked is Parked.REQUEST and isinstance(
        heard, i.LinkOpened | i.LinkLost | i.CapabilitiesChanged
    )
    unparked = before.pacing.parked is not None and after.pacing.parked is None
    if unparked and not (insists or released or new_link):
        return "a parked catalog was un-parked"
    further = isinstance(heard, i.ListChangedHeard) and before.phase is Phase.STALE
    if further and (after.pacing != before.pacing or (before.doubt and after is not before)):
        return "a further notice changed something"
    if not edge.begins:
        return None
    if not isinstance(heard, _CAUSES):
        return f"a walk begins on {type(heard).__name__}"
    due_at_ms = before.pacing.due_at_ms
    backing_off = before.pacing.failures and due_at_ms is not None and heard.now_ms < due_at_ms
    if isinstance(heard, i.VerificationWanted) and before.doubt and backing_off:
        return "a call broke the failure backoff"
    if isinstance(heard, i.TimePassed) and (due_at_ms is None or heard.now_ms < due_at_ms):
        return f"a walk begins by itself, due at {due_at_ms}"
    if isinstance(heard, i.PageArrived) and before.wanted is None:
        return "a walk begins on a page, though nobody asked"
    if before.pacing.parked is not None and not insists and edge.published is None:
        return "a parked catalog begins a walk that nobody insisted on"
    return None


def bounded_lag(edge: Edge) -> str | None:
    """A stale catalog has a time for its next walk, and a notice is served within the longest gap.

    Not while parked, backing off, or lazy with nobody asking.

    Rule: ATOM-20, NOTE-03, NOTE-09, STATE-14.
    """
    before, after, policy, now_ms = edge.before, edge.after, edge.policy, edge.heard.now_ms
    if (
        after.phase is not Phase.STALE
        or after.pacing.parked is not None
        or (policy.lazy and after.wanted is None)
    ):
        return None
    due_at_ms = after.pacing.due_at_ms
    if due_at_ms is None:
        return None if policy.lazy else "stale, and no walk will ever begin"
    if before.phase is Phase.STALE or after.pacing.failures:
        return None
    longest_ms = max(policy.gap_max_ms, policy.gather_ms)
    if after.doubt is Doubt.UNCOVERED:
        longest_ms = max(longest_ms, policy.uncovered_grace_ms)
    return None if due_at_ms - now_ms <= longest_ms else f"waits {due_at_ms - now_ms} ms"


ALWAYS: Mapping[str, Check] = {
    "single-flight": single_flight,
    "walk-from-the-start": walk_from_the_start,
    "spoiled-stays-spoiled": spoiled_stays_spoiled,
    "complete-or-nothing": complete_or_nothing,
    "fresh-is-undoubted": fresh_is_undoubted,
    "doubt-sticks": doubt_sticks,
    "doubt-is-heeded": doubt_is_heeded,
    "generation-rises": generation_rises,
    "keep-last-good": keep_last_good,
    "gated-by-capability": gated_by_capability,
    "private-stays-private": private_stays_private,
    "bounded-walk": bounded_walk,
    "bounded-traffic": bounded_traffic,
    "bounded-lag": bounded_lag,
    **HEEDED,
}
