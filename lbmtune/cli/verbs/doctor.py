"""The verb doctor: find what of this machine keeps studies from being right, fast or repeatable."""

from lbmtune import api
from lbmtune.cli.arguments.options import Json
from lbmtune.cli.format import output
from lbmtune.errors import DeviceUnavailableError


def doctor(as_json: Json = False) -> None:
    """Look at devices, compilers, counters, clocks, memory and folders, and say what to do about each.

    Nothing is measured or changed. Exit code 3 if neither the CPU nor a GPU can be used.

    Examples:
        lbmtune doctor
        lbmtune doctor --json
    """
    found = api.examined()
    if as_json:
        output.emit_json("doctor", {"findings": [one._asdict() for one in found]})
    else:
        output.stdout().print(output.table("", ("what", "state", "found", "what to do"), found))
    devices = [one for one in found if one.what.startswith("device ")]
    if all(one.state != "ok" for one in devices):
        raise DeviceUnavailableError(f"no device can be used here: {devices[0].found}; {devices[0].todo}.")
