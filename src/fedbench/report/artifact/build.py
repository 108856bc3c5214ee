"""Build the artifact of a table: one zip with code, runs, the table, a README and an RO-Crate.

The table inside is built again from what lies inside, by the code inside: what an evaluator sees is what he can make.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from fedbench import files
from fedbench.errors import UserError
from fedbench.plan.plan import Plan
from fedbench.plan.schema import Config
from fedbench.report.artifact import crate, readme
from fedbench.report.artifact.facts import Facts
from fedbench.report.files import TABLES
from fedbench.report.numbers.origin import runs_behind, trained_on
from fedbench.report.numbers.shipped import Shipped
from fedbench.report.tables.pdf import build_pdf
from fedbench.store.provenance import commit_of
from fedbench.store.runs import STORE

ARTIFACTS = Path("artifacts")
CODE = "code"
"""The folder of the archive in which the project lies as it does in a clone, with runs and table at their places."""
CHECK = "examples/check_table.py"


def build(plan: Plan, table_name: str, options: Sequence[str] = ()) -> Path:
    """Write ``artifacts/<paper>-<table>-<scale>.zip`` and return its path; the same inputs give the same bytes.

    Args:
        plan: of the study whose table it is, at this call's scale.
        table_name: a table of results.
        options: this call's ``--set`` options, which the table is built with.

    Raises:
        UserError: the table has no runs; the code is not that of a commit; or the verdicts of the archive do not come
            out of the runs in it.
    """
    paper, config, spec, cells = plan.study, plan.config, plan.table(table_name), plan.cells(table_name)
    behind = runs_behind(cells, Shipped(plan), spec.metrics)
    if spec.kind not in ("results", "rates") or not behind:
        raise UserError(f"{paper.key}/{table_name} has no runs at scale {config.scale}: nothing to archive")
    commit, made = _commit(), _date()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "crate")
        code = root / CODE
        _unpack(code)
        _copy([cell.path for cell in cells], code)
        _copy([STORE / run.key for run in behind if run.trained], code)
        built = _build_table(
            code, f"{paper.key}/{table_name}", config, options, any(run.trained for run in behind)
        )
        facts = Facts(
            paper=paper, table=table_name, scale=config.scale, commit=commit, made=made, cells=cells, behind=behind,
            data=trained_on(cells), said=_call(code, CHECK, f"{TABLES}/{paper.key}/{table_name}.csv").strip(),
            options=options, table_files=[str(path.relative_to(root)) for path in built],
        )  # fmt: skip
        (root / "README.md").write_text(readme.write(facts), encoding="utf-8")
        (root / crate.NAME).write_text(crate.write(facts), encoding="utf-8")
        archive = ARTIFACTS / f"{paper.key}-{table_name}-{config.scale}.zip"
        files.write(archive, _zipped(root, made))
    return archive


def _build_table(
    code: Path, target: str, config: Config, options: Sequence[str], trained: bool
) -> list[Path]:
    """Build the table in the archive by the code there, after the runs that were trained here; return its files."""
    where = ["--scale", config.scale, *options]
    where += ["--set", f"data_dir={json.dumps(str(Path(config.data_dir).absolute()))}"]
    for command in ("export", "table") if trained else ("table",):
        _call(code, "-m", "fedbench", command, target, *where)
    tex = code / TABLES / f"{target}.tex"
    build_pdf(tex)
    return sorted(tex.parent.glob(f"{tex.stem}.*"))


def _commit() -> str:
    commit = commit_of(Path())
    if commit.startswith("v"):
        raise UserError("an artifact holds the code of a commit, and this folder is not a git clone")
    if commit.endswith("+"):
        raise UserError(
            "an artifact holds the code of a commit, and src/ or config/ has changes: commit them first"
        )
    return commit


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], capture_output=True, check=True).stdout


def _date() -> datetime:
    """Return when the commit was made."""
    return datetime.fromtimestamp(int(_git("show", "--no-patch", "--format=%ct", "HEAD")), UTC)


def _unpack(folder: Path) -> None:
    """Write the files of the commit."""
    folder.mkdir(parents=True)
    subprocess.run(["tar", "--extract", "--directory", folder], input=_git("archive", "HEAD"), check=True)


def _copy(paths: Iterable[Path], folder: Path) -> None:
    """Copy files and folders to the same places below ``folder``; what is not there is left out."""
    for path in paths:
        if path.is_dir():
            shutil.copytree(path, folder / path)
        elif path.is_file():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, folder / path)


def _call(code: Path, *arguments: str) -> str:
    """Run a program of the archive in it; return what it prints."""
    python = {**os.environ, "PYTHONPATH": str(code / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, *arguments], cwd=code, env=python, capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"{' '.join(arguments[:4])} in the archive: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def _zipped(root: Path, made: datetime) -> bytes:
    """Pack a folder: names in order, the time of the commit, and who may run a file."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(path for path in root.rglob("*") if path.is_file()):
            info = zipfile.ZipInfo(str(path.relative_to(root)), made.timetuple()[:6])
            info.external_attr = (0o755 if path.stat().st_mode & 0o100 else 0o644) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, path.read_bytes())
    return packed.getvalue()
