"""The last part of a study: where the speed of its winner goes, level by level."""

from contextlib import suppress

from lbmtune.errors import InputError, NothingValidError
from lbmtune.records.store import read_profile, read_study, write_record
from lbmtune.records.whole_files import PROFILE
from lbmtune.search.interfaces import Search
from lbmtune.search.plan import Plan


def record_profile(search: Search, plan: Plan) -> None:
    """Record the profile of the winner, unless it is on disk, if it fits into the time."""
    winner = read_study(search.folder).winner
    if search.profile is None or winner is None or not plan.needs.profile_s:
        return
    with suppress(InputError):  # of a damaged file, which is made anew
        if read_profile(search.folder, winner.key):
            return
    if not plan.fits(plan.needs.profile_s, "profile"):
        return
    search.observer.phase("profile: the losses of the winner, level by level", plan.needs.profile_s)
    try:
        found = search.profile(winner.kernel_config)
    except (NothingValidError, InputError) as error:
        plan.left_out.append(f"profile: {error}")
        return
    try:
        write_record(search.folder / PROFILE, found)
    except InputError as error:  # the study has its winner, whose files come next
        plan.left_out.append(f"profile: {error}")
