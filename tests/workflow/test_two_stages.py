"""codasca's Table 4 on small files in the official formats: pre-training, its classifier dropped, CODASCA."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from fedbench.store.record import MODEL
from fedbench.store.runs import Store
from fedbench.study import configuration
from fedbench.study.plan import Plan
from fedbench.train.training import train_run
from projects import Project

TABLE = "tables/codasca/table4"
DIES = """
import os, sys

def hook(event, args, seen=[0]):
    if event == "os.rename" and str(args[1]).endswith(os.environ["DIES_IN"] + ".unfinished/checkpoint.pt"):
        seen[0] += 1
        if seen[0] == 2:
            os.kill(os.getpid(), 9)

if os.environ.get("DIES_IN"):
    sys.addaudithook(hook)
"""
"""A sitecustomize that kills a process before it writes the second checkpoint of a run."""
CHEXPERT = (
    "Path,Sex,Age,Frontal/Lateral,AP/PA,Cardiomegaly,Edema,Consolidation,Atelectasis,Pleural Effusion\n"
)
NIH = "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position\n"


def picture(shade: int) -> bytes:
    rng = np.random.default_rng(shade)
    stream = io.BytesIO()
    Image.fromarray(rng.integers(0, 60, (8, 8), dtype=np.uint8) + np.uint8(shade)).save(stream, "PNG")
    return stream.getvalue()


def put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def corpora(folder: Path) -> None:
    """Twelve patients of CheXpert and six of its official part, twelve of ChestX-ray14; a third with edema."""
    for part, patients in (("train", range(12)), ("valid", range(20, 26))):
        rows = []
        for k in patients:
            path = f"{part}/patient{k:05}/study1/view1_frontal.jpg"
            ill = k % 3 == 0
            rows.append(f"CheXpert-v1.0-small/{path},Male,50,Frontal,AP,,{1.0 if ill else ''},,,\n")
            put(folder / "chexpert" / path, picture(150 if ill else 20))
        put(folder / "chexpert" / f"{part}.csv", (CHEXPERT + "".join(rows)).encode())
    rows = []
    for k in range(12):
        rows.append(f"{k:08}_000.png,{'Edema' if k % 3 == 0 else 'No Finding'},0,{k},50,M,PA\n")
        put(folder / "chestxray14/images" / f"{k:08}_000.png", picture(160 if k % 3 == 0 else 10))
    put(folder / "chestxray14/Data_Entry_2017.csv", (NIH + "".join(rows)).encode())


@pytest.fixture
def table4(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Edema with data of one to three hospitals, the third of which nobody has, on a network of a few neurons."""
    corpora(project.root / "data/raw")
    small = {"name": "mlp", "options": {"hidden": [2]}}
    with project.edit("config/papers/codasca.yaml") as paper:
        paper["defaults"]["train"]["batch_size"] = 4
        for name in ("CheXpert", "CheXpert-pretraining"):
            paper["datasets"][name]["network"] = small
        paper["datasets"]["CheXpert"]["start"]["cell"]["setting"]["I"] = 2
        paper["methods"]["Pretraining"] |= {"only": {"I": [2]}}
        paper["settings"]["I"]["default"] = 2
        paper["tables"]["table4"]["settings"] = {"k_sources": [2, 3], "disease": ["C1"]}
        paper["tables"]["table4"].pop("average")
        paper["claims"] = []
    tiny = {"datasets": ["CheXpert"], "train": {"iterations": 8, "stage_every": 4, "evaluations": 2}}
    project.write("config/scales/tiny.yaml", {"description": "", "seeds": [0], "papers": {"codasca": tiny}})
    with project.edit("config/config.yaml") as config:
        config |= {"paper": "codasca", "checkpoint_seconds": 0}
    (project.root / "dies").mkdir()
    (project.root / "dies/sitecustomize.py").write_text(DIES)
    python_path = [str(project.root / "dies"), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(python_path))
    monkeypatch.chdir(project.root)
    return project


def test_killed_in_either_stage_it_ends_with_the_same_bytes_and_a_missing_hospital_stops_no_other(
    table4: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = configuration.load_config()
    (run, *_), _ = (cell.runs for cell in Plan(config, "codasca").cells("table4"))
    assert run.start is not None and run.start.run is not None
    first = run.start.run
    for stage in (first, run):
        monkeypatch.setenv("DIES_IN", stage.key)
        said = table4.snakemake(f"{TABLE}.tex", "--cores", "1", fails=True)
        assert "killed by signal 9" in said
        store = Store()
        assert store.unfinished() == [stage.key] and store.checkpoint(stage.key).exists()
        assert (store.load(first.key) is not None) == (stage is run), "the first stage comes first, and once"
    monkeypatch.delenv("DIES_IN")
    said = table4.snakemake(f"{TABLE}.tex", "--cores", "1", fails=True)
    assert "padchest" in said and "https://" in said

    with (table4.root / f"{TABLE}.csv").open() as file:
        rows = {row["k_sources"]: row for row in csv.DictReader(file)}
    assert rows["2"]["status"] == "finished" and rows["3"]["status"] != "finished"

    full = Store(tmp_path / "whole")
    train_run(run, config, full)
    for key in (first.key, run.key):
        assert (store.path(key) / "curve.csv").read_bytes() == (full.path(key) / "curve.csv").read_bytes()
    models = [torch.load(s.path(first.key) / MODEL, weights_only=True) for s in (store, full)]
    assert all(torch.equal(models[0][name], models[1][name]) for name in models[0]) and len(models[0]) == 4
