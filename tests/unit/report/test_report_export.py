"""Measured numbers kept in git, and the table of datasets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from report_project import Project, localscgdam, run_result

from fedbench.data.partition import partition_path
from fedbench.errors import UserError
from fedbench.plan.cells import Cell
from fedbench.plan.schema import Config
from fedbench.report.numbers import sums
from fedbench.report.numbers.export import export_reproduced
from fedbench.report.numbers.published import load
from fedbench.report.tables import build as tables


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
    cost = ["floats_up", "floats_down", "samples", "seconds", "hardware", "equal_costs", "paces", "signs"]
    assert list(rows.columns) == [*published, *made, "values", *cost]
    values = [float(pair.split(":")[1]) for pair in str(rows.loc[0, "values"]).split()]
    assert sum(values) / 3 == pytest.approx(rows.loc[0, "mean"]) and len(values) == 3
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
    project.forget([*of(*part).runs[1:], *of(*failed).runs[1:]])
    after = exported(reduced)
    pd.testing.assert_frame_equal(after.drop(index=[failed]), before.drop(index=[failed]), check_dtype=False)
    assert after.loc[failed, "status"] == "diverged", (
        "what is known to be bad is not hidden by an older number"
    )
    for cell in cells:
        (project.root / cell.path).unlink(missing_ok=True)
    pd.testing.assert_frame_equal(exported(reduced), after, check_dtype=False)


@pytest.mark.parametrize(
    ("change", "lost"),
    [({"seeds": [5]}, 30), ({"seeds": [0, 9]}, 30), ({"datasets": ["CIFAR10"]}, 15)],
)
def test_an_export_that_would_lose_measured_rows_is_refused(
    project: Project, reduced: Config, change: dict[str, Any], lost: int
) -> None:
    project.fill("localscgdam", "table1", reduced)
    path = export_reproduced("localscgdam", "table1", reduced, project.root)
    before = path.read_bytes()
    other = reduced.model_copy(update=change)
    with pytest.raises(UserError, match=rf"{lost} of 30 measured rows of .*table1.csv .*--set seeds=0"):
        export_reproduced("localscgdam", "table1", other, project.root)
    assert path.read_bytes() == before
    path.unlink()
    assert export_reproduced("localscgdam", "table1", other, project.root).exists()


def test_a_row_with_more_seeds_than_asked_for_stays_unless_the_store_says_otherwise(
    project: Project, reduced: Config
) -> None:
    project.fill("localscgdam", "table1", reduced)
    path = export_reproduced("localscgdam", "table1", reduced, project.root)
    before = path.read_bytes()
    one = reduced.model_copy(update={"seeds": [0]})
    here, gone = project.cells("localscgdam", "table1", one)[7:9]
    (project.root / gone.path).unlink()
    assert export_reproduced("localscgdam", "table1", one, project.root).read_bytes() == before
    project.write(here, [run_result(0, here.runs[0].key, {"test_auc": 0.25})])
    with pytest.raises(UserError, match="1 of 30 measured rows"):
        export_reproduced("localscgdam", "table1", one, project.root)
    assert path.read_bytes() == before


def test_a_cell_whose_configuration_changed_is_replaced_once_it_is_measured_anew(
    project: Project, reduced: Config
) -> None:
    def exported() -> pd.DataFrame:
        return pd.read_csv(export_reproduced("localscgdam", "table1", reduced, project.root))

    project.fill("localscgdam", "table1", reduced)
    before = exported()
    paper = localscgdam()
    paper["methods"]["CoDA"]["params"] = {"lr": 0.5}
    project.save_paper("localscgdam", paper)
    with pytest.raises(UserError, match="6 of 30 measured rows"):
        exported()
    changed = [c for c in project.cells("localscgdam", "table1", reduced) if c.method == "CoDA"]
    for cell in changed[1:]:
        project.write(cell, [run_result(run.seed, run.key, {"test_auc": 0.1}) for run in cell.runs])
    bad = {"status": "diverged", "reason": "loss is nan"}
    project.write(changed[0], [run_result(run.seed, run.key, {}) | bad for run in changed[0].runs])
    after, coda = exported(), before["method"] == "CoDA"
    assert sorted(after.loc[coda, "status"]) == ["diverged"] + 5 * ["finished"]
    assert set(after.loc[coda, "mean"].dropna()) == {0.1}
    pd.testing.assert_frame_equal(after[~coda], before[~coda], check_dtype=False)


def test_a_failed_job_hides_no_older_number_of_the_same_key(project: Project, reduced: Config) -> None:
    project.fill("localscgdam", "table1", reduced)
    path = export_reproduced("localscgdam", "table1", reduced, project.root)
    before = path.read_bytes()
    (cell, *_) = project.cells("localscgdam", "table1", reduced)
    (project.root / cell.path).write_text("torn")
    assert export_reproduced("localscgdam", "table1", reduced, project.root).read_bytes() == before


def test_a_file_with_other_columns_is_not_overwritten(project: Project, reduced: Config) -> None:
    project.fill("localscgdam", "table1", reduced)
    path = export_reproduced("localscgdam", "table1", reduced, project.root)
    path.write_text(path.read_text().replace(",n_clients,", ",clients,"))
    sums.note(project.root / "reproduced", path)
    before = path.read_bytes()
    with pytest.raises(UserError, match=r"table1.csv has other columns"):
        export_reproduced("localscgdam", "table1", reduced, project.root)
    assert path.read_bytes() == before


def test_rows_from_before_a_setting_was_there_have_its_default(project: Project, reduced: Config) -> None:
    paper = localscgdam()
    paper["tables"]["table1"]["published"] = None
    project.save_paper("localscgdam", paper)
    project.fill("localscgdam", "table1", reduced)
    before = pd.read_csv(export_reproduced("localscgdam", "table1", reduced, project.root))
    for cell in project.cells("localscgdam", "table1", reduced):
        (project.root / cell.path).unlink(missing_ok=True)
    paper["settings"]["budget"] = {"sets": ["."], "default": 0, "label": "budget", "values": {0: {}}}
    project.save_paper("localscgdam", paper)
    after = pd.read_csv(export_reproduced("localscgdam", "table1", reduced, project.root))
    assert set(after.pop("budget")) == {0}
    pd.testing.assert_frame_equal(after, before, check_dtype=False)


def test_a_table_of_data_sets_is_not_exported(project: Project, reduced: Config) -> None:
    paper = localscgdam()
    paper["tables"]["table4"] = {"title": "Datasets", "kind": "data", "datasets": ["CIFAR10"]}
    project.save_paper("localscgdam", paper)
    with pytest.raises(UserError, match="localscgdam/table4 has no measured numbers to export"):
        export_reproduced("localscgdam", "table4", reduced, project.root)
    assert not (project.root / "reproduced").exists()


def test_metrics_are_exported_under_the_published_name(project: Project, reduced: Config) -> None:
    rows = pd.read_csv(export_reproduced("climb", "table2", reduced, project.root))
    assert set(rows["metric"]) == {"minority_test_accuracy", "overall_test_accuracy"}
    assert set(rows["status"]) == {"not run"} and len(rows) == 96


def write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def test_data_table_reads_partitions_and_keeps_what_is_missing(project: Project) -> None:
    paper = localscgdam()
    paper["tables"]["table4"] = {"title": "Datasets", "kind": "data", "datasets": ["CIFAR10", "STL10"]}
    project.save_paper("localscgdam", paper)
    config = Config(scale="reduced", seeds=[3], datasets=["CIFAR10"])
    data = project.cells("localscgdam", "table1", config)[0].runs[0].data
    folder = project.root / "data"
    write(
        folder / "prepared" / "cifar10.json",
        {"dataset": "cifar10", "classes": {str(i): i for i in range(10)}, "shape": [3, 32, 32]},
    )
    counts = {"0": 1025000, "1": 2777}
    summary = {
        "key": data.partition_key(3),
        "n_clients": 4,
        "train": {"n": 1027777, "class_counts": counts, "positive_ratio": 0.09997},
        "validation": {"n": 0, "class_counts": {}},
        "test": {"n": 10000, "class_counts": {"0": 5000, "1": 5000}},
    }
    write(partition_path(data, 3, folder).with_suffix(".json"), summary)
    paths = tables.build("localscgdam", "table4", config, project.root)
    tex = paths[0].read_text()
    assert r"CIFAR10 & 1,027,777 & 2,777 & 1,025,000 & 0.1 & 10,000 & 3$\times$32$\times$32 & 4 \\" in tex
    assert ",1027777,2777,1025000," in paths[1].read_text()
    rows = pd.read_csv(paths[1]).set_index("dataset")
    assert rows.loc["CIFAR10", "positive"] == 2777 and rows.loc["CIFAR10", "shape"] == "3x32x32"
    assert "Not prepared here: STL10 (7 of 14 numbers)." in tex and "STL10 &" not in tex
    assert r"\caption{Datasets. Scale: reduced.}" in tex
    assert "stl10" in rows.loc["STL10", "missing"]
    assert json.loads(paths[3].read_text())["partitions"]["CIFAR10"] == data.partition_key(3)
    assert "1,027,777" in tables.show("localscgdam", "table4", config, project.root)
