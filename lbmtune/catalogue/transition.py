"""Old names of knobs and kinds, until nothing reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

_FETCH = {"none": 0, "registers": 1, "cp_async": 2, "bulk": 3}


class OldNames:
    """Old attribute names."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def _first(self, names: tuple[str, ...], usual: Any) -> Any:
        return next((getattr(self, n) for n in names if n in getattr(type(self), "__dataclass_fields__", {})), usual)

    marches: Any = property(lambda s: s.family == "temporal-blocking")
    resident: Any = property(lambda s: s.family == "persistent")
    by_faces: Any = property(lambda s: s.family == "face-exchange")
    moments_on_chip: Any = property(lambda s: s.resident and s.of_moments)
    exchanged: Any = property(lambda s: bool(s.pointer_swap))
    chased: Any = property(lambda s: s.links == "three_pointers")
    march: Any = property(lambda s: s._first(("z_cells", "sites_per_thread", "chunk_planes", "tile_planes"), 1))
    prefetch = property(
        lambda s: _FETCH[s.plane_fetch] if s.marches else s._first(("prefetch_cells", "prefetch_sites"), 0)
    )
    fetch: Any = property(lambda s: s._first(("prefetch_to",), "registers"))
    copies_ahead: Any = property(lambda s: s.fetch == "shared")
    planes_on_chip: Any = property(lambda s: s.prefetch in (2, 3) and s.marches)
    in_bulk: Any = property(lambda s: s.prefetch == 3 and s.marches)
    meeting: Any = property(lambda s: s._first(("grid_sync",), "all"))
    held: Any = property(lambda s: s._first(("register_planes",), 0))
    barrier: Any = property(lambda s: s._first(("warp_sync",), "block"))
    pending: Any = property(lambda s: s._first(("z_buffer",), "registers"))
    beyond: Any = property(lambda s: s._first(("overread",), 0))
    chunks: Any = property(
        lambda s: {"uniform": "even", "tapered": "falling"}[s._first(("chunk_schedule",), "uniform")]
    )
    halo: Any = property(lambda s: "faces" if s.by_faces else "computed")
    addressing: Any = property(lambda s: "indirect" if s.indirect else "direct")
    parity: Any = property(lambda s: "pointers" if s.pointer_swap else "kernels")
    neighbours: Any = property(lambda s: "chase" if s.chased else "all")
    reads = property(
        lambda s: {"one": "once", "two": "twice", "pipelined": "ahead", "minimal": "lean"}[s.collision_passes]
    )
    far_ends: Any = property(lambda s: {"in_loop": "inside", "peeled": "between"}[s.row_tail])
    width: Any = property(lambda s: getattr(s.layout, "width", 1))
    padding: Any = property(lambda s: getattr(s.layout, "padding", 0))
    group: Any = property(lambda s: getattr(s.layout, "group", 1))
    stride: Any = property(lambda s: getattr(s.layout, "stride", 0))
    layout_tile: Any = property(lambda s: getattr(s.layout, "layout_tile", (1, 1, 1)))
    steps: Any = 1
    rows: Any = 1
    pack: Any = 1
    representation: Any = "populations"
