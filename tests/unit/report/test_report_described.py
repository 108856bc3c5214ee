"""What a table says of its runs is what was run: lengths, clients, the positive class and what was dropped."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from report_project import Project, localscgdam

from fedbench.data.partition import make_partition
from fedbench.data.prepared import prepare
from fedbench.data.summary import BinaryTask
from fedbench.report import described, tables
from fedbench.spec import RunSpec, StartSpec
from fedbench.study.cells import Cell
from fedbench.study.plan import Plan
from fedbench.study.schema import Config

CONFIG = Config(scale="demo", datasets=["Digits"])


Piece = dict[str, object]


def cells(project: Project, data: Piece | None = None, train: Piece | None = None) -> list[Cell]:
    """Table 1 of the paper with its datasets' data and training as given."""
    paper = localscgdam()
    defaults = paper["defaults"]
    defaults = {"data": defaults["data"] | (data or {}), "train": defaults["train"] | (train or {})}
    project.save_paper("localscgdam", paper | {"defaults": defaults})
    return project.cells("localscgdam", "table1", CONFIG)


@pytest.mark.parametrize(
    ("train", "said"),
    [
        ({}, "100 iterations, 4 clients"),
        ({"iterations": None, "epochs": 2.5}, "2.5 epochs, 4 clients"),
        ({"iterations": None, "rounds": 30}, "30 rounds, 4 clients"),
    ],
)
def test_lengths_are_those_of_the_runs(project: Project, train: Piece, said: str) -> None:
    chosen = cells(project, train=train)
    assert described.trained(chosen) == [f"Digits: {said}."]


def test_a_table_says_that_clients_weigh_by_their_samples(project: Project) -> None:
    assert described.weights(cells(project)) == []
    weighed = described.weights(cells(project, train={"weights": "samples"}))
    assert weighed == ["Digits: averages weigh clients by their training samples."]


def test_what_training_starts_from_is_said(project: Project) -> None:
    chosen = cells(project)
    plain = chosen[0].runs[0]
    parent = plain.model_copy(update={"train": plain.train.model_copy(update={"keep_model": True})})
    for start, said in (
        ({"sha256": "0" * 64, "drop_head": True}, "the weights of a file without its output layer"),
        ({"run": parent}, f"a model of 100 iterations of {plain.method} on digits"),
    ):
        run = plain.model_copy(update={"start": StartSpec(**start)})
        cell = chosen[0].model_copy(update={"runs": [run]})
        assert described.trained([cell]) == [f"Digits: 100 iterations, 4 clients, from {said}."]


def test_the_positive_class_its_share_and_what_was_dropped_are_said(project: Project) -> None:
    halves = {"labels": {"rule": "halves"}, "imbalance": {"rule": "drop_positives", "imratio": 0.1}}
    chosen = cells(project, halves)
    assert described.tasks(chosen, Path("data")) == []  # nothing is known yet, so nothing is said
    run = chosen[0].runs[0]
    prepare("digits", "data")
    path = make_partition(run.data, run.seed, "data")
    train = json.loads(path.with_suffix(".json").read_text())["train"]
    classes = np.load("data/prepared/digits/y_train.npy")
    dropped = int((classes < 5).sum()) - train["class_counts"]["1"]
    (said,) = described.tasks(chosen, Path("data"))
    assert said == (
        f"Digits: positive: 0, 1, 2, 3, 4 (9.9% of {train['n']:,} training samples; {dropped:,} dropped)."
    )
    assert said in tables.table_of(Plan(CONFIG), "table1").markdown()


def test_of_several_partitions_the_least_and_the_largest_number_are_said(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_clients = {4: (900, 0.1, 0), 8: (1200, 0.099, 70), 2: (1000, 0.25, 9)}
    tasks = {n: BinaryTask(("3", "4"), *facts) for n, facts in of_clients.items()}
    monkeypatch.setattr(described, "binary_task", lambda data, seed, data_dir: tasks[data.clients])
    first, *_ = cells(project)
    dealt = [first.model_copy(update={"runs": [with_clients(first.runs[0], n)]}) for n in tasks]
    assert described.tasks(dealt, Path("data")) == [
        "Digits: positive: 3, 4 (9.9% to 25.0% of 900 to 1,200 training samples; 0 to 70 dropped)."
    ]


def with_clients(run: RunSpec, clients: int) -> RunSpec:
    return run.model_copy(update={"data": run.data.model_copy(update={"clients": clients})})
