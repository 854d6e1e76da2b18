"""How blocks that stay on chip meet in every step: lines for the skeletons of such kernels, which take their own.

Both take `begin`, done once, `wait`, before what others sent is read, and `go`, at last; kernels/cuda/resident.cu
also `early`, when all was sent, and `late`, when all is kept; kernels/cuda/resident_moments.cu `said`, when all was
sent, and `last`, after all steps.
"""

from __future__ import annotations

MEETINGS = {
    "all": {
        "begin": "    const unsigned blocks = gridDim.y * gridDim.z;",
        "wait": "        if (number == 0 && step) wait_for(barrier, step * blocks);",
        "go": "    if (number == 0) go(barrier, blocks);",
        "early": "",
        "late": "        if (number == 0 && step + 1 < steps) arrive(barrier);",
        "said": "        if (number == 0) arrive(barrier);",
        "last": "    if (number == 0) wait_for(barrier, steps * blocks);",
    },
    # the flag is said as soon as all has been sent, and stays for the next launch to go on from
    "neighbours": {
        "begin": "    unsigned* const flag = flag_of(barrier, blockIdx.y, blockIdx.z);\n"
        "    const unsigned begun = *flag;",
        "wait": "        if (step) wait_for_neighbours(barrier, number, begun + step);",
        "go": "",
        "early": "        __syncthreads();\n        if (number == 0) say(flag, begun + step + 1);",
        "late": "",
        "said": "        if (number == 0) say(flag, begun + step + 1);",
        "last": "    wait_for_neighbours(barrier, number, begun + steps);",
    },
}
