"""The verb `list`: the catalogue, the knobs of a study, and what of them is legal on a device."""

from __future__ import annotations

from lbmtune import api
from lbmtune.api.devices import chosen, place
from lbmtune.backend.registry import backend_of
from lbmtune.cli.arguments.configs import other_machine, study_spec
from lbmtune.cli.arguments.options import Device, Json, Machine, Sets, Study
from lbmtune.cli.format import output
from lbmtune.cli.format.listing import print_listing
from lbmtune.files.studyfile import check_acts


def list_catalogue(
    study: Study = None, sets: Sets = None, device: Device = None, machine: Machine = None, as_json: Json = False
) -> None:
    """List the catalogue, and count legal configurations.

    Schemes, layouts, lattices, collisions, storages, flows, geometries and the knobs with their values.
    """
    spec, instead = study_spec(study, sets), other_machine(machine, device)
    where = chosen(device, machine=instead)
    check_acts(sets or (), backend_of(where), place(where, instead))
    facts = api.listing(spec, where, instead)
    if as_json:
        output.emit_json(facts)
    else:
        print_listing(facts)
