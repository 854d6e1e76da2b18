"""The document that the guide shows: it is whole, and a run of it on a processor judges its claims."""

from __future__ import annotations

import re
from pathlib import Path

from lbmtune import api
from lbmtune.claims.tally import of_claims, of_questions
from lbmtune.files.claimsfile import load_documents
from lbmtune.model.machine.toml import read_machine
from lbmtune.records.claims import Holding
from scripts.paths import RECORDED
from tests.support.paths import ROOT


def test_the_document_of_the_guide_runs(tmp_path: Path) -> None:
    (text,) = re.findall(r"```toml\n(name = .*?)```", (ROOT / "docs" / "guide" / "claims.md").read_text(), re.DOTALL)
    assert text.count('cpu = ["64x64x64"]') == 1
    path = tmp_path / "mine.toml"
    path.write_text(text.replace('cpu = ["64x64x64"]', 'cpu = ["16x16x16"]'))  # which takes less time
    machine = read_machine(RECORDED / "epyc-2-cores" / "machine.toml")
    found = api.reproduce(load_documents([str(path)]), "cpu", tmp_path / "out", machine=machine)
    verdicts = {one.claim: one for one in found.verdicts}
    assert verdicts["pull-over-push"].median is not None
    assert verdicts["as-much-memory"].holding is Holding.HOLDS
    assert verdicts["fewer-stores"].reason == "a processor counts no transactions of warps"
    assert of_claims(found).endswith("1 cannot be asked")
    assert of_questions(found) == "own questions, 1: 1 holds"
