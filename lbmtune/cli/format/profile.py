"""Print a profile: from the ceiling to the kernel, the model's terms, parts of the kernel, counters."""

from lbmtune.catalogue.config import from_flat
from lbmtune.cli.format import output
from lbmtune.records.profile import Profile
from lbmtune.records.remarks import profile_disturbance
from lbmtune.report import profile_tables as report


def print_profile(found: Profile) -> None:
    """Print the tables of a profile and its conclusion."""
    console = output.stdout()
    if remark := profile_disturbance(found):
        console.print(f"disturbed: {remark}", "", markup=False)
    console.print(f"{from_flat(found.config).said} on {found.environment.device}", "", markup=False)
    titles = {
        "levels": "from the ceiling to the kernel",
        "terms": "terms of the model",
        "parts": "parts of the kernel alone",
        "counters": found.counters.source,
    }
    for name, table in report.tables(found).items():
        if table:
            console.print(output.table(titles[name], *table), "")
    if not found.counters.found:
        console.print(found.counters.source, "", markup=False)
    if rows := report.state_rows(found):
        output.print_pairs(rows)
    console.print(f"\n{report.conclusion(found)}", markup=False)
