"""The page of a profile: the loss breakdown from the ceiling to the kernel, counters and the sustained run."""

from pathlib import Path

from lbmtune.catalogue.config import from_flat
from lbmtune.records.profile import DATASHEET, Profile
from lbmtune.records.remarks import profile_disturbance
from lbmtune.records.whole_files import write_atomically
from lbmtune.report.drawing import Figure, plain_figure
from lbmtune.report.html import Panel, filled, panel
from lbmtune.report.profile_tables import UNEXPLAINED, conclusion, kernels, state_rows, tables
from lbmtune.report.tables import environment_table, subject
from lbmtune.report.waterfall import Step, add_waterfall
from lbmtune.units import format_mlups

_MEASURED, _MODEL, _FASTER = "#0072b2", "#e69f00", "#cc79a7"
_CAPTION = (
    "Picoseconds of the whole device per update: first level, and what each level adds. The model has its own bars; it "
    "was not fitted to these measurements, and its last bar is the unexplained part."
)
_PARTS = "The kernel with parts taken out. If two of them overlap perfectly, the longer one is the time of the kernel."


def write_profile_page(profile: Profile, path: Path) -> None:
    """Write the page. Raises InputError if the path cannot be written."""
    write_atomically(path, profile_page(profile).encode())


def profile_page(profile: Profile) -> str:
    """Return the HTML text."""
    config, kernel = from_flat(profile.config), profile.rungs[-1]
    share = kernel.mlups / profile.rungs[0].mlups
    panels = [profile_panel(profile)]
    if profile.apart:
        panels.append(panel("parts", "Parts of the kernel alone", _PARTS, parts_figure(profile)))
    return filled(
        "profile.html",
        ("script.js", "start.js"),
        panels,
        profile=profile,
        brief=config.said,
        subject=subject(profile.case, [config]),
        headline=f"{format_mlups(kernel.mlups)} MLUPS, {share:.0%} of the {profile.rungs[0].name}",
        conclusion=conclusion(profile),
        disturbance=profile_disturbance(profile),
        tables=tables(profile),
        state=state_rows(profile),
        environment=environment_table(profile.environment),
    )


def profile_panel(profile: Profile, remark: str = "") -> Panel:
    """Return the waterfall of the measured levels. remark: sentences for the end of its caption, after a space."""
    described = [one.name for one in profile.rungs if one.spread is None and one.name != DATASHEET]
    origin = f" Taken from the description of the device: {', '.join(described)}."
    caption = (_CAPTION + origin if described else _CAPTION) + remark
    return panel("losses", "From the ceiling to the kernel, measured", caption, waterfall_figure(profile))


def waterfall_figure(profile: Profile) -> Figure:
    """Draw a waterfall of the measured levels and one of the model."""
    figure = plain_figure("", "ps per update")
    names = [level.name for level in profile.rungs]
    measured = [level.seconds for level in profile.rungs]
    _add_levels(figure, "measured", names, measured, _MEASURED)
    if all(level.model_s for level in profile.rungs):
        model = [level.model_s or 0.0 for level in profile.rungs]
        # the unexplained part closes the gap to the measured kernel
        _add_levels(figure, "model", [*names, UNEXPLAINED], [*model, measured[-1]], _MODEL, total=model[-1])
    legible = {"minsize": 9, "mode": "hide"}  # on a narrow screen numbers of bars are as small as bars
    figure.update_layout(barmode="group", bargap=0.25, legend={"orientation": "h"}, uniformtext=legible)
    figure.update_yaxes(rangemode="tozero")
    return figure


def _add_levels(
    figure: Figure, name: str, names: list[str], seconds: list[float], colour: str, total: float = 0.0
) -> None:
    """Add the levels as steps: the first from zero, and what each adds to the one before. total: 0: the last one."""
    added = [after - before for before, after in zip([0.0, *seconds], seconds, strict=False)]
    steps = [Step(one, s, colour if s >= 0 else _FASTER) for one, s in zip(names, added, strict=True)]
    add_waterfall(figure, name, steps, total=Step("all", total or seconds[-1], colour))


def parts_figure(profile: Profile) -> Figure:
    """Draw bars of the parts, and of the kernel without and with collision."""
    figure = plain_figure("", "ps per update")
    figure.add_bar(
        x=[one.name for one in kernels(profile)],
        y=[one.seconds * 1e12 for one in kernels(profile)],
        marker={"color": _MEASURED},
        hovertemplate="%{x}: %{y:.3f} ps<extra></extra>",
        showlegend=False,
    )
    return figure
