"""Which node of a tree each record comes to."""
from __future__ import annotations

from dit_dask.kernels.compiled import compiled, long
from dit_dask.kernels.weigh import Ints, Longs


@compiled
def descend(attribute: Ints, first_child: Ints, children: Ints, low: Ints, high: Ints, codes: Ints, node: Longs) -> None:
    """Write to node[n] where codes[n, d] come to: to the child whose range has the code, as long as there is one.

    A node splits attribute[node], or -1 if it is a leaf, and has so many children from its first one on; the code of that
    attribute is from low[child] to high[child] in the records of a child.
    """
    for record in range(len(codes)):
        at, child = long(0), long(0)
        while child >= 0:
            at, child = child, long(-1)
            if attribute[at] >= 0:
                code = codes[record, attribute[at]]
                for below in range(first_child[at], first_child[at] + children[at]):
                    if low[below] <= code <= high[below]:
                        child = long(below)
                        break
        node[record] = at
