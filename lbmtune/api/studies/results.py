"""Read the record of a study, and make files of what it found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from lbmtune.api.exporting import LBMPY, write_kernel
from lbmtune.api.machines.devices import LOG
from lbmtune.catalogue.config import CudaConfig, KernelConfig
from lbmtune.catalogue.problem.patch_checks import settled
from lbmtune.errors import InputError, NothingValidError
from lbmtune.export import best, chosen, printed_kernel, write_best
from lbmtune.export.own_kernel import write_own
from lbmtune.export.solver_text import default_name
from lbmtune.export.trial_tables import trials_frame, write_csv, write_t4
from lbmtune.model.gpu.inputs import occupancy
from lbmtune.model.predict import cells_read
from lbmtune.model.tuning_hints import worth_varying
from lbmtune.records import Trial
from lbmtune.records.best_json.document import Best, encode_best
from lbmtune.records.profile import Profile
from lbmtune.records.remarks import unfinished
from lbmtune.records.spec import StudySpec
from lbmtune.records.store import read_profile, read_study
from lbmtune.records.study import StudyRecord
from lbmtune.report.study.page import Beyond, write_report
from lbmtune.search.pareto import members
from lbmtune.search.study import nothing_valid

if TYPE_CHECKING:
    import pandas

REPORT, BEST = "report.html", "best.json"


class Study:
    """A study in its folder, finished or under way: its record, and the files that are made of it.

    >>> study = Study("studies/recorded/nvidia-h200/d3q19-box-fp32")
    >>> study.config.scheme, round(study.winner.mlups)
    ('pull', 27541)
    """

    def __init__(self, folder: Path | str, *, geometry: Path | str | None = None) -> None:
        """Read the record of a folder. geometry: path of its voxel file, if that was moved.

        Raises InputError if the folder holds no study, or if that file is not the one of its case.
        """
        self.folder = Path(folder)
        self.record: StudyRecord = read_study(self.folder)
        if geometry is not None:
            header = self.record.header
            spec = replace(header.spec, case=settled(header.spec.case, geometry))
            self.record = replace(self.record, header=replace(header, spec=spec))

    @property
    def spec(self) -> StudySpec:
        """Return what was asked: case, knobs, budget, objective."""
        return self.record.header.spec

    @property
    def ranked(self) -> tuple[Trial, ...]:
        """Return the verified trials, the best first."""
        return self.record.ranked

    @property
    def winner(self) -> Trial:
        """Return the best trial. Raises NothingValidError if none was verified on the whole domain."""
        if self.record.winner is None:
            raise NothingValidError(nothing_valid(self.record))
        return self.record.winner

    @property
    def config(self) -> KernelConfig:
        """Return the configuration of the best trial. Raises NothingValidError."""
        return self.winner.kernel_config

    def frame(self) -> pandas.DataFrame:
        """Return all trials as a table: outcome, speeds, prediction, costs, and each knob."""
        return trials_frame(self.record)

    def report(self, path: Path | str | None = None) -> Path:
        """Write the report, one HTML file that needs no network, and return its path (default: in the folder)."""
        target = self.folder / REPORT if path is None else Path(path)
        profile = read_profile(self.folder, self.ranked[0].key) if self.ranked else None
        write_report(self.record, target, beyond(self.record, profile))
        return target

    @property
    def pareto_set(self) -> tuple[Trial, ...]:
        """Return the Pareto set between several objectives, the best by the first one first; else none."""
        return members(self.record)

    def chosen(self, member: int | None = None, trial: int | None = None) -> Trial | None:
        """Return the trial that an export takes by these; None: the winner. Raises InputError."""
        return chosen(self.record, member, trial)

    def export(self, path: Path | str | None = None, *, member: int | None = None, trial: int | None = None) -> Path:
        """Write best.json, which `lbmtune.load` reads, and return its path (default: in the folder).

        member: of the Pareto set instead of the winner, from 1 on (default path: member-2.json). trial: number of a
        verified one instead of the winner (default path: trial-53.json).
        Of a study that was stopped it holds the best kernel so far, with a remark, and says so (`proven`, `finished`);
        another one says if that kernel draws more power than the study allows, or its power is not known.
        Raises NothingValidError if no trial was verified.
        """
        self._check_ranked()
        if self.spec.kernel:
            if trial is not None:
                raise InputError(f"--trial {trial} is not supported for kernels of your own; leave it out.")
            return self.export_values(path=path, member=member)
        named = {"member": member, "trial": trial}
        name = next((f"{what}-{number}.json" for what, number in named.items() if number is not None), BEST)
        target = self.folder / name if path is None else Path(path)
        write_best(self.record, target, member, trial)
        self._remark(member, trial)
        return target

    def export_header(
        self, path: Path | str | None = None, *, member: int | None = None, name: str | None = None
    ) -> Path:
        """Write a CUDA header that holds the same kernel and a solver around it, and return its path.

        path: default NAME.h in the folder. name: of its namespace and functions, default made of the study and the key.
        Raises NothingValidError as `export`, and InputError for a kernel that a header cannot hold.
        """
        found, chosen = self._named(member, name)
        target = self.folder / f"{chosen}.h" if path is None else Path(path)
        write_kernel(found, "cuda", target, chosen)
        self._remark(member)
        return target

    def export_object(
        self,
        path: Path | str | None = None,
        *,
        member: int | None = None,
        name: str | None = None,
        target: str | None = None,
    ) -> Path:
        """Write a C header that holds a solver, and beside it the object code of a CPU kernel and a module of Fortran.

        Returns the path of the header, default NAME.h in the folder; the others are NAME_kernel.o and NAME.f90.
        name: prefix of its functions. target: processors, 'host' (default), 'x86-64-v3' or 'x86-64-v4'. Raises as
        `export_header`.
        """
        found, chosen = self._named(member, name)
        header = self.folder / f"{chosen}.h" if path is None else Path(path)
        write_kernel(found, "c", header, chosen, target)
        self._remark(member)
        return header

    def export_bundle(
        self,
        path: Path | str | None = None,
        *,
        member: int | None = None,
        name: str | None = None,
        target: str | None = None,
    ) -> Path:
        """Write a folder with best.json, header, CMake target, test program and compiled code, and return its path.

        path: default NAME in the folder of the study. name: of the target and the namespace. target: processors of a
        CPU kernel, as in `export_object`. Raises as that and `export_header` do.
        """
        found, chosen = self._named(member, name)
        folder = self.folder / chosen if path is None else Path(path)
        write_kernel(found, "bundle", folder, chosen, target)
        self._remark(member)
        return folder

    def export_lbmpy(self, path: Path | str | None = None, *, member: int | None = None) -> Path:
        """Write a program with the kernel of lbmpy that comes nearest, and the same as data beside it, .json.

        Returns the path of the program, default best_lbmpy.py in the folder. Raises as `export`.
        """
        self._check_ranked()
        target = self.folder / LBMPY if path is None else Path(path)
        write_kernel(best(self.record, member), "lbmpy", target)
        self._remark(member)
        return target

    def export_values(self, kind: str = "best", path: Path | str | None = None, *, member: int | None = None) -> Path:
        """Write the best values of a user's kernel, and return the path.

        kind: 'best' (best.json), 'defines' (best.h, a header of macros) or 'flags' (best.flags, options of a compiler).
        Raises NothingValidError as `export`, and InputError for a kernel of the catalogue.
        """
        if not self.spec.kernel:
            raise InputError(f"format={kind} is not supported for {self.folder} (use cuda): its kernels are not yours.")
        self._check_ranked()
        found = write_own(self.record, kind, None if path is None else Path(path), self.folder, member)
        self._remark(None)
        return found

    def _named(self, member: int | None, name: str | None) -> tuple[Best, str]:
        """Return the winner, or a member of the Pareto set, with the name of what holds it."""
        self._check_ranked()
        found = best(self.record, member)
        return found, name or default_name(found)

    def _check_ranked(self) -> None:
        if not self.ranked:
            raise NothingValidError(f"{self.folder} holds no verified measurement; there is nothing to export.")

    def _remark(self, member: int | None, trial: int | None = None) -> None:
        if remark := unfinished(self.record, self.chosen(member, trial)):
            LOG.warning(remark)

    def export_trials(self, kind: str, path: Path | str | None = None) -> Path:
        """Write all trials, kind 'csv' or 't4', and return the path (default: trials.csv or t4.json in the folder).

        T4 is the open format of autotuning results, which Kernel Tuner writes. Raises InputError.
        """
        if kind not in _TABLES:
            raise InputError(f"format={kind} is not supported for the trials of a study (use {' or '.join(_TABLES)}).")
        name, write = _TABLES[kind]
        target = self.folder / name if path is None else Path(path)
        write(self.record, target)
        return target


def beyond(record: StudyRecord, profile: Profile | None = None) -> Beyond:
    """Return what a report shows beyond the records: kernel and files of it as this version makes them, what to vary.

    profile: of the winner.
    """
    winner = next(iter(record.ranked), None)
    hint = worth_varying(winner.prediction, winner.kernel_config) if winner and winner.prediction else ("", ())
    held = b""
    with suppress(NothingValidError, InputError):  # of a kernel that this version prints otherwise
        held = encode_best(best(record))
    cells = partial(cells_read, record.header.spec.case)
    return Beyond(printed_kernel(record), held, cells, hint, profile, _occupancy(record))


def _occupancy(record: StudyRecord) -> tuple[int, int, int] | None:
    """Return the occupancy of the winner; None if it is no kernel for GPUs of lbmtune, or its registers are unknown."""
    winner = next(iter(record.ranked), None)
    resources = winner.resources if winner else None
    if winner is None or resources is None or not resources.registers or record.header.spec.kernel:
        return None
    config = cast("CudaConfig", winner.kernel_config)
    return occupancy(record.header.spec.case, config, resources, record.header.environment.architecture)


_TABLES: Mapping[str, tuple[str, Callable[[StudyRecord, Path], None]]] = {
    "csv": ("trials.csv", write_csv),
    "t4": ("t4.json", write_t4),
}
"""Files of all trials, and what writes them."""


def trials(folder: Path | str) -> pandas.DataFrame:
    """Return the trials of a study folder as a table: outcome, speeds, prediction, costs, and each knob.

    >>> int(trials("studies/recorded/nvidia-h200/d3q19-box-fp32").mlups.max())
    27541
    """
    return Study(folder).frame()
