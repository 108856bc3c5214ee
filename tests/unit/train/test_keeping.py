"""Predictions and models that runs keep: equal to the numbers of tables, and right on samples that come later."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.metrics import average_precision_score, roc_auc_score
from toy import AS_IT_IS, BY_SITE, call, clinic_cells, write_clinic, write_project, write_yaml
from world import PARAMS

import fedbench
from fedbench.errors import UserError
from fedbench.objectives.metrics import auc
from fedbench.spec import TaskSpec
from fedbench.store import predictions
from fedbench.store.exchange import export_runs, import_runs
from fedbench.store.record import FILES, READING
from fedbench.store.runs import Store
from fedbench.study.cells import Cell

pytestmark = pytest.mark.usefixtures("project")
HOSPITALS = ("Basel", "Lyon", "Turin")
Change = Callable[[pd.DataFrame], pd.DataFrame]


def patients(count: int = 90) -> pd.DataFrame:
    """A table of two visits a patient: numbers with gaps and words, which say something of the finding."""
    rng = np.random.default_rng(3)
    person = np.repeat(np.arange(count), 2)
    sick = person % 3 == 0
    age = np.round(rng.normal(50, 9, len(person)) + 12 * sick, 1)
    age[rng.random(len(person)) < 0.1] = np.nan
    return pd.DataFrame(
        {
            "patient": [f"P{number:03d}" for number in person],
            "dose": np.round(rng.normal(2, 0.5, len(person)) - 0.6 * sick, 2),
            "age": age,
            "sex": rng.choice(["f", "m"], len(person)),
            "pain": np.where(sick & (age > 55), "typical", rng.choice(["none", "dull"], len(person))),
            "always": 7.5,
            "hospital": [HOSPITALS[number % 7 % 3] for number in person],
            "finding": np.where(sick, "case", "control"),
        }
    )  # fmt: skip


def cell_of(method: str = "Plain", keys: str = "missing: median", **run: Any) -> Cell:
    """The cell of a method on the table, as a spreadsheet with decimal commas saves it."""
    patients().to_csv("patients.csv", sep=";", decimal=",", index=False)
    described = "file: patients.csv\nlabel: finding\npositive: case\nsite: hospital\ngroup: patient\n"
    return planned(f"{described}{keys}\nstandardize: true\n", method, **run)


def planned(described: str, method: str = "Plain", **entry: Any) -> Cell:
    table = {"methods": [method], "settings": {"p": [4]}}
    paper = write_clinic(described, table, AS_IT_IS | BY_SITE | {"validation": 0.25}, **entry)
    paper["methods"]["Minimax"] = {"algorithm": "local_sgdam", "params": PARAMS["local_sgdam"]}
    write_yaml(Path("config/papers/toy.yaml"), paper)
    return clinic_cells()[0]


def changed(cell: Cell, **run: Any) -> Cell:
    return cell.model_copy(update={"runs": [one.model_copy(update=run) for one in cell.runs]})


def trained(cell: Cell) -> fedbench.Result:
    return fedbench.run(cell, keep_model=True)


def first_seed(shown: pd.DataFrame) -> pd.DataFrame:
    """The rows of the first seed's test part."""
    return shown[(shown["part"] == "test") & (shown["seed"] == shown["seed"].iloc[0])]


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory, prepared_digits: Path) -> tuple[Path, fedbench.Result]:
    folder = tmp_path_factory.mktemp("clinic")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_project(folder, prepared_digits)
        return folder, trained(cell_of())


@pytest.fixture
def result(clinic: tuple[Path, fedbench.Result], monkeypatch: pytest.MonkeyPatch) -> fedbench.Result:
    """The result of a project that tests share."""
    monkeypatch.chdir(clinic[0])
    return clinic[1]


