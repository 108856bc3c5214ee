"""Predictions and models that runs keep: equal to the numbers of tables, and right on samples that come later."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.metrics import average_precision_score, roc_auc_score
from toy import PAPER, write_yaml
from world import PARAMS

import fedbench
from fedbench.errors import UserError
from fedbench.objectives.metrics import auc
from fedbench.store import predictions
from fedbench.store.exchange import export_runs, import_runs
from fedbench.store.record import FILES
from fedbench.store.runs import Store
from fedbench.study.cells import Cell
from fedbench.study.configuration import load_config
from fedbench.study.plan import Plan
from fedbench.train import keeping

pytestmark = pytest.mark.usefixtures("project")

HOSPITALS = ("Basel", "Lyon", "Turin")


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


def cell_of(method: str = "Plain", keys: str = "", **run: Any) -> Cell:
    """The cell of a method on the table, as a spreadsheet with decimal commas saves it."""
    patients().to_csv("patients.csv", sep=";", decimal=",", index=False)
    Path("config/datasets").mkdir(exist_ok=True)
    Path("config/datasets/clinic.yaml").write_text(
        "file: patients.csv\nlabel: finding\npositive: case\nsite: hospital\ngroup: patient\n"
        f"{keys or 'missing: median'}\nstandardize: true\n"
    )
    paper = copy.deepcopy(PAPER)
    data = {"dataset": "clinic", "clients": "sites", "partition": {"rule": "by_site"}, "validation": 0.25}
    network = {"name": "mlp", "options": {"hidden": [4]}}
    paper["defaults"] = {"train": paper["defaults"]["train"] | {"period": 4}}
    paper["datasets"] = {"Digits": {"data": data, "network": network, **run}}
    paper["methods"]["Minimax"] = {"algorithm": "local_sgdam", "params": PARAMS["local_sgdam"]}
    paper["settings"] = {}
    del paper["figures"], paper["tune"]
    paper["tables"]["table1"] |= {
        "datasets": ["Digits"],
        "settings": {},
        "methods": [method],
        "columns": ["metric"],
    }
    write_yaml(Path("config/papers/toy.yaml"), paper)
    return next(cell for cell in Plan(load_config(), "toy").cells("table1") if cell.method == method)


def trained(cell: Cell, **config: Any) -> fedbench.Result:
    return fedbench.run(cell, keep_model=True, **config)


class TestPredictions:
    def test_scikit_learn_makes_the_numbers_of_the_table_of_them(self) -> None:
        cell = cell_of()
        result = trained(cell)
        shown, sites = result.predictions, set()
        for run in result.runs.to_dict("records"):
            for part, of in (("test", "test"), ("validation", "val")):
                chosen = shown[(shown["seed"] == run["seed"]) & (shown["part"] == part)]
                assert auc(chosen["score"].to_numpy(), chosen["label"].to_numpy()) == run[f"{of}_auc"]
                ours = roc_auc_score(chosen["label"], chosen["score"])
                assert ours == pytest.approx(run[f"{of}_auc"], rel=1e-15, abs=0)
                ours = average_precision_score(chosen["label"], chosen["score"])
                assert ours == pytest.approx(run[f"{of}_ap"], rel=1e-15, abs=0)
                for site, of_site in chosen[chosen["part"] == "test"].groupby("site"):
                    sites.add(site)
                    expected = run[f"test_auc@{site}"]
                    assert auc(of_site["score"].to_numpy(), of_site["label"].to_numpy()) == expected
        assert sites == {*HOSPITALS}
        test = shown[shown["part"] == "test"].groupby("seed")
        mean = test.apply(lambda of: roc_auc_score(of["label"], of["score"])).mean()
        assert mean == pytest.approx(result.metrics["test_auc"], rel=1e-15, abs=0)

    def test_each_row_is_that_of_the_file(self) -> None:
        shown, table = trained(cell_of(keys="missing: drop")).predictions, patients()
        assert table["age"].isna().any() and not shown.duplicated(["seed", "row"]).any()
        source = table.loc[shown["row"]].reset_index(drop=True)
        assert source["age"].notna().all(), "such rows are left out"
        assert (source["patient"] == shown["group"]).all() and (source["hospital"] == shown["site"]).all()
        assert ((source["finding"] == "case") == shown["label"]).all()
        groups = {part: {*of} for part, of in shown.groupby("part")["group"]}
        assert not groups["test"] & groups["validation"]
        assert (shown["probability"] == 1 / (1 + np.exp(-shown["score"]))).all()

    def test_no_name_of_a_patient_is_in_the_store(self) -> None:
        trained(cell_of())
        texts = [path.read_bytes() for path in Store().root.rglob("*") if path.is_file()]
        assert texts and not any(b"P001" in text for text in texts)

    def test_of_library_data_a_row_is_a_place(self) -> None:
        cell = next(c for c in Plan(load_config(), "toy").cells("table1") if c.method == "Plain")
        shown = trained(cell).predictions
        test = shown[(shown["part"] == "test") & (shown["seed"] == shown["seed"][0])]
        assert test["row"].tolist() == [*range(len(test))] and "group" not in shown and "site" not in shown

    def test_without_the_flag_the_message_says_what_to_do_and_numbers_stay(self) -> None:
        cell, store = cell_of(), Store()
        with pytest.raises(UserError, match=r"seed 0 was not trained here; .*--set keep_model=true"):
            predictions.load_predictions(cell, store)
        result = fedbench.run(cell)
        for ask in (lambda: result.predictions, lambda: result.predict("patients.csv")):
            with pytest.raises(
                UserError, match=rf"(?s)seed 0 .*fedbench forget {cell.name} .*keep_model=true"
            ):
                ask()
        assert store.load(cell.runs[0].key) is not None

    def test_a_task_without_scores_says_so(self, caplog: pytest.LogCaptureFixture) -> None:
        invariant = {
            "name": "invariant", "options": {
                "sigma": 0.1, "copies": 2, "first_samples": 1, "penalty_weight": 0.0, "penalty_gamma": 1.0,
            }
        }  # fmt: skip
        cell = cell_of(task=invariant)
        run = cell.runs[0].model_copy(update={"method": "fcsg", "params": {"lr": 0.1}})
        cell = cell.model_copy(update={"runs": [run]})
        result = trained(cell)
        assert "no score for each sample" in caplog.text
        with pytest.raises(UserError, match="seed 0: what it learns has no score for each sample"):
            _ = result.predictions

    def test_of_hospitals_alone_each_patient_is_scored_by_the_model_of_its_own(self) -> None:
        result = trained(cell_of(train={"reference": "local"}))
        shown, together = result.predictions, trained(cell_of()).predictions
        known = ["seed", "part", "row", "group", "site", "label"]
        assert shown[known].equals(together[known]), "the same patients"
        for run in result.runs.to_dict("records"):
            test = shown[(shown["seed"] == run["seed"]) & (shown["part"] == "test")]
            for site, of in test.groupby("site"):
                assert auc(of["score"].to_numpy(), of["label"].to_numpy()) == run[f"test_auc@{site}"]
        with pytest.raises(UserError, match="each client has a model of its own"):
            result.predict("patients.csv")

    def test_a_hospital_without_a_model_has_no_scores(self) -> None:
        cell_of()
        healthy = patients().assign(
            finding=lambda of: of["finding"].where(of["hospital"] != "Lyon", "control")
        )
        cell = cell_of(train={"reference": "local"})
        healthy.to_csv("patients.csv", sep=";", decimal=",", index=False)
        cell = next(iter(Plan(load_config(), "toy").cells("table1")))
        assert {*trained(cell).predictions["site"]} == {"Basel", "Turin"}

    def test_where_clients_are_no_sites_no_model_is_that_of_a_sample(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        cell = next(c for c in Plan(load_config(), "toy").cells("table1") if c.method == "Plain")
        runs = [
            run.model_copy(update={"train": run.train.model_copy(update={"reference": "local"})})
            for run in cell.runs
        ]
        result = trained(cell.model_copy(update={"runs": runs}))
        assert "keeps no predictions: its clients are no sites" in caplog.text
        with pytest.raises(UserError, match="without keep_model, or its clients are no sites"):
            _ = result.predictions

    def test_runs_that_diverged_are_left_out_with_a_warning(self, caplog: pytest.LogCaptureFixture) -> None:
        cell = cell_of()
        bad = cell.runs[0].model_copy(update={"seed": 5, "params": cell.runs[0].params | {"lr": 1e30}})
        result = trained(cell.model_copy(update={"runs": [*cell.runs, bad]}))
        assert {*result.predictions["seed"]} == {run.seed for run in cell.runs}
        assert "seed 5 diverged" in caplog.text

    def test_the_store_carries_them_to_another_machine_and_adds_them_to_equal_runs(
        self, tmp_path: Path
    ) -> None:
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
        pd.testing.assert_frame_equal(predictions.load_predictions(cell, other), shown)
        assert import_runs(other, tmp_path / "kept.tar.gz").present == sorted(keys)
        assert import_runs(other, tmp_path / "plain.tar.gz").present == sorted(keys)
        for name in FILES:
            theirs, ours = other.path(keys[0]) / name, Store().path(keys[0]) / name
            assert theirs.exists() == ours.exists() and (
                not ours.exists() or theirs.read_bytes() == ours.read_bytes()
            )

    @pytest.mark.parametrize("name", ["model.pt", "predictions.csv", "reading.json"])
    def test_a_changed_byte_is_refused(self, name: str) -> None:
        cell = cell_of()
        result = trained(cell)
        path = Store().path(cell.runs[0].key) / name
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        with pytest.raises(UserError, match=f"{name} is not what was written"):
            _ = result.predictions
        with pytest.raises(UserError, match=f"{name} is not what was written"):
            result.predict("patients.csv")


def change(**columns: Any) -> Callable[[pd.DataFrame], pd.DataFrame]:
    return lambda table: table.assign(**columns)


class TestFurtherSamples:
    @pytest.mark.parametrize("method", ["Plain", "Minimax"])
    def test_the_test_part_scored_again_gives_the_number_of_the_table_to_the_digit(self, method: str) -> None:
        result = trained(cell_of(method))
        shown = result.predictions
        test = shown[shown["part"] == "test"]
        rows = test["row"][test["seed"] == test["seed"].iloc[0]]
        patients().loc[rows].to_csv("new.csv", index=False)
        again = result.predict("new.csv")
        for column in ("score", "probability", "label", "site"):
            assert again[column].tolist() == test[column].tolist(), column
        for seed, scored in again.groupby("seed"):
            expected = result.runs.set_index("seed").loc[seed, "test_auc"]
            assert auc(scored["score"].to_numpy(), scored["label"].to_numpy()) == expected

    def test_samples_of_each_part_are_read_as_they_were_prepared(self) -> None:
        """Products of other batches round otherwise, by the last bit of float32."""
        result = trained(cell_of())
        scored = result.predict("patients.csv")
        assert len(scored) == len(result.runs) * len(patients())
        both = scored.merge(result.predictions, on=["seed", "row"], suffixes=("_again", ""))
        assert len(both) == len(result.predictions)
        assert both["score_again"].to_numpy() == pytest.approx(both["score"].to_numpy(), rel=1e-5, abs=1e-6)
        for column in ("label", "group", "site"):
            assert both[f"{column}_again"].tolist() == both[column].tolist(), column

    @pytest.mark.parametrize(
        "made",
        [
            lambda table: table[[*table.columns[::-1]]],
            change(ward="new", height=180),
            lambda table: table.drop(columns=["finding", "hospital", "patient"]),
        ],
    )
    def test_order_further_columns_and_absent_labels_change_no_score(self, made: Any) -> None:
        result = trained(cell_of())
        made(patients()).to_csv("new.csv", index=False)
        expected = result.predict("patients.csv")
        scored = result.predict("new.csv")
        assert scored["score"].tolist() == expected["score"].tolist()
        assert ("label" in scored) == ("label" in expected) == (
            "finding" in made(patients())
        ) or "label" not in scored

    def test_a_sample_alone_may_lack_what_training_filled_in(self) -> None:
        result, table = trained(cell_of()), patients()
        table.assign(age=np.nan, finding="").iloc[[4]].to_csv("new.csv", index=False)
        table.assign(age=table["age"].astype(float)).iloc[[4]].to_csv("full.csv", index=False)
        scored = result.predict("new.csv")
        reading, _ = keeping._kept(
            result.cell, Store(), result.cell.runs[0], Store().load(result.cell.runs[0].key)
        )  # type: ignore[arg-type]
        table.assign(age=reading.medians["age"]).iloc[[4]].to_csv("median.csv", index=False)
        assert scored["score"].tolist() == result.predict("median.csv")["score"].tolist()
        assert scored["score"].tolist() != result.predict("full.csv")["score"].tolist()
        assert {*scored["label"]} == {-1}

    @pytest.mark.parametrize(
        "keys, made, message",
        [
            ("", lambda table: table.drop(columns="dose"), r"new\.csv lacks the column 'dose'.*add it"),
            ("", lambda table: table.rename(columns={"dose": "Dose"}), "lacks the column 'dose'.*'Dose'.*Rename"),
            ("", change(dose="high"), "line 2: column 'dose' has 'high', which is not numeric"),
            ("", change(finding="unclear"), "line 2: the label 'unclear' is none of training's"),
            ("features: [dose, sex]", change(dose=np.nan), "line 2: column 'dose' is empty.*missing: median"),
            ("missing: drop", change(dose=np.nan), "no row that can be scored"),
        ],
    )  # fmt: skip
    def test_what_does_not_fit_is_named_with_its_cure(self, keys: str, made: Any, message: str) -> None:
        result = trained(cell_of(keys=keys))
        made(patients()).to_csv("new.csv", index=False)
        with pytest.raises(UserError, match=message) as error:
            result.predict("new.csv")
        assert "\n" not in str(error.value)

    @pytest.mark.parametrize("column, words", [("sex", "it counts as 'f'"), ("pain", "none of its words")])
    def test_a_word_that_training_did_not_see_is_said(
        self, column: str, words: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        result, table = trained(cell_of()), patients()
        table.loc[3, column] = "other"
        table.to_csv("new.csv", index=False)
        with caplog.at_level(logging.WARNING):
            scored = result.predict("new.csv")
        assert (
            f"column '{column}' has 'other' in 1 of {len(table)} rows" in caplog.text and words in caplog.text
        )
        assert scored["score"].notna().all()
        if column == "sex":
            table.loc[3, column] = "f"
            table.to_csv("new.csv", index=False)
            assert result.predict("new.csv")["score"].tolist() == scored["score"].tolist()

    def test_words_that_look_like_numbers_are_words_still(self) -> None:
        result, table = trained(cell_of()), patients()
        table.assign(pain=[1.0] * len(table)).to_csv("new.csv", index=False)
        table.assign(pain="1").to_csv("words.csv", index=False)
        assert result.predict("new.csv")["score"].tolist() == result.predict("words.csv")["score"].tolist()

    def test_pictures_of_another_folder_are_scored_as_those_of_the_test_part(self) -> None:
        rng = np.random.default_rng(1)
        cell, names = cell_of(), [f"p{number}.png" for number in range(60)]
        for name, number in zip(names, range(60), strict=True):
            Path("scans").mkdir(exist_ok=True)
            pixels = rng.integers(0, 200, (9, 9)) + 50 * (number % 3 == 0)
            Image.fromarray(pixels.astype(np.uint8)).save(Path("scans", name))
        finding, site = (
            ["cab"[number % 3] for number in range(60)],
            [HOSPITALS[number // 20] for number in range(60)],
        )
        table = pd.DataFrame({"path": names, "finding": finding, "hospital": site})
        table.to_csv("scans.csv", index=False)
        Path("config/datasets/clinic.yaml").write_text(
            "file: scans.csv\nimages: scans\nsize: [8, 8]\ngrey: true\nlabel: finding\npositive: c\nsite: hospital\n"
        )
        cell = next(iter(Plan(load_config(), "toy").cells("table1")))
        result = trained(cell)
        test = result.predictions.query("part == 'test'")
        rows = test["row"][test["seed"] == test["seed"].iloc[0]]
        Path("scans").rename("elsewhere")
        table.loc[rows].to_csv("new.csv", index=False)
        assert result.predict("new.csv", "elsewhere")["score"].tolist() == test["score"].tolist()
        table.loc[rows].drop(columns="path").to_csv("new.csv", index=False)
        with pytest.raises(UserError, match="lacks the column 'path'"):
            result.predict("new.csv", "elsewhere")
        table.loc[rows].to_csv("new.csv", index=False)
        with pytest.raises(UserError, match="scans"):
            result.predict("new.csv")

    @pytest.mark.parametrize("name", ["none.csv", "config"])
    def test_a_file_that_is_not_there_is_named(self, name: str) -> None:
        with pytest.raises(UserError, match=f"^{name} does not exist, or is no table"):
            trained(cell_of()).predict(name)

    def test_a_dataset_that_is_no_table_says_not_yet(self) -> None:
        cell = next(c for c in Plan(load_config(), "toy").cells("table1") if c.method == "Plain")
        Path("patients.csv").touch()
        with pytest.raises(UserError, match="a model on digits cannot score a file yet"):
            trained(cell).predict("patients.csv")
