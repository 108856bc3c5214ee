"""Measured numbers kept in git, and the table of data sets."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
from report_project import Project, localscgdam, run_result

from fedbench.cells import Cell
from fedbench.data.partition import partition_path
from fedbench.report import tables
from fedbench.report.export import export_reproduced
from fedbench.report.published import load
from fedbench.schema import Config


def test_reproduced_numbers_have_the_published_columns_and_their_making(
    project: Project, reduced: Config
) -> None:
    project.fill("localscgdam", "table1", reduced)
    cells = project.cells("localscgdam", "table1", reduced)
    runs = [run_result(s.seed, s.key, {"test_auc": 0.9}) for s in cells[1].runs]
    runs[0] |= {"status": "diverged", "reason": "loss is nan"}
    project.write(cells[1], runs)
    path = export_reproduced("localscgdam", "table1", reduced, project.root)
    assert path == project.root / "reproduced" / "reduced" / "localscgdam" / "table1.csv"
    rows = pd.read_csv(path)
    published = load("localscgdam", "localscgdam_table1.csv", project.root).columns
    made = ["n_seeds", "status", "commit", "scale", "device_mean", "device_variance", "key"]
    assert list(rows.columns) == [*published, *made]
    assert len(rows) == 30 and set(rows["table"]) == {1} and set(rows["n_clients"]) == {4}
    assert rows.loc[1, "status"] == "diverged" and rows.loc[1, "note"] == "1 of 3 seeds: loss is nan"
    assert pd.isna(rows.loc[1, "mean"]) and rows.loc[0, "device_variance"] == 2e-7
    first = path.read_bytes()
    assert export_reproduced("localscgdam", "table1", reduced, project.root).read_bytes() == first


def test_numbers_measured_elsewhere_stay_as_long_as_they_are_this_configurations(
    project: Project, reduced: Config
) -> None:
    def exported(config: Config) -> pd.DataFrame:
        rows = pd.read_csv(export_reproduced("localscgdam", "table1", config, project.root))
        return rows.set_index(["dataset", "method", "p"])

    def of(*place: object) -> Cell:
        return next(c for c in cells if (c.dataset, c.method, c.setting["p"]) == place)

    project.fill("localscgdam", "table1", reduced)
    cells = project.cells("localscgdam", "table1", reduced)
    before = exported(reduced)
    gone, part, failed = (
        (cells[0].dataset, "CoDA", 4),
        (cells[0].dataset, "CoDA", 8),
        (cells[0].dataset, "CoDA", 16),
    )
    (project.root / of(*gone).path).unlink()
    project.write(of(*part), [run_result(0, of(*part).runs[0].key, {"test_auc": 0.1})])
    broken = run_result(0, of(*failed).runs[0].key, {}) | {"status": "diverged", "reason": "loss is nan"}
    project.write(of(*failed), [broken])
    after = exported(reduced)
    pd.testing.assert_frame_equal(after.drop(index=[failed]), before.drop(index=[failed]), check_dtype=False)
    assert after.loc[failed, "status"] == "diverged", (
        "what is known to be bad is not hidden by an older number"
    )

    fewer = exported(reduced.model_copy(update={"seeds": [0]}))
    assert fewer.loc[gone, "status"] == "not run" and fewer.loc[gone, "key"] != before.loc[gone, "key"]


def test_metrics_are_exported_under_the_published_name(project: Project, reduced: Config) -> None:
    rows = pd.read_csv(export_reproduced("climb", "table2", reduced, project.root))
    assert set(rows["metric"]) == {"minority_test_accuracy", "overall_test_accuracy"}
    assert set(rows["status"]) == {"not run"} and len(rows) == 96


def write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def test_data_table_reads_partitions_and_keeps_what_is_missing(project: Project) -> None:
    paper = localscgdam()
    paper["tables"]["table4"] = {"title": "Data sets", "kind": "data", "datasets": ["CIFAR10", "STL10"]}
    project.save_paper("localscgdam", paper)
    config = Config(scale="reduced", seeds=[3], datasets=["CIFAR10"])
    data = project.cells("localscgdam", "table1", config)[0].runs[0].data
    folder = project.root / "data"
    write(
        folder / "prepared" / "cifar10.json",
        {"classes": {str(i): i for i in range(10)}, "shape": [3, 32, 32]},
    )
    counts = {"0": 1025000, "1": 2777}
    summary = {
        "n_clients": 4,
        "train": {"n": 1027777, "class_counts": counts, "positive_ratio": 0.09997},
        "validation": {"n": 0, "class_counts": {}},
        "test": {"n": 10000, "class_counts": {"0": 5000, "1": 5000}},
    }
    write(partition_path(data, 3, folder).with_suffix(".json"), summary)
    paths = tables.build("localscgdam", "table4", config, project.root)
    tex = paths[0].read_text()
    assert r"CIFAR10 & 1,027,777 & 2,777 & 1,025,000 & 0.1 & 10,000 & 3$\times$32$\times$32 & 4 \\" in tex
    assert r"STL10 & -- & -- & -- & -- & -- & -- & 4 \\" in tex
    assert ",1027777,2777,1025000," in paths[1].read_text()
    rows = pd.read_csv(paths[1]).set_index("dataset")
    assert rows.loc["CIFAR10", "positive"] == 2777 and rows.loc["CIFAR10", "shape"] == "3x32x32"
    assert "not prepared here (STL10)" in tex
    assert "stl10" in rows.loc["STL10", "missing"]
    assert json.loads(paths[3].read_text())["partitions"]["CIFAR10"] == data.partition_key(3)
    assert "1,027,777" in tables.show("localscgdam", "table4", config, project.root)
