"""The artifact of a table: one zip with code, runs, the table, and a README that says what to type to check it.

The table inside is built again from what lies inside, by the code inside: what an evaluator sees is what he can make.
"""

from __future__ import annotations

import fnmatch
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from fedbench import files
from fedbench.data.custom.yaml_dataset import FOLDER
from fedbench.data.datasets import get
from fedbench.errors import UserError
from fedbench.results.published import locate
from fedbench.safe_yaml import read_yaml
from fedbench.store.provenance import commit_of, package_version
from fedbench.store.runs import Store
from fedbench.study.cells import Cell
from fedbench.study.plan import Plan

CODE = "src/* workflow/* data_prep/* examples/* docs/*.md Makefile pyproject.toml requirements.lock LICENSE README.md"
OF_STUDY = (
    "config/papers/{}.yaml", "config/studies/{}.yaml", "config/tuned/{}/*", "published/{}/*", "reproduced/*/{}.csv",
)  # fmt: skip
README = """# {target} at scale {scale}, rebuilt by fedbench

`code/` is fedbench at commit {commit}, with the files of this study, a row for each run and metric in `reproduced/`, curves in
`results/runs/`, and the table in `tables/`. To recompute the verdicts without fedbench, in two minutes:

```bash
python3 -m venv check
check/bin/python -m pip install {packages}
cd code
../check/bin/python examples/check_table.py tables/{target}.csv
```

It says: `{said}`. Verdicts that differ are printed, and end it with status 1. To train the shortest run again, then all {planned}:

```bash
make setup
rm -rf results
.venv/bin/fedbench run {again}
.venv/bin/snakemake --cores all tables/{target}.md --config paper={paper} scale={scale} shipped=false{given}
```

The first says {expected}; on another kind of processor the last digits may differ. The data, their terms and sources:

{data}
"""  # noqa: E501


def save_artifact(plan: Plan, table: str, options: Sequence[str] = ()) -> Path:
    """Write ``artifacts/<paper>-<table>-<scale>.zip``, the same bytes for the same inputs, and return its path.

    Raises:
        UserError: the table has no runs, or a damaged one; the code is not that of a commit; or a verdict does not come
            out of the runs.
    """
    target, scale, cells = f"{plan.study.key}/{table}", plan.config.scale, plan.cells(table)
    commit, store = commit_of(Path()), Store()
    if commit.startswith("v") or commit.endswith("+"):
        raise UserError(
            "an artifact holds the code of a commit: commit src/ and config/ in a git clone first"
        )
    with tempfile.TemporaryDirectory() as folder:
        code = Path(folder, "code")
        _unpack(code, [*_patterns(plan, cells)])
        trained = {store.path(run.key) for cell in cells for run in cell.runs if store.load(run.key)}
        for path in trained | {cell.path for cell in cells if cell.path.is_file()}:
            (code / path).parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if path.is_dir() else shutil.copyfile)(path, code / path)
        data_dir = f"data_dir={json.dumps(str(Path(plan.config.data_dir).absolute()))}"
        for command in ("export", "table") if trained else ("table",):
            _call(code, "-m", "fedbench", command, target, "--scale", scale, *options, "--set", data_dir)
        rows = _rows(plan, cells, code)
        if plan.table(table).kind not in ("results", "rates") or rows.empty:
            raise UserError(f"{target} has no runs at scale {scale}: nothing to archive")
        said = _call(code, "examples/check_table.py", f"tables/{target}.csv").strip()
        facts = {"target": target, "scale": scale, "commit": commit, "paper": plan.study.key, "said": said}
        text = README.format(**facts, **_commands(cells, rows, options))
        code.with_name("README.md").write_text(text, encoding="utf-8")
        archive = Path("artifacts", f"{plan.study.key}-{table}-{scale}.zip")
        files.write(archive, _zipped(Path(folder)))
    return archive


