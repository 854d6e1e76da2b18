"""A measured device: what the model knows of it. Plain TOML, with the units in the keys."""

from __future__ import annotations

from dataclasses import dataclass, field

from lbmtune.records import Conditions, Environment

ACCESS_BYTES = 16
"""The most that a thread of a GPU loads or stores at once."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """What micro-benchmarks of a GPU found beyond bandwidths of aligned streams. Rates count reads and writes.

    runs: copies of 19 streams of which so many bytes lie together before those of the next one begin, by access width
    and these bytes ('4 of 128'; '4' streams that lie apart);
    threads: the same of streams that lie apart while only so many threads share a multiprocessor ('4 by 512');
    displaced: copies of which loads, stores, both of one array, or none are displaced, a third of the streams each by
    one access back, by none, and by one forward, and by as many rows ('2 of 64 stores by 64', '8 none by 256', by
    threads of a block that are side by side), or in one array by rows alone ('2 rows by 64'), or not at all
    ('2 stay by 16'); by threads that take eight accesses one after another ('4 loads by 64 walking'); and of arrays of
    structures of so many elements ('4 of 4 x 27 in place by 64');
    shuffled: the same by vectors of elements of so many bytes, which are displaced by an element each ('4 x 2 stores by
    64', '2 x 8 of 512 in place by 64 walking');
    listed: copies whose loads, or stores, or both in place find their place in a list ('4 loads', '8 in place'),
    'displaced' where it is that of the next access, 'ahead' where words of the list are asked for before, the list
    counted;
    local: local memory, written and read, that fits in the L1 cache, in the L2 cache ('L1', 'L2'), or nowhere
    ('memory'); l1_bytes: of a multiprocessor, shared memory included; latency_s: of a load from memory; l2_latency_s:
    from the L2 cache;
    instructions_per_s: of warps, whole device, by kind, warps of a multiprocessor and instructions that do not wait for
    each other ('multiply-add, 8 warps of 8'; 'meeting' where warps meet after each 128 of them);
    stages_s: of a stage of so many warps, one block on a multiprocessor, after which each exchanges eight words with
    those beside it, by whom it waits for before it reads them ('none by 8', 'block by 12', 'neighbours by 16');
    overtaken_s: of a multiprocessor, for a word of local memory of a warp that memory has to bring, loaded two at a
    time and stored anew, behind its load or while that is on its way, by so many warps ('used by 16', 'overtaken by
    8');
    meeting_s: from what a block sends until all blocks have met and read it; small_s: of a launch that copies so many
    bytes, read and written, launch after launch, by the way of launching ('call 4980736', 'graph ', 'dependent ');
    spilled: copies whose threads write so many bytes of local memory besides and read them again, which is not counted,
    by access width, threads of a multiprocessor and these bytes ('4 by 1536 of 96', '8 by 1152 of 0 walking');
    again: copies that read each tile again when so many bytes have been read and left since; that is not counted;
    holes: copies of words that leave out one of each of so many sectors in 64, to another array or in place
    ('apart 8', 'in place 64'); what is left out is counted;
    pieces: copies of words that store so many sectors in 64 in two pieces, so many bytes after each other, which are
    read and written in between ('4980736 16');
    structures: copies of arrays of structures of so many elements, displaced by one and by 65536 structures (`side` as
    of displaced), by so many threads of a multiprocessor that are all there are, each of which keeps so many bytes of
    local memory besides ('8 x 19 by 512 of 96 in place');
    planes: the same by as many threads as have room, each of which takes one of them, displaced by one and by so many
    structures ('131072 8 x 19 stores');
    parts: copies of so many elements of each structure, which lie apart ('8 x 19 3').
    """

    runs_bytes_per_s: dict[str, float]
    threads_bytes_per_s: dict[str, float]
    displaced_bytes_per_s: dict[str, float]
    listed_bytes_per_s: dict[str, float]
    local_bytes_per_s: dict[str, float]
    spilled_bytes_per_s: dict[str, float]
    shuffled_bytes_per_s: dict[str, float]
    instructions_per_s: dict[str, float]
    small_s: dict[str, float]
    l1_bytes: int
    latency_s: float
    meeting_s: float
    l2_latency_s: float
    again_bytes_per_s: dict[str, float] = field(default_factory=dict)
    holes_bytes_per_s: dict[str, float] = field(default_factory=dict)
    pieces_bytes_per_s: dict[str, float] = field(default_factory=dict)
    structures_bytes_per_s: dict[str, float] = field(default_factory=dict)
    planes_bytes_per_s: dict[str, float] = field(default_factory=dict)
    parts_bytes_per_s: dict[str, float] = field(default_factory=dict)
    stages_s: dict[str, float] = field(default_factory=dict)
    overtaken_s: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CpuCalibration:
    """What micro-benchmarks of a CPU found beyond bandwidths of copies.

    walks: 19 streams read and written row by row by all cores, by `model.cpu.memory_walks.Walk.name`; bytes as
    `model.cpu.memory_walks.SHARES` counts them; thread_walks: the same by one thread; cached: in place within the L2
    caches of all cores, by the bytes of an access; multiply_add, divide: operations of one core while all are at
    work, in registers
    of so many bytes ('4' is a scalar); refill: what a core waits for a line that its L1 cache has lost and its L2
    cache has; last_cached: in place, by `Walk.name`, within the last cache and no L2 cache (empty where there is none,
    or nobody measured it); filled: the same of vectors, by `model.cpu.memory_walks.Filling.name`; hidden: share of the
    shorter of two, moving streams in place and working on them, that hides behind the longer one (none where nobody
    measured it),
    by `Walk.name`; cached_hidden: the same within the L2 caches; worked: as multiply_add, on 19 values at once, which
    registers may not hold; mixed: products with sums and sums in turn, as many of each, as multiply_add; refills: what
    all cores take longer for a walk some of whose lines share a set of the L1 cache, per element of a stream, by
    `model.cpu.memory_walks.Crowd.name` (where nobody measured one of the last three, it is empty); digest: names the
    text of what was run; conditions: while this was measured, which may be another time than that of the machine's
    bandwidths.
    """

    walks_bytes_per_s: dict[str, float]
    thread_walks_bytes_per_s: dict[str, float]
    cached_bytes_per_s: dict[str, float]
    multiply_add_per_s: dict[str, float]
    divide_per_s: dict[str, float]
    refill_s: float
    last_cached_bytes_per_s: dict[str, float] = field(default_factory=dict)
    filled_bytes_per_s: dict[str, float] = field(default_factory=dict)
    hidden: dict[str, float] = field(default_factory=dict)
    cached_hidden: dict[str, float] = field(default_factory=dict)
    worked_per_s: dict[str, float] = field(default_factory=dict)
    mixed_per_s: dict[str, float] = field(default_factory=dict)
    refills_s: dict[str, float] = field(default_factory=dict)
    digest: str = ""
    conditions: Conditions = field(default_factory=Conditions)


@dataclass(frozen=True, kw_only=True)
class Datasheet:
    """What a maker says of a GPU. clock_hz: the highest one, which the rates of operations belong to.

    registers, shared: of a multiprocessor; source: the documents.
    """

    memory_bytes_per_s: float
    bus_bits: int
    clock_hz: float
    fp32_flops_per_s: float
    fp64_flops_per_s: float
    registers: int
    shared_bytes: int
    source: str


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A machine description. measured: False where bandwidths are those of the data sheet, which no kernel reaches.

    copy: two arrays, one to the other; in_place: one array, read and written; stream: q arrays read and q
    written at once, by access width in bytes ('4', '8', '16'; on a CPU the vector width in bytes, and '64 streaming'
    with non-temporal stores), at q = 19; thread: in place, by one thread of a CPU.
    All in bytes per second, reads and writes both counted, and on a CPU the line that an ordinary store fetches
    first; spread: half-width of the interval of the median, relative, by the same names.
    multiprocessors: of a GPU. core_clock_hz: of a CPU, the highest that the system tells; None where it tells none.
    caches: level -> bytes. conditions: clocks, power and temperature after the measurement; of a CPU,
    the share of it while bandwidths were measured.
    datasheet: what its maker says, None where nobody has looked it up; calibrated_as: the machine whose calibration was
    scaled to it (`model.machine.datasheet_scaling`), or ''.
    calibration: what the model needs besides of a GPU, cpu: of a CPU; None where nobody has measured it.
    streams_digest: names the text of the kernels that it was measured with; date: ISO 8601, UTC.
    """

    name: str
    environment: Environment
    copy_bytes_per_s: float
    in_place_bytes_per_s: float
    stream_bytes_per_s: dict[str, float]
    streams: int = 19
    spread: dict[str, float] = field(default_factory=dict)
    caches_bytes: dict[str, int] = field(default_factory=dict)
    thread_bytes_per_s: float | None = None
    multiprocessors: int = 0
    core_clock_hz: float | None = None
    calibration: Calibration | None = None
    cpu: CpuCalibration | None = None
    conditions: Conditions = field(default_factory=Conditions)
    measured: bool = True
    datasheet: Datasheet | None = None
    calibrated_as: str = ""
    streams_digest: str = ""
    date: str = ""

    @property
    def calibrated(self) -> bool:
        """Whether more than bandwidths was measured."""
        return bool(self.calibration or self.cpu)

    @property
    def calibration_cpu_share(self) -> float | None:
        """What a calibration had of the processor; None where nobody noted it, and of a GPU."""
        return self.cpu.conditions.cpu_share if self.cpu else None
