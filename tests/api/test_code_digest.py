"""The digest of the code by which something was computed: it is that of the whole package, and of all that is named."""

from pathlib import Path

import lbmtune
from lbmtune.api import code_digest


def test_it_is_of_this_package():
    assert Path(lbmtune.__file__).resolve() == code_digest.PACKAGE / "__init__.py"


def test_each_file_of_what_is_named_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(code_digest, "PACKAGE", tmp_path)
    digest = code_digest.code_digest.__wrapped__
    for name in ("model/gpu/terms.py", "cli/app.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("1\n")
    before = digest(), digest("model"), digest("cli")
    (tmp_path / "model/gpu/terms.py").write_text("2\n")
    changed, of_model, of_cli = digest(), digest("model"), digest("cli")
    assert changed != before[0]
    assert of_model != before[1]
    assert of_cli == before[2]
