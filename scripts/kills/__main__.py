"""Kill CPU studies at random moments, resume them, and check that nothing is lost, doubled or left behind.

    python -m scripts.kills                         40 kills, over as many studies as they take
    python -m scripts.kills --kills 9 --seed 3 --out build/some-kills

A kill is a signal, whom it is sent to (the study, one of its workers, or all of its processes) and a stage of the
study. A study that has ended goes on with --resume; one that lost a worker goes on by itself. After each kill: each
line of the records is whole but the last, no line that was there has changed, each trial that progress told of is on
file, none was tried twice, and no process is left. A signal that asks a study to end is answered with its exit code,
the command that goes on, and no temporary file. At the end of a study: exit code 0, all trials have a speed, first
measurements are as they were first written, the winner has a final, a sustained run and an accuracy, best.json and
the report are of it, and nothing lies in TMPDIR. The exit code is 1 if any of it does not hold.
"""

import argparse
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from random import Random

from scripts.kills.study import STAGES, WAYS, Kill, Study
from scripts.paths import ROOT


def dealt(kills: int, draw: Random) -> list[Kill]:
    """Return as many kills, of all kinds in turn, in random order."""
    kinds = [Kill(*way, stage) for way, stage in product(WAYS, STAGES)]
    return [kill for _ in range(-(-kills // len(kinds))) for kill in draw.sample(kinds, len(kinds))][:kills]


def attack(study: Study, kills: Sequence[Kill], draw: Random) -> dict[Kill | None, list[str]]:
    """Kill a study in order of stages and let it end; return what was wrong after each kill and, by None, at the end.

    Kills that come too late are not among them.
    """
    found: dict[Kill | None, list[str]] = {}
    order = list(STAGES)
    try:
        for kill in sorted(kills, key=lambda kill: order.index(kill.stage)):
            if study.kill(kill, draw):
                found[kill] = study.take_flaws()
                _say(study, f"{kill.signal} of {kill.whom} in {kill.stage}", found[kill])
        study.finish()
    finally:
        study.close()
    found[None] = study.take_flaws()
    _say(study, "end", found[None])
    return found


def _say(study: Study, what: str, wrong: Sequence[str]) -> None:
    print(f"{study.place.name}, {what}: {'; '.join(wrong) or 'right'}", flush=True)


def table(done: Counter[Kill], wrong: Counter[Kill]) -> str:
    """Return the counts of kills by way and stage, wrong ones in parentheses."""
    rows = [["", *STAGES]]
    for way in WAYS:
        kinds = [Kill(*way, stage) for stage in STAGES]
        rows.append([" of ".join(way), *(f"{done[one]}" + f" ({wrong[one]})" * bool(wrong[one]) for one in kinds)])
    return "\n".join("".join(f"{cell:>10}" if n else f"{cell:18}" for n, cell in enumerate(row)) for row in rows)


def main(arguments: Sequence[str]) -> int:
    """Kill as often as asked, let each study end, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--of-a-study", type=int, default=6, help="kills until a study is left to end")
    parser.add_argument("--trials", type=int, default=24, help="of a study")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "kills")
    given = parser.parse_args(arguments)
    # background jobs of shells ignore these signals, and so would the studies
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    draw, studies = Random(given.seed), 0
    done: Counter[Kill] = Counter()
    wrong: Counter[Kill] = Counter()
    ends = 0
    to_come = dealt(given.kills, draw)
    while to_come:
        studies += 1
        now, to_come = to_come[: given.of_a_study], to_come[given.of_a_study :]
        found = attack(Study(given.out.resolve() / f"study-{studies}", given.trials), now, draw)
        ends += bool(found.pop(None))
        done.update(kill for kill in found if kill)
        wrong.update(kill for kill, flaws in found.items() if kill and flaws)
        to_come += [kill for kill in now if kill not in found]
    print(f"{table(done, wrong)}\n{done.total()} kills of {studies} studies: {wrong.total() + ends} wrong")
    return 1 if wrong or ends else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
