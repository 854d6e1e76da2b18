"""The names of the terms of predictions: one vocabulary for the model, the records and the reports."""

import re
from collections.abc import Mapping

MEMORY = "memory"
RUNS, SECTORS, IN_PLACE, INDEX_PREFETCH = "runs", "partial sectors", "in place", "index prefetch"
LOCAL, SOLID, L2_REFETCH = "local memory", "solid cells", "L2 refetch"
THREADS, WAVES = "threads in flight", "waves"
LAUNCH, LATENCY, ISSUE, RINGS = "launch", "latency", "instructions", "rings"
EXCHANGE, STAGES, WALLS, SPILL_HAZARDS = "exchanges", "stages", "walls", "spill hazards"
GRID_SYNC, WALL_PASS = "grid sync", "wall pass"
ARITHMETIC, REFILLS, CACHE = "arithmetic", "refills", "cache"
SHIFTED, PREFETCH, GROUPED = "shifted rows", "prefetch", "groups"

FORMER: Mapping[str, str] = {
    "meeting": GRID_SYNC,
    "overtaken loads": SPILL_HAZARDS,
    "read again": L2_REFETCH,
    "words ahead": INDEX_PREFETCH,
}
"""Names in records of before 25 November 2026, with those of today."""
_WORDS = tuple(
    (re.compile(former), today)
    for former, today in (
        (r" ps, (?=\d+ \w[\w ]* on their way$)", " ps alone, "),
        (r" on their way$", " in flight"),
        (r"warps of a scheduler\b", "warps per scheduler"),
        (r"% of the streams (?:asked for ahead|prefetched)$", "% prefetched"),
        (r"\b1 quotients?\b", "1 division"),
        (r"\bquotients\b", "divisions"),
        (r" of it in use$", " of the bandwidth in use"),
        (r"(?<!issue )\bslots\b", "issue slots"),
        (r", hidden but for one of ([\d.e+]+) waves$", r"; the last of \1 waves is not hidden"),
        (r"^[\d,]+ MB, \+?(-?[\d.e+-]+) us$", r"\1 us per launch"),
        (r"\bthe last cache\b", "the last-level cache"),
        (r"^([\d.e+-]+) loaded and ([\d.e+-]+) stored in part\b", r"\1 sectors loaded in part and \2 stored in part"),
        (r"^(\d+) bytes of a stream lie together$", r"\1 contiguous bytes of a stream"),
    )
)
"""Words in the sentences of earlier records, with those of today."""


def words_of_today(sentence: str) -> str:
    """Return the figures of a term in the words of today, bytes by four digits."""
    for former, today in _WORDS:
        sentence = former.sub(today, sentence)
    return re.sub(r"^\d+\.\d+(?= bytes per update)", lambda found: f"{float(found[0]):.4g}", sentence)


MEANINGS: Mapping[str, str] = {
    MEMORY: "bytes that memory moves for an update, at the measured bandwidth of accesses like these",
    RUNS: "contiguous bytes that are shorter or longer than those of the measured copy",
    THREADS: "too few loads in flight to use the bandwidth",
    WAVES: "a last wave of thread blocks that does not fill the device",
    L2_REFETCH: "bytes that are read again because the L2 cache has lost them",
    SECTORS: "sectors of 32 bytes of which a warp loads or stores a part",
    IN_PLACE: "populations that are written where others were read",
    INDEX_PREFETCH: "words of the index list that are loaded ahead",
    SOLID: "sectors with solid cells, which are moved although they are not updated",
    LOCAL: "registers that were spilled to local memory and are loaded again",
    LAUNCH: "start and end of a kernel launch",
    LATENCY: "waiting for a first load, which nothing else of the multiprocessor hides",
    ISSUE: "issuing the instructions of an update, halos included; a scheduler issues one per cycle",
    RINGS: "refreshing the ghost cells around thread blocks",
    EXCHANGE: "exchanging values between the lanes of a warp and through shared memory",
    STAGES: "waiting at barriers between the steps of a launch",
    SPILL_HAZARDS: "stores of spilled registers that wait for the loads they depend on",
    GRID_SYNC: "waiting until all thread blocks of the device have taken their step",
    WALL_PASS: "the pass of interpolated walls after each step",
    ARITHMETIC: "additions, multiplications and divisions of an update, in vector registers",
    REFILLS: "lines that the L1 cache has lost because too many share one of its sets",
    CACHE: "bytes of the further steps of a launch, which come from a cache, as far as arithmetic does not hide them",
}
"""What each term is the time of."""
