"""From a checked case file to values: its pages, steps and expectations."""

from collections.abc import Callable, Mapping
from typing import Any

from relist.check import expect as x
from relist.check.history import LIST_METHODS, RequestMatch
from relist_conformance import said
from relist_conformance import steps as s

Raw = Mapping[str, Any]


def pages_of(raw: Raw) -> dict[str, s.Pages]:
    """The pages of each kind that is mentioned."""
    return {kind: tuple(tuple(page) for page in raw[kind]) for kind in LIST_METHODS if kind in raw}


def rule_of(raw: Raw) -> Mapping[str, str]:
    """By revision the rule that a finding names: the first one, where the case does not say."""
    named: Mapping[str, str] = raw.get("rule", {})
    return named or dict.fromkeys(raw["revisions"], str(raw["rules"][0]))


# --- steps ---


def step_of(raw: Raw) -> s.Step:
    """One step."""
    op = next(key for key in raw if key != "when")
    given: Raw = raw[op] or {}
    fields = _READ[op](given) if op in _READ else _plain(given)
    when: dict[str, Any] = {
        key: names if isinstance(names, str) else tuple(names)
        for key, names in raw.get("when", {}).items()
    }
    return s.STEPS[op](**fields, **when)


_NAMES = {"as": "name", "else": "otherwise"}


def _plain(given: Raw) -> dict[str, Any]:
    fields: dict[str, Any] = {_NAMES.get(key, key): value for key, value in given.items()}
    for key in ("request", "to"):
        if isinstance(fields.get(key), Mapping):
            fields[key] = match_of(fields[key])
    if isinstance(fields.get("until"), list):
        fields["until"] = tuple(fields["until"])
    return fields


def match_of(raw: Raw) -> RequestMatch:
    """Which requests are meant."""
    return RequestMatch(**raw)


def _answer(given: Raw) -> dict[str, Any]:
    delivery: dict[str, Any] = {key: given[key] for key in _DELIVERY if key in given}
    if "stream" in given:
        how: Raw = given["stream"] or {}
        delivery["stream"] = s.Stream(**how)
    made = {key: given[key] for key in ("nth", "times") if key in given}
    if made.get("times") == "always":
        made["times"] = None
    return {
        "request": match_of(given["request"]),
        "content": _content(given),
        "delivery": s.Delivery(**delivery),
        **made,
    }


_DELIVERY = ("hold", "after_ms", "never", "cut", "notify", "notify_first")


def _content(given: Raw) -> s.Content:
    fields: dict[str, Any] = {}
    for key, read in _CONTENT.items():
        if key in given:
            fields["put" if key == "set" else key] = read(given[key])
    return s.Content(**fields)


def _page(raw: Raw) -> said.Page:
    return said.Page(items=tuple(raw["items"]), next=raw.get("next"))


_CONTENT: Mapping[str, Callable[[Any], Any]] = {
    "page": _page,
    "error": lambda raw: said.Error(**raw),
    "status": lambda raw: said.Status(**raw),
    "text": str,
    "grant": tuple,
    "set": dict,
    "drop": tuple,
    "add": tuple,
    "fill": lambda raw: said.Fill(**raw),
    "malformed": bool,
}


def _change(given: Raw) -> dict[str, Any]:
    return {
        "pages": pages_of(given),
        "contents": given.get("contents", {}),
        "setup": {key: given[key] for key in _SETUP if key in given},
        "principal": given.get("for", ""),
        "notify": given.get("notify", False),
    }


def _about(given: Raw) -> dict[str, Any]:
    """What has a topic: a kind, or the URI of a resource."""
    return {("topic" if key in ("kind", "uri") else key): given[key] for key in given}


_SETUP = ("capabilities", "server_info", "ttl_ms", "cache_scope")

_READ: Mapping[str, Callable[[Raw], dict[str, Any]]] = {
    "answer": _answer,
    "change": _change,
    "covered": _about,
    "notify": _about,
    "credentials": lambda given: {"principal": given["of"]},
}


# --- expectations ---


def expectation_of(raw: Raw, case: Raw) -> x.Expectation:
    """One expectation, with what it takes over from its case."""
    ((op, given),) = raw.items()
    rule = given.get("rule")
    common: dict[str, Any] = {
        "rule": rule_of(case) if rule is None else dict.fromkeys(case["revisions"], rule),
        "severity": case["severity"] | given.get("severity", {}),
        "anomaly": given.get("anomaly", case["anomaly"]),
        "timed": given.get("timed", False),
        **{key: given.get(key) for key in ("since", "before", "given")},
    }
    own = {key: value for key, value in given.items() if key not in common}
    return _EXPECT[op](own, common)


def _requested(own: Raw, common: Raw) -> x.Expectation:
    counts = {key: own[key] for key in ("at_least", "at_most") if key in own}
    if set(counts) == {"at_most"}:
        counts["at_least"] = 0
    request = {key: value for key, value in own.items() if key not in counts}
    return x.Requested(request=match_of(request), **counts, **common)


def _each(own: Raw, common: Raw) -> x.Expectation:
    return x.Each(request=match_of(own["request"]), like=match_of(own["is"]), **common)


def _cancelled(own: Raw, common: Raw) -> x.Expectation:
    return x.Cancelled(request=match_of(own["request"]), **common)


def _not_cancelled(own: Raw, common: Raw) -> x.Expectation:
    return x.Uncancelled(request=match_of(own["request"]), **common)


def _answered(own: Raw, common: Raw) -> x.Expectation:
    sets = own["one_of"] if "one_of" in own else [own["items"]]
    one_of = tuple(None if items is None else tuple(items) for items in sets)
    more = {key: own[key] for key in ("which", "in_order", "or_error") if key in own}
    return x.Answered(of=own["of"], one_of=one_of, **more, **common)


_EXPECT: Mapping[str, Callable[[Raw, Raw], x.Expectation]] = {
    "requested": _requested,
    "each": _each,
    "distinct_ids": lambda own, common: x.DistinctIds(**own, **common),
    "well_formed": lambda own, common: x.WellFormed(**own, **common),
    "cancelled": _cancelled,
    "new_ids": lambda own, common: x.NewIds(request=match_of(own["request"]), **common),
    "not_cancelled": _not_cancelled,
    "answer": _answered,
    "full_walk": lambda own, common: x.FullWalk(**own, **common),
    "no_duplicates": lambda own, common: x.NoDuplicates(**own, **common),
    "never_requested": lambda own, common: x.NeverRequested(
        methods=tuple(own["methods"]), **common
    ),
    "order": lambda own, common: x.Ordered(
        first=match_of(own["first"]), then=match_of(own["then"]), **common
    ),
    "outcome": lambda own, common: x.Outcome(of=own["of"], one_of=tuple(own["one_of"]), **common),
    "opinion": lambda own, common: x.Opinion(of=own["of"], one_of=tuple(own["one_of"]), **common),
    "paced": lambda own, common: x.Paced(
        request=match_of(own["request"]), backoff=own.get("backoff", False), **common
    ),
}
