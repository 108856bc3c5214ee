"""From runs to numbers: of one cell, of several, of curves, and of runs that learned nothing."""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from report_project import REDUCED, TABLE, Project, cell_of, line, localscgdam, run_result, table_of

from fedbench import sealed_json
from fedbench.data.partition import partition_path
from fedbench.report import described
from fedbench.results import run_facts, runs
from fedbench.results.aggregate import averages, measure_cells, pool, slope, slopes, summarised
from fedbench.results.export import export_reproduced
from fedbench.results.frame import Measured
from fedbench.spec import TrainSpec
from fedbench.study.cells import Cell
from fedbench.study.configuration import load_paper
from fedbench.study.plan import Plan
from fedbench.study.schema import Config


@pytest.fixture
def cell(project: Project) -> Cell:
    return project.cells()[0]


def row(cell: Cell, metric: str = "test_auc") -> Any:
    return measure_cells([cell], [metric])[0]


def test_a_metric_that_no_run_has_is_named_with_those_they_have(project: Project, cell: Cell) -> None:
    project.finish(cell, [0.8, math.inf, 1.0], device_mean_test_auc=0.7)
    assert row(cell).status == "undefined" and "seed 1" in row(cell).reason
    result = row(cell, "test_ap")
    assert (result.status, result.reason) == ("undefined", "the runs have no test_ap, only test_auc")


def test_what_the_store_has_of_other_keys_or_without_a_job_that_left_it_is_no_result(
    project: Project, cell: Cell
) -> None:
    """A run belongs to a cell once a job has put it there; then those of earlier jobs belong to it, too."""
    path = project.finish(cell, [0.8, 0.9, 1.0])
    fewer = row(cell.model_copy(update={"runs": cell.runs[:2]}))
    assert (fewer.status, fewer.n_seeds, fewer.mean) == ("finished", 2, pytest.approx(0.85))
    path.unlink()
    assert row(cell).status == "not run"
    project.write(cell, [run_result(spec.seed, "0" * 16, {"test_auc": 0.9}) for spec in cell.runs])
    assert row(cell).status == "not run" and "other hyper-parameters" in row(cell).reason


def test_a_damaged_run_is_named_and_the_others_count(project: Project, cell: Cell) -> None:
    project.finish(cell, [0.8, 0.9, 1.0]).write_text("of no matter: the store has the numbers")
    path = project.root / "results" / "runs" / cell.runs[0].key / "run.json"
    path.write_text(path.read_text().replace("0.8", "0.9"))
    result = row(cell)
    assert (result.status, result.values) == ("incomplete", {1: 0.9, 2: 1.0})
    assert f"{cell.runs[0].key} is damaged" in result.reason


@pytest.mark.parametrize("metric", ["test_loss", "test_my_error"])
def test_a_target_of_what_falls_is_reached_from_above(project: Project, metric: str) -> None:
    """A loss, and a metric of a study's own."""
    project.change(measures={"my_error": {"label": "my error", "better": "lower"}})
    (cell, *_) = project.cells()
    for run, errors in zip(cell.runs, ([0.9, 0.3, 0.2], [0.9, 0.5, 0.1], [0.9, 0.4, 0.5]), strict=True):
        project.write_curve(run.key, {"round": [0, 5, 10], metric: errors})
    project.finish(cell, [0.9] * 3)
    result = row(cell, f"rounds_to_{metric}_0.3")
    assert result.values == {0: 5, 1: 10, 2: math.inf} and result.reason == "1 of 3 seeds: best 0.4"


def test_within_a_budget_the_last_evaluation_counts_not_the_best(project: Project, cell: Cell) -> None:
    for run in cell.runs:
        project.write_curve(run.key, {"round": [0, 5, 10, 15], "test_auc": [0.5, 0.9, 0.8, 0.95]})
    project.finish(cell, [0.95] * 3)
    assert row(cell, "test_auc_within_rounds_10").mean == pytest.approx(0.8)


