"""Print a profile: from the ceiling to the kernel, the model's terms, parts of the kernel, counters."""

from __future__ import annotations

from lbmtune.catalogue.config import from_flat
from lbmtune.cli.format import output
from lbmtune.records.disturbance import profile_disturbance
from lbmtune.records.profile import Profile
from lbmtune.report import profile as report


def print_profile(found: Profile) -> None:
    """Print the tables of a profile and its conclusion."""
    console = output.stdout()
    if remark := profile_disturbance(found):
        console.print(f"disturbed: {remark}", "", markup=False)
    console.print(f"{from_flat(found.config).said} on {found.environment.device}", "", markup=False)
    console.print(output.table("from the ceiling to the kernel", report.COLUMNS, report.ladder_rows(found)), "")
    columns = ("rung", "term", "ps>", "figures", "source")
    console.print(output.table("what the model's time is made of", columns, report.term_rows(found)), "")
    if found.apart:
        columns = ("kernel", "what", "ps per update>", "of the kernel>", "registers>")
        console.print(output.table("parts of the kernel alone", columns, report.apart_rows(found)), "")
    if found.counters.found:
        columns = ("counter", "value>", "unit", "ideal>", "ratio>")
        console.print(output.table(found.counters.source, columns, report.counter_rows(found)), "")
    else:
        console.print(found.counters.source, "", markup=False)
    if rows := report.state_rows(found):
        output.print_pairs(rows)
    console.print(f"\n{report.conclusion(found)}", markup=False)
