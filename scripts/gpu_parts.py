"""The parts of `scripts/gpu.py`: studies, profiles, and the seconds that they take."""

from __future__ import annotations

from scripts.paths import ROOT

SANDSTONE = "case.geometry=sandstone:fraction=0.6"
OBLONG = "case.domain=208x224x192"
UNIFORM = ("strategy=random", "storage=fp32")
BETWEEN_WALLS = "case.domain=192x208x224"
LISTED, DIRECT = ("family=sparse", SANDSTONE), "family=direct"
STUDIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "fp32": ("d3q19-box", ("storage=fp32",)),
    "fp64": ("d3q19-box", ("storage=fp64",)),
    "fp16s": ("d3q19-box", ("storage=fp16s",)),
    "cavity": ("d3q19-cavity", ()),
    "d2q9": ("d2q9-box", ()),
    "d3q27": ("d3q27-box", ()),
    **{f"fast-{one}": ("d3q19-box-fast", (f"storage={one}",)) for one in ("fp32", "fp64", "fp16s")},
    "fast-d2q9": ("d2q9-box-fast", ()),
    "fast-d3q27": ("d3q27-box-fast", ()),
    "fast-cavity": ("d3q19-cavity-fast", ()),
    "fast-bgk": ("d3q19-box-fast", ("case.collision=bgk",)),
    "fast-cavity-flags": ("d3q19-cavity-fast", ("flags=memory",)),
    "fast-sphere": ("d3q19-cavity-fast", ("case.flow=box", "case.geometry=sphere", "flags=memory")),
    **{f"moments-{one}": ("d3q19-moments", (f"storage={one}",)) for one in ("fp32", "fp64", "fp16s")},
    "porous-fp64": ("d3q19-porous", ("storage=fp64", *LISTED)),
    "porous-fp32": ("d3q19-porous", ("storage=fp32", *LISTED)),
    "porous-direct-fp64": ("d3q19-porous", ("storage=fp64", DIRECT, "case.geometry=packing:fraction=0.1")),
    "porous-direct-fp32": ("d3q19-porous", ("storage=fp32", DIRECT, SANDSTONE)),
    **{f"small-{edge}": ("d3q19-small", (f"case.domain={edge}x{edge}x{edge}",)) for edge in (32, 48, 64, 80, 96, 128)},
    "fast-384": ("d3q19-box-fast", ("case.domain=384x384x384",)),
    "unseen-d3q27-trt-fp64": ("d3q27-box", ("case.collision=trt", "storage=fp64")),
    "unseen-oblong": ("d3q27-box", ("case.collision=trt", "storage=fp64", OBLONG, "seed=2")),
    "unseen-fast": ("d3q27-box-fast", ("storage=fp64", OBLONG, "seed=2")),
    "unseen-cavity": (
        "d3q19-cavity",
        ("case.lattice=d3q27", "case.collision=trt", "storage=fp64", BETWEEN_WALLS, "seed=3"),
    ),
    "uniform-one-step": ("box", ("families=direct,column", *UNIFORM)),
    "uniform-blocking": ("box", ("families=temporal-blocking", *UNIFORM)),
    "uniform-oblong": ("box", ("case.domain=300x200x500", *UNIFORM)),
}
"""The study file of each part, and its overrides."""
UNIFORM_PARTS = tuple(part for part in STUDIES if part.startswith("uniform-"))
"""Random draws from everything legal; only on request."""
PARTS = (
    "devices",
    *(part for part in STUDIES if part not in UNIFORM_PARTS),
    "profile",
    "turns",
    "fastest",
    "accuracy",
    "physics",
    "headers",
    "proof-cost",
    "claims",
    "conformance",
    "tests",
    "sanitize",
)
RECORDED = ROOT / "studies" / "recorded" / "nvidia-h200"
SPACES = ROOT / "studies" / "spaces"
PROFILES: dict[str, tuple[str, ...]] = {
    "one-step-fp32": (str(RECORDED / "d3q19-box-fp32" / "best.json"),),
    "one-step-fp64": (str(RECORDED / "d3q19-box-fp64" / "best.json"),),
    "one-step-fp16s": (str(RECORDED / "d3q19-box-fp16s" / "best.json"),),
    "many-steps": (str(RECORDED / "d3q19-box-fast-fp32" / "best.json"),),
    "aa": (
        "scheme=aa,layout=aosoa,width=128,block=64x2x1,cells_per_thread=4,min_blocks=2,storage=fp32",
        *("--study", "d3q19-box"),
    ),
    "aos": ("scheme=pull,layout=aos,block=128x1x1,storage=fp32", "--study", "d3q19-box"),
}
"""Kernels whose loss breakdowns are recorded: the best of each precision, in place, of several steps, and in AoS."""
FLAGSHIP = ("fp32", "fp64", "fp16s")
KINDS = {
    **dict.fromkeys(FLAGSHIP, "flagship"),
    "moments-fp32": "wide",
    **{part: "sample" for part in STUDIES if part.startswith("small-")},
    **{part: "few" for part in STUDIES if part.startswith("porous-direct-")},
    **dict.fromkeys(UNIFORM_PARTS, "uniform"),
    **dict.fromkeys(("fast-cavity-flags", "fast-sphere", "fast-384", "unseen-fast"), "aside"),
}
"""Kinds of studies that get more or less time and trials than others."""
SEARCH_S = {"flagship": 180, "wide": 200, "sample": 40, "few": 30, "aside": 40, "uniform": 150, "other": 60}
"""Search time of a study unless --time says otherwise."""
TRIALS = {"flagship": 1150, "wide": 900, "sample": 128, "few": 30, "aside": 200, "uniform": 2000, "other": 380}
SAMPLED = {"flagship": 0.5, "wide": 0.8, "sample": 0.5, "few": 1.0, "aside": 0.4, "uniform": 0.0, "other": 0.5}
"""Share of the trials that sample the space; the rest searches for the best."""
SUSTAINED = 20
"""Number of the best of a study that are run for seconds."""
OVERHEAD_S, SUSTAINED_S = 60, 3
"""Seconds of a study besides its search (start, ceiling, finals, report), and of each sustained run."""
SUSTAINED_OF_S = {"fast-384": 6}
"""Seconds of sustained runs on larger domains, which are verified first."""
SEEDS_S, ALONE_S = 300, 12
TAKES_S = {
    **{"devices": 65, "profile": 150, "turns": 90, "fastest": 120, "accuracy": 50, "physics": 100},
    **{"headers": 120, "proof-cost": 130, "claims": 520, "conformance": 100, "tests": 280, "sanitize": 120},
    **{"first-minute": 340, "couplings": 320, "scaling": 320, "cut-study": 100, "claims-parts": 90, "ranks": 240},
    **{"one-device": 90, "all-devices": 90},
}
"""Seconds of other parts on an H200; unknown for other devices."""
PATIENCE = 2
"""Time limit of a part in multiples of its expected time, if time is limited."""
SEEDS, WITHIN = (1, 2, 3), 0.03
"""Seeds of the search for the fastest kernel, and the allowed slowdown against the fastest known one."""
KNOWN = RECORDED / "d3q19-moments-fp32" / "best.json"
"""A kernel of that box from another study, measured beside them."""
LEFT_OUT = ("optuna.log",)
ACCURACIES = {
    "bgk": ("--steps", "1,2,3"),
    "regularised": ("--collision", "regularised", "--steps", "1,2,3,4"),
}
"""Tables of accuracy by collision, with arguments of `scripts/measurements/accuracy.py`."""
PAIRED = (
    *(str(RECORDED / name) for name in ("d3q19-box-fp32:60", "d3q19-box-fast-fp32:60", "d3q19-box-fp16s:45")),
    *(str(RECORDED / name) for name in ("d3q19-small-64:30", "porous-fp32:25")),
)
"""Sets and numbers of kernels that are measured in two processes."""
KNOWN_FASTEST = ROOT / "scripts" / "measurements" / "fastest.toml"
"""Kernels of large domains that are the fastest known ones."""
SPARE_CORES = 2
"""Cores for the process with the device."""