def test_what_a_run_said_of_itself_when_it_ended_counts_and_no_curve_is_read(
    project: Project, cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = {"test_auc": {"pace": 0.01, "sign": "flat", "other": 0.5}}  # as runs of before say, too
    made = [run_result(run.seed, run.key, {"test_auc": 0.8}) | {"facts": facts} for run in cell.runs]
    project.write(cell, made)
    monkeypatch.setattr(pd, "read_csv", None)
    result = row(cell)
    assert (result.pace, result.idle) == (pytest.approx(0.01), {"flat": [0, 1, 2]})


def test_the_report_imports_neither_torch_nor_scipys_statistics() -> None:
    """Each takes a second or more, which a table without tests of significance has no use for."""
    modules = "report.tables, report.figures.build, results.export, report.pdf, report.page.build"
    imports = "\n".join(f"import fedbench.{module}" for module in modules.split(", "))
    code = f"import sys\n{imports}\nprint(set(sys.modules) & set(('torch', 'scipy.stats')))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "set()"


def table(project: Project, methods: dict[str, Any] | None = None, **changes: Any) -> None:
    """Write a paper whose table1 is TABLE with changes."""
    paper = localscgdam()
    paper["tables"]["table1"] = TABLE | changes
    paper["claims"] = []
    for name, entry in (methods or {}).items():
        paper["methods"][name] |= entry
    project.save_paper("localscgdam", paper)


def rows(config: Config, *index: str) -> pd.DataFrame:
    return table_of(config).rows.set_index(list(index))


def test_an_average_over_datasets_is_that_of_the_papers_own(project: Project) -> None:
    """As a printed one is; what is ours has a column beside it."""
    table(project, average="dataset", additions=["FashionMNIST"], settings={"p": [4]}, columns=["dataset"])
    project.finish_each(lambda cell: [0.8 if cell.dataset == "CIFAR10" else 0.6] * 3)
    means = rows(REDUCED, "method", "dataset").loc["CoDA", "mean"]
    assert means.to_dict() == pytest.approx({"CIFAR10": 0.8, "FashionMNIST": 0.6, "AVG": 0.8})


def measured(status: str, values: dict[int, float], p: int = 4, **more: Any) -> Measured:
    """A measurement of two wanted seeds at one p."""
    place = (("dataset", "c"), ("p", p))
    return Measured("b", place, "m", "x", status, **{"n_wanted": 2, "values": values, **more})


def test_an_average_needs_all_its_values_and_is_as_bad_as_the_worst() -> None:
    full = measured("finished", {0: 0.2, 1: 0.4}, paces={0: 0.01, 1: 0.02})
    rest = measured("finished", {0: 7.0, 1: 7.0}, 16)

    def averaged(*rows: Measured, over: Sequence[int] = (4, 8)) -> Measured:
        (number,) = averages([*rows, rest], "p", over)
        return number

    part = averaged(full, measured("incomplete", {1: 0.8}, 8))
    assert (part.status, part.values) == ("incomplete", {1: pytest.approx(0.6)})
    assert part.place == (("dataset", "c"), ("p", "AVG"))
    broken = averaged(full, measured("diverged", {1: 0.8}, 8, reason="1 of 2 seeds: nan", n_bad=1))
    assert (broken.status, broken.n_bad) == ("diverged", 1) and "nan" in broken.reason
    first = averaged(measured("failed", {1: 0.2}), measured("diverged", {1: 0.8}, 8))
    assert first.status == "diverged", "which is the method's, not a machine's"
    fewer = averaged(replace(full, signs={1: "flat"}), measured("finished", {0: 0.6}, 8, n_wanted=1))
    assert (fewer.status, fewer.n_wanted, fewer.idle) == ("incomplete", 2, {}), "seed 1 is no part of it"
    fast = measured("finished", {0: 0.6, 1: 0.8}, 8, paces={1: 0.04})
    assert averaged(full, fast).paces == {1: pytest.approx(0.03)}
    constant = [summarised(replace(full, values={0: 0.5, 1: 0.9}, metric="test_auc"))]
    for idle in (*averages(constant, "p", (4,)), *pool(constant, ["p"], 1)):
        assert idle.idle == {"constant": [0]}, "it hides none that learned nothing"
    few = averaged(full, over=(4, 8, 32))
    assert (few.status, few.reason, few.values) == ("not run", "only 1 of its 3 values are run", {})
    (apart,) = pool([full, replace(fast, scale="paper")], ["p"], 2)
    assert (apart.status, apart.values) == ("not run", {}) and "b, paper" in apart.reason
    assert pool([full], ["p"], 2)[0].status == "not run"
    (pooled,) = pool([full, fast], ["p"], 2)
    assert (pooled.place, pooled.n_seeds, pooled.n_wanted) == ((("dataset", "c"),), 2, 2)
    assert pooled.values == averaged(full, fast).values and pooled.paces == {1: pytest.approx(0.03)}


def test_the_rule_that_chooses_the_evaluation_is_said(project: Project) -> None:
    paper, (cell, *_) = load_paper("localscgdam"), project.cells()
    train = cell.runs[0].train.model_copy(update={"select": "val_auc"})
    chosen = cell.model_copy(update={"runs": [cell.runs[0].model_copy(update={"train": train})]})
    assert described.selection(paper, [cell]) == ""
    assert described.selection(paper, [chosen]).endswith("is the one with the best validation AUC.")
    assert described.selection(paper, [chosen, cell]).endswith(
        "is the last one or, as configured, the one with the best validation AUC."
    )


def test_rounds_to_a_target_are_read_from_the_curve_and_have_a_slope_seed_by_seed(project: Project) -> None:
    """CoDA's rounds of 64/p have slope -1, constant ones 0; of two targets it misses the second."""
    targets = {"test_auc": [0.75, 0.97]}
    table(project, settings={"p": [4, 8, 16]}, metrics=[], rounds_to=targets, slope="p")
    for cell in project.cells():
        p = float(str(cell.setting["p"]))
        rounds = [64 / p, 640 / p, 6.4 / p] if cell.method == "CoDA" else [5.0, 7.0, 9.0]
        for run, reached in zip(cell.runs, rounds, strict=True):
            late = 0.96 if cell.method == "CoDA" and run.seed else 0.98
            project.write_curve(run.key, {"round": [0, reached, 999], "test_auc": [0.5, 0.75, late]})
        project.finish(cell, [0.95] * 3)
    made = rows(REDUCED, "metric", "method", "p")
    early, late = (made.loc[f"rounds_to_test_auc_{target}"] for target in (0.75, 0.97))
    assert early.loc[("CoDA", 4), "mean"] == pytest.approx((16 + 160 + 1.6) / 3)
    assert (late.loc[("CoDA", 4), "status"], late.loc[("CoDA", 4), "n_seeds"]) == ("not reached", 3)
    assert late.loc[("CoDA", 4), "reason"] == "2 of 3 seeds: best 0.96; best 0.96"
    fits = early.loc[[("CoDA", "slope"), ("LocalSGDM", "slope")], ["mean", "std", "n_seeds"]]
    assert fits.to_numpy().tolist() == [pytest.approx([-1, 0, 3]), pytest.approx([0, 0, 3], abs=1e-12)]
    text = table_of().markdown()
    assert "| slope" in text and "−1.00" in text.replace("-", "−") and "* Slope: of log number" in text
    lines = [line for line in text.splitlines() if line.startswith(("| CoDA", "| LocalSGDM"))]
    assert len(lines) == 2 and all("**" not in line.split("|")[-2] for line in lines), "slopes are no race"
    assert any("**" in line for line in lines), "rounds are"


def test_a_slope_needs_all_its_points() -> None:
    full = [measured("finished", {0: 8 / p, 1: float(p)}, p) for p in (1, 2, 4)]

    def sloped(*rows: Measured, over: Sequence[int] = (1, 2, 4)) -> Measured:
        (number,) = slopes(rows, "p", over)
        return number

    assert sloped(*full).values == {0: pytest.approx(-1), 1: pytest.approx(1)}
    assert sloped(*full).place == (("dataset", "c"), ("p", "slope"))
    assert sloped(*full[:2], measured("not reached", {0: 2.0, 1: math.inf}, 4)).status == "not reached"
    few = sloped(*full, over=(1, 2, 4, 8))
    assert (few.status, few.reason) == ("not run", "only 3 of its 4 values are run")
    zero = sloped(*full[:2], measured("finished", {0: 0.0, 1: 0.0}, 4))
    assert zero.status == "undefined" and "positive" in zero.reason and not zero.values
    apart = sloped(*full[:2], measured("incomplete", {2: 3.0}, 4))
    assert apart.status == "not run", "no seed has all"
    assert not slopes(full[:2], "p", (1, 2)) and math.isnan(slope([1, 2], [3, 4]))


COUNTS = [980, 1135, 885]
FIRST = 980 / 3000
"""The accuracy of predicting the first class."""


@pytest.mark.parametrize(
    ("metrics", "counts", "word"),
    [
        ({"test_overall_accuracy": 1135 / 3000}, COUNTS, "one class"),
        ({"test_overall_accuracy": 1136 / 3000}, COUNTS, ""),
        ({"test_overall_accuracy": 1135 / 3000}, [], ""),  # without the classes nobody can tell
        ({"test_overall_accuracy": FIRST, "test_minority_accuracy": 0.0}, COUNTS, "one class"),
        ({"test_accuracy": FIRST, "test_balanced_accuracy": 1 / 3}, COUNTS, "one class"),
        ({"test_accuracy": FIRST, "test_balanced_accuracy": 0.4}, COUNTS, ""),
        ({"test_balanced_accuracy": 1 / 3, "test_f1": 0.1}, COUNTS, "one class"),
        ({"test_f1": 0.0}, COUNTS, ""),
        ({"test_accuracy": 1.0}, [0, 9], ""),  # there is but one
        ({"test_auc": 0.7, "train_auc": 0.49}, [], "reversed"),
        ({"test_auc_h@Basel": 0.2, "train_auc": 0.0}, [], "reversed"),
        ({"val_ap": 0.1, "train_auc": 0.49}, [], "reversed"),
        ({"test_loss": 0.3, "train_auc": 0.49}, [], ""),
        *(({"test_auc": 0.7, "train_auc": trained}, [], "") for trained in (0.5, None, math.nan)),
        # the ranking of a run that predicts one class may be good
        *(({name: 0.93, "test_accuracy": FIRST}, COUNTS, "") for name in (
            "test_auc", "test_ap", "test_loss", "test_sensitivity_at_0.9", "test_gradient_norm")),
        ({"test_auc": 0.5}, [], "constant"),
        ({"test_auc@Zurich": 0.5}, [], ""),  # of few patients it is one of a few values
        ({"test_auc": 0.500001}, [], ""),
    ],
)  # fmt: skip
def test_final_metrics_tell_of_a_run_that_learned_nothing(
    metrics: dict[str, float | None], counts: list[int], word: str
) -> None:
    said = {run_facts.sign(name, metrics, pd.DataFrame(), {"test": counts}) for name in metrics}
    first = next(iter(metrics))
    assert run_facts.sign(first, metrics, pd.DataFrame(), {"test": counts}) == word
    assert word != "one class" or said == {word}, "every metric of it"


def test_the_pace_is_that_before_step_sizes_fell_and_of_what_has_a_curve() -> None:
    """The metric rises by 0.1 in each fifth of the first half, and stands still after it."""
    steps = range(0, 401, 20)
    curve = pd.DataFrame({"iteration": steps, "test_auc": [0.3 + min(step, 200) / 400 for step in steps]})
    for decays, pace in (((0.5,), 0.1), ((), 0.0)):
        train = TrainSpec(iterations=400, period=1, batch_size=1, decay_at=decays)
        said = run_facts.run_facts({"test_auc": 0.8, "test_f1": 0.3, "test_ap": None}, curve, train, {})
        assert said == {"test_auc": {"pace": pytest.approx(pace, abs=1e-9)}}


@pytest.mark.parametrize(
    ("curve", "word"),
    [
        ({"test_auc": [0.6] * 3, "test_ap": [0.3] * 3}, "flat"),
        ({"test_auc": [0.6, 0.7, 0.7], "test_ap": [0.3] * 3}, ""),
        ({"test_auc": [0.6] * 2}, ""),
        ({"test_auc": [0.6] * 3, "test_ap": [0.2, 0.3, 0.4]}, ""),
        ({"test_auc": [0.6] * 3, "val_auc": [0.2, 0.3, 0.4]}, "flat"),
        ({"test_auc": [1.0] * 4}, ""),  # perfect from the first round on
        ({"test_auc": [1.0] * 4, "test_ap": [0.9] * 4}, "flat"),
    ],
)
def test_a_curve_that_never_moves_is_flat(curve: dict[str, list[float]], word: str) -> None:
    assert run_facts.sign("test_auc", {"test_auc": curve["test_auc"][-1]}, pd.DataFrame(curve), {}) == word


@pytest.fixture
def accuracies(project: Project) -> Project:
    """CoDA predicts one class in its second seed, LocalSGDAM's third never moves, LocalSGDM learns."""
    project.change(tables={"table1": {"metrics": ["test_overall_accuracy"], "published": None}}, claims=[])
    for method, level in {"CoDA": 0.8, "LocalSGDAM": 0.7, "LocalSGDM": 0.9}.items():
        cell = cell_of(project, "CIFAR10", method)
        values = [level, 1135 / 3000 if method == "CoDA" else level, level]
        for run, value in zip(cell.runs, values, strict=True):
            path = partition_path(run.data, run.seed, Path("data")).with_suffix(".json")
            path.parent.mkdir(parents=True, exist_ok=True)
            parts = {
                part: {"class_counts": dict(zip("012", counts, strict=True))}
                for part, counts in {"test": COUNTS, "validation": [9, 8, 7]}.items()
            }
            sealed_json.write(path, {"key": path.stem, "train": {"positive_ratio": None}, **parts})
            assert run_facts.class_counts(run, Path("data")) == {"test": COUNTS, "val": [9, 8, 7]}
            still = method == "LocalSGDAM" and run.seed == 2
            rising = [value - 0.1 * (not still), value, value]
            evaluations = {"round": range(3), "iteration": range(3), "test_overall_accuracy": rising}
            project.write_curve(run.key, evaluations)
        project.finish(cell, values, "test_overall_accuracy")
    return project


def test_a_table_names_them_in_their_cells_and_below_also_where_they_were_shipped(
    accuracies: Project,
) -> None:
    """Without runs, curves and partitions a mean is not shown as if all its runs had learned."""
    text = table_of().markdown()
    assert "0.659±0.243 (1/3 one class)" in text and "0.700±0.000 (1/3 flat)" in text
    assert "(1/3" not in line(text, "LocalSGDM")
    learned = {run_facts.ONE_CLASS: "CoDA: seed 1", run_facts.FLAT: "LocalSGDAM: seed 2"}
    for word, place in learned.items():
        meaning = run_facts.MEANING[word]
        assert f"{meaning[0].upper()}{meaning[1:]}: CIFAR10, p = 4, {place}." in text
    export_reproduced(Plan(REDUCED), "table1")
    shutil.rmtree(accuracies.root / "results")
    shutil.rmtree(accuracies.root / "data")
    text = table_of().markdown()
    assert "0.659‡±0.243 (1/3 one class)" in text and "0.700‡±0.000 (1/3 flat)" in text
    assert "CIFAR10, p = 4, CoDA: seed 1." in text


@pytest.mark.parametrize("word", run_facts.MEANING)
def test_within_a_budget_a_run_is_idle_that_never_learned_anything(word: str) -> None:
    """What its scores were when it ended says nothing of them before."""
    said = runs._facts_within("test_auc_within_rounds_10", {"test_auc": {"sign": word}})
    assert said == ({"sign": word} if word in (run_facts.FLAT, run_facts.ONE_CLASS) else {})
