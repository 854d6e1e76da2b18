"""Description of a machine, as the model uses it. Stored as plain TOML, with units in the keys."""

from dataclasses import dataclass, field
from typing import Literal, get_args

from lbmtune.records import Conditions, Environment
from lbmtune.records.comparison.statistics import repeat_spread
from lbmtune.records.output import OutputRates
from lbmtune.records.remarks import left_alone

ACCESS_BYTES, WORD_BYTES = 16, 4
"""The widest load or store of a GPU thread, and a register."""
Extent = Literal["bandwidths", "quick", "full"]
"""Extent of measurements of a machine: bandwidths alone, also what ranks kernels, or all that the model looks up."""
EXTENTS: tuple[Extent, ...] = get_args(Extent)
"""In order: each holds more than the one before."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Micro-benchmarks of a GPU beyond bandwidths of aligned streams. Rates count reads and writes.

    The keys of each table say what was varied (`model.machine.benchmark_names`):
    runs: copies of 19 streams by access width and the contiguous bytes of a stream ('4 of 128'; '4': streams lie
    apart);
    threads: the same of streams that lie apart, by threads that share a multiprocessor ('4 by 512');
    displaced: copies whose loads, stores, both in one array, or none are displaced: of three streams one by an access
    back, one not, one forward, and by as many rows ('2 of 64 stores by 64', '8 none by 256', by threads of a block side
    by side); in one array by rows alone ('2 rows by 64') or not at all ('2 stay by 16'); by threads that take eight
    accesses one after another ('4 loads by 64 walking'); of arrays of structures with a number of elements
    ('4 of 4 x 27 in place by 64');
    shuffled: the same by vectors, displaced by an element each ('4 x 2 stores by 64', '2 x 8 of 512 in place by 64
    walking');
    listed: copies whose loads, stores, or both in place find their place in a list ('4 loads', '8 in place');
    'displaced': the place of the next access; 'ahead': words of the list are prefetched; the list is counted;
    local: local memory, written and read, that fits in L1, in L2 ('L1', 'L2'), or in neither ('memory'); l1_bytes: of a
    multiprocessor, shared memory included; latency_s: of a load from memory; l2_latency_s: from L2;
    instructions_per_s: of warps, whole device, by kind, warps of a multiprocessor and independent instructions
    ('multiply-add, 8 warps of 8'; 'meeting': warps synchronise after each 128 of them);
    stages_s: a stage of one block on a multiprocessor, after which each warp exchanges eight words with its neighbours,
    by synchronisation and warps ('none by 8', 'block by 12', 'neighbours by 16');
    overtaken_s: of a multiprocessor, for a word of local memory that memory returns to a warp, loaded two at a time and
    stored again after its load or while that is in flight, by warps ('used by 16', 'overtaken by 8');
    meeting_s: from the store of a block until all blocks have synchronised and read it; small_s: a launch that copies a
    number of bytes, read and written, launch after launch, by way of launching ('call 4980736', 'graph ',
    'dependent ');
    spilled: copies whose threads also write and read local memory, which is not counted, by access width, threads of a
    multiprocessor and bytes of a thread ('4 by 1536 of 96', '8 by 1152 of 0 walking');
    again: copies that read each tile again after a number of other bytes; the second read is not counted;
    holes: copies of words that leave out one word in a number of 64 sectors, to another array or in place ('apart 8',
    'in place 64'); what is left out is counted;
    pieces: copies of words that store a number of 64 sectors in two pieces, with other bytes moved in between
    ('4980736 16');
    structures: copies of arrays of structures, displaced by one and by 65536 structures (sides as of displaced), by all
    threads of a multiprocessor, each with bytes of local memory besides ('8 x 19 by 512 of 96 in place');
    planes: the same by as many threads as fit, each with one structure, by the distance in structures
    ('131072 8 x 19 stores');
    parts: copies of a number of elements of each structure, which lie apart ('8 x 19 3').
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
    """Micro-benchmarks of a CPU beyond bandwidths of copies. A table that may be empty and is so was not measured.

    walks: 19 streams read and written row by row by all cores, by `model.machine.memory_walks.Walk.name`, with bytes as
    `TRANSFERS` there counts them; thread_walks: the same by one thread; cached: in place within the L2 caches of all
    cores, by bytes of an access; multiply_add, divide: operations of one core while all are at work, by bytes of a
    register ('4': scalars); refill: latency of a line that L1 has lost and L2 holds; last_cached: in place within the
    last cache and no L2 cache, by `Walk.name`; filled: the same of vectors, by `Filling.name`;
    hidden: share of the shorter of two, moving streams in place and computing on them, that overlaps, by `Walk.name`;
    cached_hidden: the same within the L2 caches; worked: as multiply_add, on 19 values at once, which may exceed the
    registers; mixed: as multiply_add, products with sums and sums alternating; refills: additional time of all cores
    for a walk with lines that share a set of L1, per element of a stream, by `Crowd.name`; digest: names the text that
    was run; conditions: during this measurement, which may be another time than that of the bandwidths.
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
    """Data sheet of a GPU. clock_hz: the highest, for which the rates of operations are given.

    fp32, fp64: operations; their ratio is the issue slots of an instruction in double precision; registers, shared:
    of a multiprocessor; source: the documents.
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
class Links:
    """Links between the devices of a host.

    name: of the links; copy: seconds of a peer copy in one direction, by its bytes; both_ways: bandwidth of two copies
    at once, one in each direction, both counted; store, store_both_ways: of stores of a kernel into the memory of a
    peer; load: of its loads from there; flag: from a store into the memory of a peer until the answer of its kernel is
    there; wait: how much longer a launch waits for a launch of a peer than for one of its own device; met_wait:
    likewise for a launch of a peer that ended earlier; message_copy, message_store:
    seconds of a message beyond two waits, by its bytes, as a copy or by stores of a kernel, if devices exchange two
    each way and wait for each other; message_host: likewise through the memory of the host; busy_copy: seconds of a
    copy by its bytes while kernels of both devices move all that their memory can; busy_message_copy,
    busy_message_store: those of messages meanwhile; call: seconds in which the host enqueues a 'launch', a 'copy', a
    'mark' or a 'wait', enters a queue ('run'), or does what else it does for a message or for a device between two
    exchanges ('turn'); source: of the figures; assumed: what was not measured on these devices, '' if all was.
    Of several peers these are the figures of the one that takes longest. By the id of each peer: the name of its link,
    the bandwidth of the largest copy in one direction and in both, and the seconds of the smallest copy and of a wait.
    spread: how far the median of all rounds of a figure lies from its best, at most; others: processes of others on the
    devices; date: ISO 8601, UTC.
    """

    name: str
    copy_s: dict[str, float]
    both_ways_bytes_per_s: float
    source: str
    store_bytes_per_s: float | None = None
    store_both_ways_bytes_per_s: float | None = None
    load_bytes_per_s: float | None = None
    flag_s: float | None = None
    wait_s: float | None = None
    met_wait_s: float | None = None
    message_copy_s: dict[str, float] = field(default_factory=dict)
    message_store_s: dict[str, float] = field(default_factory=dict)
    message_host_s: dict[str, float] = field(default_factory=dict)
    busy_copy_s: dict[str, float] = field(default_factory=dict)
    busy_message_copy_s: dict[str, float] = field(default_factory=dict)
    busy_message_store_s: dict[str, float] = field(default_factory=dict)
    call_s: dict[str, float] = field(default_factory=dict)
    assumed: str = ""
    peers: dict[str, str] = field(default_factory=dict)
    peer_copy_bytes_per_s: dict[str, float] = field(default_factory=dict)
    peer_both_ways_bytes_per_s: dict[str, float] = field(default_factory=dict)
    peer_small_s: dict[str, float] = field(default_factory=dict)
    peer_wait_s: dict[str, float] = field(default_factory=dict)
    spread: float | None = None
    others: tuple[str, ...] = ()
    date: str = ""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Description of a machine. measured: False if bandwidths are those of the data sheet, which no kernel reaches.

    copy: from one array to another; in_place: one array, read and written; stream: q arrays read and q written at once,
    q = 19, by access width in bytes ('4', '8', '16'; on a CPU the vector width in bytes, and '64 streaming' with
    non-temporal stores); thread: in place, by one thread of a CPU. All in bytes per second, reads and writes counted,
    on a CPU also the line that an ordinary store allocates; spread: relative half-width of the interval of the median,
    by the same names.
    multiprocessors: of a GPU; core_clock_hz: of a CPU, the highest that the system reports, or None;
    caches: level -> bytes; conditions: clocks, power and temperature after the measurement, on a CPU the share of it
    during the measurement of bandwidths;
    datasheet: None if unknown; calibrated_as: the machine whose calibration, or some tables of it, was scaled to it
    (`model.machine.datasheet_scaling`), or ''; quick: the calibration is a quick one;
    calibration: of a GPU, cpu: of a CPU; None if not measured; repeats: logarithms of the ratio of two speeds of a
    kernel in two processes, minutes apart; empty if not measured; output: rates of output every n steps, links: to
    other devices of the host, None: unknown;
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
    repeats: tuple[float, ...] = ()
    output: OutputRates | None = None
    links: Links | None = None
    conditions: Conditions = field(default_factory=Conditions)
    measured: bool = True
    datasheet: Datasheet | None = None
    calibrated_as: str = ""
    quick: bool = False
    streams_digest: str = ""
    date: str = ""

    @property
    def between_runs(self) -> float | None:
        """Return how far a repeat in another run lies away (`repeat_spread`), or None."""
        return repeat_spread(self.quiet_repeats)

    @property
    def quiet_repeats(self) -> tuple[float, ...]:
        """Return the repeats; none if other programs used the processor meanwhile, of which they would tell."""
        return self.repeats if left_alone(self.calibration_cpu_share) else ()

    @property
    def calibrated(self) -> bool:
        """Return whether it has a calibration."""
        return bool(self.calibration or self.cpu)

    @property
    def extent(self) -> Extent:
        """Return what of it was measured."""
        if not self.calibrated:
            return "bandwidths"
        return "quick" if self.quick else "full"

    @property
    def cpu_shares(self) -> tuple[float | None, float | None]:
        """Return the shares of the processor during the measurement of bandwidths and the calibration, or None."""
        return self.conditions.cpu_share, self.calibration_cpu_share

    @property
    def calibration_cpu_share(self) -> float | None:
        """Return the share of the processor during the calibration of a CPU, or None."""
        return self.cpu.conditions.cpu_share if self.cpu else None
