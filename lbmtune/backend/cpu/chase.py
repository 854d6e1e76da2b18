"""Support module of generated CPU kernels of the sparse family with pointer chasing: nodes are values of the kernel.

A list has a row of one word per node for one step forward along each axis; a neighbour at a corner is the next of a
neighbour (Geier, Schoenherr 2017).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import types
from numba.extending import models, register_model

from lbmtune.backend.cpu.lists import ANY, WIDE, WORD, Access, Site, of_lanes


class NodeVector(types.Type):  # type: ignore[misc]
    """The Numba type of the numbers of several nodes; the type of one is uint32."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        super().__init__(name=f"NodeVector({lanes})")


@register_model(NodeVector)
class _NodeVectorModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: NodeVector) -> None:
        super().__init__(manager, kind, of_lanes(WORD, kind.lanes))


class Chase(NamedTuple):
    """Access functions. `row` is the start of a row of the list.

    led_by(links, at): the nodes that the words from `at` on lead to; led_on(links, row, nodes): those that lead on
    from there. gather_at(array, slot, nodes), scatter_at(array, slot, nodes, value): elements of nodes in a slot that
    starts at an element. gather_at_cut(array, slot, cut, nodes, links, flags, bit), scatter_at_cut likewise: of the
    slot that starts at `cut` if the bit of the words from `flags` on is set.
    """

    led_by: Any
    led_on: Any
    gather_at: Any
    gather_at_cut: Any
    scatter_at: Any
    scatter_at_cut: Any


def nodes(compute: str, lanes: int, width: int, group: int, form: str, codes: str = "") -> Chase:
    """Return the access functions, for the arguments of `lists.nodes`."""
    access = Access(getattr(types, compute), lanes, width, group, form == "vector" and lanes > 1, codes)
    value, integer = access.value, types.int64
    node, cut_node = (ANY, integer, ANY), (ANY, integer, integer, ANY, ANY, integer, integer)
    found = NodeVector(lanes) if lanes > 1 else types.uint32
    return Chase(
        led_by=access.function(found, (ANY, integer), lambda s: s.words(0, 1)),
        led_on=access.function(found, (ANY, integer, ANY), _led_on),
        gather_at=access.function(value, node, lambda s: s.read(s.element(s.values[2]))),
        gather_at_cut=access.function(value, cut_node, lambda s: s.read(s.element(s.values[3], (4, 5, 6)))),
        scatter_at=access.function(types.void, (*node, value), lambda s: s.write(s.element(s.values[2]), 3)),
        scatter_at_cut=access.function(
            types.void, (*cut_node, value), lambda s: s.write(s.element(s.values[3], (4, 5, 6)), 7)
        ),
    )


def _led_on(site: Site) -> Any:
    at = site.builder.zext(site.values[2], of_lanes(WIDE, site.access.lanes))
    return site.loaded(site.builder.add(at, site.wide(site.values[1])))
