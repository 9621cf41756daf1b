"""Cycles of a directed graph: nodes are numbers, ``targets[node]`` is where its edges lead."""

from collections.abc import Iterator, Sequence

Targets = Sequence[tuple[int, ...]]


def surviving(targets: Targets) -> frozenset[int]:
    """The nodes from which one can go on for ever: all but those whose every way ends."""
    sources: dict[int, list[int]] = {}
    degree = [len(edges) for edges in targets]
    for node, edges in enumerate(targets):
        for target in edges:
            sources.setdefault(target, []).append(node)
    ended = [node for node, count in enumerate(degree) if count == 0]
    for node in ended:
        for source in sources.get(node, ()):
            degree[source] -= 1
            if degree[source] == 0:
                ended.append(source)
    return frozenset(node for node, count in enumerate(degree) if count > 0)


def components(targets: Targets, nodes: frozenset[int]) -> Iterator[frozenset[int]]:
    """The strongly connected components among the nodes that hold a cycle (Tarjan)."""
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    open_nodes: set[int] = set()
    for root in sorted(nodes):
        if root in order:
            continue
        order[root] = low[root] = len(order)
        stack.append(root)
        open_nodes.add(root)
        work = [(root, iter(targets[root]))]
        while work:
            node, edges = work[-1]
            for target in edges:
                if target not in nodes:
                    continue
                if target not in order:
                    order[target] = low[target] = len(order)
                    stack.append(target)
                    open_nodes.add(target)
                    work.append((target, iter(targets[target])))
                    break
                if target in open_nodes:
                    low[node] = min(low[node], order[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    component = _pop_to(node, stack, open_nodes)
                    if len(component) > 1 or node in targets[node]:
                        yield component


def _pop_to(node: int, stack: list[int], open_nodes: set[int]) -> frozenset[int]:
    component: set[int] = set()
    while node not in component:
        component.add(stack.pop())
    open_nodes -= component
    return frozenset(component)
