"""The workflow where fedbench is not installed, and in the Snakemake workflow catalog's conditions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from fedbench.study.schema import Config
from projects import BIN, ROOT

# runs `snakemake` as in an environment of Snakemake alone: fedbench and what it alone needs cannot be imported
BARE = """
import sys
sys.modules |= dict.fromkeys(("fedbench", "scipy", "sklearn", "torch", "typer"))
from snakemake.cli import main
sys.argv[0] = "snakemake"
main(sys.argv[1:])
"""


def call(*command: str | Path, folder: Path = ROOT) -> tuple[int, str]:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_the_readme_of_the_configuration_has_each_key() -> None:
    text = (ROOT / "config/README.md").read_text()
    assert [name for name in Config.model_fields if f"| `{name}` |" not in text] == []


def test_where_fedbench_is_not_installed_the_rules_can_be_linted_and_nothing_runs() -> None:
    status, said = call(sys.executable, "-c", BARE, "--lint")
    assert status == 0 and "your workflow is in a good condition" in said, said
    status, said = call(sys.executable, "-c", BARE, "--dry-run", "tables/table1.md")
    assert status == 1 and "error: fedbench is not installed where Snakemake runs; run `make setup`" in said
    assert "Traceback" not in said


def test_another_workflow_that_takes_it_as_a_module_is_told_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "Snakefile").write_text(
        f'module fedbench:\n    snakefile: "{ROOT}/workflow/Snakefile"\n    config: config\n\n'
        "use rule * from fedbench as fedbench_*\n"
    )
    status, said = call(BIN / "snakemake", "--dry-run", folder=tmp_path)
    assert status == 1 and "run it in a clone of fedbench or in a folder made by `fedbench init`" in said