def test_scikit_learn_makes_the_numbers_of_the_table_of_them(result: fedbench.Result) -> None:
    shown = result.predictions
    assert {*shown["site"]} == {*HOSPITALS}
    for run in result.runs.to_dict("records"):
        for part, of in (("test", "test"), ("validation", "val")):
            chosen = shown[(shown["seed"] == run["seed"]) & (shown["part"] == part)]
            labels, scores = chosen["label"].to_numpy(), chosen["score"].to_numpy()
            assert auc(scores, labels) == run[f"{of}_auc"]
            assert roc_auc_score(labels, scores) == pytest.approx(run[f"{of}_auc"], rel=1e-15, abs=0)
            assert average_precision_score(labels, scores) == pytest.approx(run[f"{of}_ap"], rel=1e-15, abs=0)
        tested = shown[(shown["seed"] == run["seed"]) & (shown["part"] == "test")]
        for site, at in tested.groupby("site"):
            assert auc(at["score"].to_numpy(), at["label"].to_numpy()) == run[f"test_auc@{site}"]
    test = shown[shown["part"] == "test"].groupby("seed")
    mean = test.apply(lambda of: roc_auc_score(of["label"], of["score"])).mean()
    assert mean == pytest.approx(result.metrics["test_auc"], rel=1e-15, abs=0)
    texts = [path.read_bytes() for path in Store().root.rglob("*") if path.is_file()]
    assert texts and not any(b"P001" in text for text in texts), "a patient's name is in the store"


@pytest.mark.parametrize("missing", ["median", "drop"])
def test_each_row_is_that_of_the_file(missing: str) -> None:
    shown, table = trained(cell_of(keys=f"missing: {missing}")).predictions, patients()
    source = table.loc[shown["row"]].reset_index(drop=True)
    assert source["age"].isna().any() == (missing == "median") and not shown.duplicated(["seed", "row"]).any()
    assert (source["patient"] == shown["group"]).all() and (source["hospital"] == shown["site"]).all()
    assert ((source["finding"] == "case") == shown["label"]).all()
    groups = {part: {*of} for part, of in shown.groupby("part")["group"]}
    assert not groups["test"] & groups["validation"]
    assert (shown["probability"] == 1 / (1 + np.exp(-shown["score"]))).all()


def test_of_library_data_a_row_is_a_place_and_no_file_can_be_scored() -> None:
    result = trained(clinic_cells()[0])
    shown = result.predictions
    assert first_seed(shown)["row"].tolist() == [*range(len(first_seed(shown)))]
    assert "group" not in shown and "site" not in shown
    Path("patients.csv").touch()
    with pytest.raises(UserError, match="a model on digits cannot score a file yet"):
        result.predict("patients.csv")


def test_scores_are_not_written_over_samples(result: fedbench.Result) -> None:
    cell, before = result.cell.name, Path("patients.csv").read_bytes()
    patients().to_csv("later.csv", index=False)
    for out, data in (("patients.csv", []), ("./later.csv", ["--data", "later.csv"])):
        said = call("predict", cell, *data, "--out", out, "--set", "keep_model=true", status=2).stderr
        assert f"--out {Path(out)} would replace the samples that are scored" in said
    assert Path("patients.csv").read_bytes() == before
    assert "columns seed, part" in call("predict", cell, "--data", "later.csv", "--out", "scored.csv").stdout


@pytest.mark.parametrize("name", ["none.csv", "config"])
def test_a_file_that_is_not_there_is_named(name: str, result: fedbench.Result) -> None:
    with pytest.raises(UserError, match=f"^{name} does not exist, or is no table"):
        result.predict(name)


def test_without_the_flag_the_message_says_what_to_do_and_numbers_stay() -> None:
    cell, store = cell_of(), Store()
    with pytest.raises(UserError, match=r"seed 0 was not trained here; `fedbench run WORDS` trains it"):
        predictions.load_predictions(cell, store, "WORDS")
    result = fedbench.run(cell)
    for ask in (lambda: result.predictions, lambda: result.predict("patients.csv")):
        with pytest.raises(UserError, match=f"(?s)seed 0 .*fedbench forget {cell.name} .*keep_model=true"):
            ask()
    assert store.load(cell.runs[0].key) is not None


def test_what_has_no_predictions_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """Clients that are no sites, so that no client's model is that of a sample, and a task without scores."""
    digits = clinic_cells()[0]
    alone = changed(digits, train=digits.runs[0].train.model_copy(update={"reference": "local"}))
    options = {"sigma": 0.1, "copies": 2, "first_samples": 1, "penalty_weight": 0.0, "penalty_gamma": 1.0}
    task = TaskSpec(name="invariant", options=options)
    nested = changed(cell_of(), method="fcsg", params={"lr": 0.1}, task=task)
    for cell, why in ((alone, "its clients are no sites"), (nested, "no score for each sample")):
        result = trained(cell)
        assert why in caplog.text
        with pytest.raises(UserError, match=why):
            _ = result.predictions


