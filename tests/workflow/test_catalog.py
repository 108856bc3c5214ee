"""The Snakemake workflow catalog's conditions for "standardized usage", in the order in which it checks them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import yaml

from fedbench.study.schema import Config
from projects import BIN, ROOT

# runs `snakemake` as in an environment of Snakemake alone: fedbench and what it alone needs cannot be imported
BARE = """
import sys

class Without:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        hidden = name.partition(".")[0] in {"fedbench", "scipy", "sklearn", "torch", "typer"}
        return None if hidden else self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = map(Without, sys.meta_path)
from snakemake.cli import main
sys.argv[0] = "snakemake"
main(sys.argv[1:])
"""


def bare(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BARE, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_the_readme_is_about_a_snakemake_workflow() -> None:
    assert "snakemake workflow" in (ROOT / "README.md").read_text().lower()


def test_the_workflow_and_its_rules_lie_where_the_catalog_looks() -> None:
    assert (ROOT / "workflow/Snakefile").is_file()
    assert {path.suffix for path in (ROOT / "workflow/rules").iterdir()} == {".smk"}


def test_the_catalog_can_say_how_the_workflow_is_used() -> None:
    usage = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert "make setup" in usage["mandatory-flags"]["desc"] and usage["report"] is True
    assert set(usage["software-stack-deployment"]) == {"conda", "apptainer", "apptainer+conda"}


def test_the_readme_of_the_configuration_has_each_key() -> None:
    text = (ROOT / "config/README.md").read_text()
    assert [name for name in Config.model_fields if f"| `{name}` |" not in text] == []


def test_the_rules_can_be_linted_where_fedbench_is_not_installed() -> None:
    done = bare("--lint")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "your workflow is in a good condition" in done.stderr


def test_nothing_runs_where_fedbench_is_not_installed() -> None:
    done = bare("--dry-run", "tables/table1.md")
    assert done.returncode == 1
    assert "error: fedbench is not installed where Snakemake runs; run `make setup`" in done.stderr
    assert "Traceback" not in done.stderr


def test_another_workflow_that_takes_it_as_a_module_is_told_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "Snakefile").write_text(
        f'module fedbench:\n    snakefile: "{ROOT}/workflow/Snakefile"\n    config: config\n\n'
        "use rule * from fedbench as fedbench_*\n"
    )
    done = subprocess.run(
        [BIN / "snakemake", "--dry-run"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert (
        "run it in a clone of fedbench or in a folder made by `fedbench init` (it is no module" in done.stderr
    )
