"""What the replayed machine holds, in plain words. Texts of a peer are bounded and escaped."""

from relist.check.replayed import Replayed
from relist.check.walked import Labels, labels_of
from relist.messages import NAMES
from relist.values import Kind, LinkPhase, Phase

_ITEMS_MAX = 8
_CHARS_MAX = 60


def held(replayed: Replayed, kind: Kind | None) -> str:
    """What the machine holds of this kind (None: of the link), and what it would do."""
    machine = replayed.machine
    link = machine.link
    told = f"link {link.phase.value}"
    if link.phase is LinkPhase.LIVE:
        told += f" at {link.version}"
    if kind is None:
        return f"{told}; notices {machine.session.listen.phase.value}"
    catalog = machine.session.catalog(kind)
    doubt = "no doubt" if catalog.doubt is None else f"doubted ({catalog.doubt.value})"
    told += f"; {kind.value} {catalog.phase.value}"
    if catalog.snapshot is None:
        told += ", no list to show"
    else:
        listed = shown(labels_of(catalog.snapshot.items))
        told += f", generation {catalog.generation}, {doubt}, to show {listed}"
    return f"{told}; {_sends(replayed, kind, catalog.phase)}"


def _sends(replayed: Replayed, kind: Kind, phase: Phase) -> str:
    method = NAMES[kind].method
    if phase is Phase.UNSUPPORTED:
        return f"{method} may not be sent"
    if phase in (Phase.DISCONNECTED, Phase.INITIALIZING):
        return f"{method} may not be sent yet"
    cursors = [one.cursor for one in replayed.walks[kind].open if one.cursor is not None]
    also = "".join(
        f", or with the cursor {quoted(cursor)}" for cursor in dict.fromkeys(cursors[-2:])
    )
    return f"{method} may be sent without a cursor{also}"


def shown(labels: Labels) -> str:
    """Items as ``name@version``, or with the whole description where that is no version."""
    texts = [_label(*label) for label in labels[:_ITEMS_MAX]]
    more = f", and {len(labels) - _ITEMS_MAX} more" if len(labels) > _ITEMS_MAX else ""
    return "[" + ", ".join(texts) + more + "]"


def _label(name: str, description: str) -> str:
    whole = description.rpartition("@")[0] == name
    return safe(description if whole else f"{name} ({description})")


def quoted(value: object) -> str:
    """A text of a peer in quotation marks."""
    return f"'{safe(value)}'" if isinstance(value, str) else "what is no text"


def safe(text: str) -> str:
    """A text of a peer, cut, and without what is no printable character."""
    cut = text[:_CHARS_MAX]
    return cut if cut.isprintable() else ascii(cut)