def test_of_hospitals_alone_each_patient_is_scored_by_the_model_of_its_own() -> None:
    """One of them has no positives, so no model."""
    healthy = patients()
    healthy.loc[healthy["hospital"] == "Lyon", "finding"] = "control"
    cell_of(train={"reference": "local"})
    healthy.to_csv("patients.csv", sep=";", decimal=",", index=False)
    result = trained(clinic_cells()[0])
    shown = result.predictions
    assert {*shown["site"]} == {"Basel", "Turin"}
    assert (healthy.loc[shown["row"], "patient"].to_numpy() == shown["group"]).all()
    for run in result.runs.to_dict("records"):
        test = shown[(shown["seed"] == run["seed"]) & (shown["part"] == "test")]
        for site, of in test.groupby("site"):
            assert auc(of["score"].to_numpy(), of["label"].to_numpy()) == run[f"test_auc@{site}"]
    with pytest.raises(UserError, match="each client has a model of its own"):
        result.predict("patients.csv")


def test_runs_that_diverged_are_left_out_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    cell = cell_of()
    bad = cell.runs[0].model_copy(update={"seed": 5, "params": cell.runs[0].params | {"lr": 1e30}})
    result = trained(cell.model_copy(update={"runs": [*cell.runs, bad]}))
    assert {*result.predictions["seed"]} == {run.seed for run in cell.runs}
    assert "seed 5 diverged" in caplog.text


def test_the_store_carries_them_to_another_machine_and_adds_them_to_equal_runs(tmp_path: Path) -> None:
    cell, other = cell_of(), Store(tmp_path / "other")
    fedbench.run(cell)
    keys = [run.key for run in cell.runs]
    export_runs(Store(), keys, tmp_path / "plain.tar.gz")
    assert import_runs(other, tmp_path / "plain.tar.gz").new == sorted(keys)
    for key in keys:
        Store().set_aside(key)
    shown = trained(cell).predictions
    export_runs(Store(), keys, tmp_path / "kept.tar.gz")
    assert import_runs(other, tmp_path / "kept.tar.gz").new == sorted(keys)
    pd.testing.assert_frame_equal(predictions.load_predictions(cell, other, ""), shown)
    for name in ("kept", "plain"):
        assert import_runs(other, tmp_path / f"{name}.tar.gz").present == sorted(keys)
    for name in FILES:
        theirs, ours = (of.path(keys[0]) / name for of in (other, Store()))
        assert theirs.exists() == ours.exists()
        assert not ours.exists() or theirs.read_bytes() == ours.read_bytes()


def change(**columns: Any) -> Change:
    return lambda table: table.assign(**columns)


def scored(result: fedbench.Result, table: pd.DataFrame, images: str | None = None) -> pd.DataFrame:
    table.to_csv("new.csv", index=False)
    return result.predict("new.csv", images)


@pytest.mark.parametrize("method", ["Plain", "Minimax"])
def test_the_test_part_scored_again_gives_the_number_of_the_table_to_the_digit(method: str) -> None:
    result = trained(cell_of(method))
    shown = result.predictions
    test = shown[shown["part"] == "test"]
    again = scored(result, patients().loc[first_seed(shown)["row"]])
    for column in ("score", "probability", "label", "site"):
        assert again[column].tolist() == test[column].tolist(), column
    for seed, of in again.groupby("seed"):
        expected = result.runs.set_index("seed").loc[seed, "test_auc"]
        assert auc(of["score"].to_numpy(), of["label"].to_numpy()) == expected


def test_samples_of_each_part_are_read_as_they_were_prepared(result: fedbench.Result) -> None:
    """Products of other batches round otherwise, by the last bit of float32."""
    again = result.predict("patients.csv")
    assert len(again) == len(result.runs) * len(patients())
    both = again.merge(result.predictions, on=["seed", "row"], suffixes=("_again", ""))
    assert len(both) == len(result.predictions)
    assert both["score_again"].to_numpy() == pytest.approx(both["score"].to_numpy(), rel=1e-5, abs=1e-6)
    for column in ("label", "group", "site"):
        assert both[f"{column}_again"].tolist() == both[column].tolist(), column