def _patterns(plan: Plan, cells: Sequence[Cell]) -> Iterator[str]:
    """Yield which files of the commit belong to the code and to the study: another one may not be public."""
    study, used = plan.study, [name for cell in cells for name in cell.runs[0].data.datasets]
    yield from (*CODE.split(), "config/config.yaml", "config/scales/*", "published/index.csv")
    yield from (place.format(key) for key in (study.key, study.extends) if key for place in OF_STUDY)
    yield from (str(locate(study.key, table.published)) for table in study.tables.values() if table.published)
    for name in used:  # to which the dataset is added that one is made from
        path = FOLDER / f"{name}.yaml"
        if path.is_file():
            yield str(path)
            if base := read_yaml(path).get("base"):
                used.append(base)


def _unpack(folder: Path, patterns: Sequence[str]) -> None:
    """Write the files of the commit whose names have one of some patterns."""
    packed = subprocess.run(["git", "archive", "HEAD"], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        chosen = [of for of in tar if any(fnmatch.fnmatch(of.name, pattern) for pattern in patterns)]
        tar.extractall(folder, chosen, filter="data")


def _rows(plan: Plan, cells: Sequence[Cell], code: Path) -> pd.DataFrame:
    """Return what the archive has of the runs of the cells: a row for each run and metric."""
    paths = (
        code / f"reproduced/{plan.config.scale}/{key}.csv" for key in (plan.study.extends, plan.study.key)
    )
    parts = [pd.read_csv(path, dtype=str, keep_default_na=False) for path in paths if path.is_file()]
    rows = pd.concat([pd.DataFrame(columns=["key", "metric", "value"]), *parts])
    rows = rows.assign(key=rows["key"].str.split()).explode("key")  # a rate is fitted to several runs
    return rows[rows["key"].isin([run.key for cell in cells for run in cell.runs])]


def _commands(cells: Sequence[Cell], rows: pd.DataFrame, options: Sequence[str]) -> dict[str, object]:
    """Return what is to be typed, and what comes of it, as far as it depends on runs and data."""
    seconds = rows[rows["metric"] == "seconds"].set_index("key")["value"].astype(float)
    key = seconds.idxmin() if len(seconds) else rows["key"].iloc[0]
    cell, run = next((cell, run) for cell in cells for run in cell.runs if run.key == key)
    ends = rows[(rows["key"] == key) & rows["metric"].str.startswith("test_")]
    scores = [f"`{m} {float(v):.4f}`" for m, v in zip(ends["metric"], ends["value"], strict=True)]
    used = [get(name) for name in dict.fromkeys(n for cell in cells for n in cell.runs[0].data.datasets)]
    return {
        # of several --set the last one counts
        "again": shlex.join([cell.name, "--scale", cell.scale, *options, "--set", f"seeds={run.seed}"]),
        "expected": ", ".join([f"`seed {run.seed}: finished`", *scores]),
        "planned": len({run.key for cell in cells for run in cell.runs}),
        "given": "".join(f" {shlex.quote(option)}" for option in options if option != "--set"),
        "packages": " ".join(f"{n}=={package_version(n)}" for n in ("numpy", "pandas", "scipy", "pyyaml")),
        "data": "\n".join(f"* {d.title}: {d.licence}. {d.source} {d.account}".rstrip() for d in used),
    }


def _call(code: Path, *arguments: str) -> str:
    """Run a program of the archive in it; return what it prints."""
    python = {**os.environ, "PYTHONPATH": str(code / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, *arguments], cwd=code, env=python, capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"{' '.join(arguments[:4])} in the archive: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def _zipped(root: Path) -> bytes:
    """Pack a folder: names in order, without times."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(path for path in root.rglob("*") if path.is_file()):
            info = zipfile.ZipInfo(str(path.relative_to(root)))
            info.external_attr = (path.stat().st_mode & 0o777) << 16
            archive.writestr(info, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return packed.getvalue()