@pytest.mark.parametrize(
    ("change", "same"),
    [
        (lambda table: table[[*table.columns[::-1]]], lambda table: table),
        (change(ward="new", height=180), lambda table: table),
        (lambda table: table.drop(columns=["finding", "hospital", "patient"]), lambda table: table),
        (change(sex="other"), change(sex="f")),
        (change(pain=1.0), change(pain="1")),  # words that look like numbers
    ],
)
def test_what_says_nothing_else_has_the_same_scores(
    change: Change, same: Change, result: fedbench.Result
) -> None:
    table = change(patients())
    again, expected = scored(result, table), scored(result, same(patients()))
    assert again["score"].tolist() == expected["score"].tolist()
    assert ("label" in again) == ("finding" in table)


def test_a_sample_alone_may_lack_what_training_filled_in(result: fedbench.Result) -> None:
    assert isinstance(result.cell, Cell)
    reading, table = Store().table(result.cell.runs[0].key, READING), patients().iloc[[4]]
    assert reading is not None
    gap = scored(result, table.assign(age=np.nan, finding=""))
    median = scored(result, table.assign(age=json.loads(reading)["medians"]["age"]))
    assert gap["score"].tolist() == median["score"].tolist() != scored(result, table)["score"].tolist()
    assert {*gap["label"]} == {-1}


@pytest.mark.parametrize(
    ("keys", "change", "said"),
    [
        ("missing: median", lambda table: table.drop(columns="dose"), r"trained on .*column in new\.csv 'dose'"),
        ("missing: median", lambda table: table.rename(columns={"dose": "Dose"}), "'dose'.*'Dose'"),
        ("missing: median", change(dose="high"), "line 2: column 'dose' has 'high', which is not numeric"),
        ("missing: median", change(finding="unclear"), "line 2: the label 'unclear' is none of training's"),
        ("features: [dose, sex]", change(dose=np.nan), "line 2: column 'dose' is empty.*missing: median"),
        ("missing: drop", change(dose=np.nan), r"new\.csv: each row has an empty cell"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named_with_its_cure(keys: str, change: Change, said: str) -> None:
    with pytest.raises(UserError, match=said) as error:
        scored(trained(cell_of(keys=keys)), change(patients()))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("column", "words"), [("sex", "it counts as 'f'"), ("pain", "none of its words")])
def test_a_word_that_training_did_not_see_is_said(
    column: str, words: str, caplog: pytest.LogCaptureFixture, result: fedbench.Result
) -> None:
    table = patients()
    table.loc[3, column] = "other"
    assert scored(result, table)["score"].notna().all()
    assert f"column '{column}' has 'other' in 1 of {len(table)} rows" in caplog.text and words in caplog.text


def test_pictures_of_another_folder_are_scored_as_those_of_the_test_part() -> None:
    rng, names = np.random.default_rng(1), [f"p{number}.png" for number in range(60)]
    Path("scans").mkdir()
    for number, name in enumerate(names):
        pixels = rng.integers(0, 200, (9, 9)) + 50 * (number % 3 == 0)
        Image.fromarray(pixels.astype(np.uint8)).save(Path("scans", name))
    sites = np.repeat(HOSPITALS, 20)
    table = pd.DataFrame({"path": names, "finding": ["c", "a", "b"] * 20, "hospital": sites})
    table.to_csv("scans.csv", index=False)
    keys = "images: scans\nsize: [8, 8]\ngrey: true\nlabel: finding\npositive: c\nsite: hospital\n"
    result = trained(planned(f"file: scans.csv\n{keys}"))
    shown = result.predictions
    rows = table.loc[first_seed(shown)["row"]]
    Path("scans").rename("elsewhere")
    expected = shown[shown["part"] == "test"]["score"].tolist()
    assert scored(result, rows, "elsewhere")["score"].tolist() == expected
    with pytest.raises(UserError, match="scans"):
        scored(result, rows)
    with pytest.raises(UserError, match="lacks the column 'path'"):
        scored(result, rows.drop(columns="path"), "elsewhere")
