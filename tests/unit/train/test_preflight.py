"""What cells ask for is checked before the first of them trains, and the place in the YAML is named."""

from __future__ import annotations

import contextlib
import csv
import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import nn
from toy import AS_IT_IS, BY_SITE, clinic_cells, rewrite, write_clinic, write_yaml

from fedbench.data.partitions import Deal, Pool, even
from fedbench.errors import UserError
from fedbench.method import FederatedMethod
from fedbench.models import mlp
from fedbench.spec import PartitionSpec
from fedbench.store.runs import Store
from fedbench.study.cells import Cell
from fedbench.study.configuration import load_config, load_paper, paper_keys
from fedbench.study.plan import Plan
from fedbench.train import preflight, run_cells, workers
from fedbench.train.tune import tuning

pytestmark = pytest.mark.usefixtures("project")
ROOT = Path(__file__).parents[3]
FILE = r"^config/papers/toy\.yaml: "
NETWORK = "datasets.Digits.network"
SHORT = {"iterations": 1, "rounds": None, "epochs": None}


def cells(**parts: Any) -> list[Cell]:
    """The cells of the toy paper's table, with changes of its parts."""
    rewrite(**parts)
    return Plan(load_config(), "toy").cells("table1")


def at(place: str, value: Any) -> dict[str, Any]:
    """A change of the paper that sets one place."""
    part, *parents, last = place.split(".")

    def change(inner: dict[str, Any]) -> None:
        functools.reduce(lambda of, key: of.setdefault(key, {}), parents, inner)[last] = value

    return {part: change}


def test_a_sound_paper_passes() -> None:
    preflight.check(cells())
    preflight.check(cells(**at("datasets.Digits.fixed", {"train": {"iterations": 4}})))


def test_a_network_with_lazy_layers_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their weights have no shape before the first call, and no layer is built with memory here."""
    lazy = nn.Sequential(nn.Flatten(), nn.LazyLinear(1))
    monkeypatch.setattr(mlp, "build", lambda shape, outputs, **options: lazy)
    preflight.check(cells())


def test_a_rule_deals_once_for_all_runs_that_share_their_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each deal among many clients takes a tenth of a second, and a table has hundreds of cells."""
    chosen, dealt = cells(), list[int]()
    rule = even.partition

    def counted(pool: Pool, spec: PartitionSpec, n_clients: int, rng: np.random.Generator) -> Deal:
        dealt.append(n_clients)
        return rule(pool, spec, n_clients, rng)

    monkeypatch.setattr(even, "partition", counted)
    preflight._check_partition.cache_clear()
    preflight.check(chosen)
    assert len(chosen) > len(dealt) == len({cell.runs[0].data.canonical for cell in chosen})


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("methods.Proximal.params", {"lr": 0.1}, r"methods\.Proximal: method 'fedprox' needs mu"),
        ("methods.Proximal.params.mue", 1, r"methods\.Proximal: .*unknown hyper-parameter 'mue'\. Did you mean 'mu'"),
        ("methods.Plain.algorithm", "fedavgg", r"methods\.Plain: unknown method 'fedavgg'"),
        ("datasets.Digits.data.dataset", "digit", r"datasets\.Digits\.data: unknown dataset 'digit'. Did you mean"),
        (f"{NETWORK}.name", "mlpp", r"datasets\.Digits\.network: unknown network 'mlpp'"),
        (f"{NETWORK}.options.width", 8, r"datasets\.Digits\.network: .*'width'\. Known: activation, hidden"),
        (f"{NETWORK}.options.hidden", [0], r"datasets\.Digits\.network: .*not \[0\]"),
        (NETWORK, {"name": "cnn", "options": {"kernel": 9}}, r"datasets\.Digits\.network: .*images of 8 x 8"),
        ("defaults.data.partition", {"rule": "dirichlet"}, r"datasets\.Digits\.data\.partition: .* needs delta"),
        ("defaults.data.partition", {"rule": "sites"}, r"datasets\.Digits\.data\.partition: .*'sites' needs a dataset"),
        ("datasets.Digits.fixed.train", SHORT, r"datasets\.Digits: train\.iterations: 1 is less than a round"),
    ],
)  # fmt: skip
def test_a_slip_is_named_with_its_place_and_nothing_is_trained(place: str, value: Any, message: str) -> None:
    wrong = cells(**at(place, value))
    with pytest.raises(UserError, match=FILE + message):
        run_cells.train_all(Plan(load_config()), wrong, Store())
    assert not Path("results").exists()


def test_a_slip_that_a_call_sets_is_not_blamed_on_the_file_alone() -> None:
    plan = Plan(load_config({"set": {"network.options.width": 8}}), "toy")
    with pytest.raises(
        UserError, match=FILE[:-2] + r" with --set network\.options\.width=8: .*network: .*'width'"
    ):
        preflight.check(plan.cells("table1"))


GREY = {"train": {"normalize": {"mean": [0.5] * 2, "std": [0.2] * 2}}}
NUMBERS, PICTURES = np.zeros((30, 4), np.float32), np.zeros((40, 3, 8, 8), np.float32)


@pytest.mark.parametrize(
    ("arrays", "entry", "message"),
    [
        ({"x": NUMBERS}, {"network": {"name": "cnn"}}, r"datasets\.Digits\.data: mine\.npz has no array 'y'"),
        ({"x": NUMBERS, "y": np.arange(30) % 3}, {"network": {"name": "cnn"}}, r"'cnn' for samples of shape \[4\]"),
        ({"x": PICTURES, "y": np.arange(40) % 2}, GREY, r"datasets\.Digits: train\.normalize has 2 means"),
    ],
)  # fmt: skip
def test_what_a_file_of_ones_own_holds_is_known_before_training(
    arrays: dict[str, np.ndarray], entry: dict[str, Any], message: str
) -> None:
    """A network for pictures takes no table of numbers; what does not fit is one mistake, whatever asks for it."""
    write_yaml(Path("config/datasets/mine.yaml"), {"file": "mine.npz"})
    np.savez("mine.npz", **arrays)
    data = {"dataset": "mine", "labels": {"rule": "original"}, "imbalance": {"rule": "none"}}
    with pytest.raises(UserError, match=FILE + f".*{message}") as raised:
        preflight.check(cells(datasets=lambda all: all["Digits"].update({"data": data} | entry)))
    assert len(str(raised.value).splitlines()) == 1


def test_all_mistakes_are_told_at_once_and_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    params = {"Plain": {}, "Proximal": {"lr": True, "mu": 1}}
    wrong = cells(methods=lambda all: [all[name].update(params=params[name]) for name in params])
    with pytest.raises(UserError) as raised:
        preflight.check(wrong)
    lines = str(raised.value).splitlines()
    assert len(lines) == 2, "though each method has two cells"
    assert "method 'fedavg' needs lr" in lines[0] and "lr: Input should be a valid number" in lines[1]
    for listed, more in ((2, lines[1]), (1, "  ... and 1 more")):
        monkeypatch.setattr(preflight, "LISTED", listed)
        with pytest.raises(UserError) as raised:
            preflight.check(wrong)
        assert str(raised.value).splitlines() == [lines[0], more]


def test_a_method_is_held_against_its_task_who_takes_part_and_what_it_starts_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nested = {"algorithm": "local_scgd", "params": {"lr": 0.1, "beta_in": 0.6, "state": "own"}}
    with pytest.raises(
        UserError, match=r"methods\.Plain on datasets\.Digits: .*'local_scgd' works on nested"
    ):
        preflight.check(cells(methods=lambda all: all["Plain"].update(nested)))
    first = {"First": {"algorithm": "fedavg", "params": {"l": 1}, "train": {"keep_model": True}}}
    start = {"start": {"cell": {"method": "First"}}}
    with pytest.raises(UserError, match="unknown hyper-parameter 'l'"):
        preflight.check(
            cells(methods=lambda all: [*(of.update(start) for of in all.values()), all.update(first)])
        )
    monkeypatch.setattr(FederatedMethod, "partial", False)
    some = {"participation": {"rule": "random", "clients": 2}}
    with pytest.raises(UserError, match=r"methods\.Plain_too .*needs all clients in every round"):
        preflight.check(cells(**at("methods.Plain_too.train", some)))


@pytest.mark.parametrize("hvp", ["exact", "finite_difference"])
@pytest.mark.parametrize("activation", ["tanh", "relu", "leaky_relu"])
def test_differences_of_gradients_take_a_smooth_network(hvp: str, activation: str) -> None:
    names = ("lr", "lr_dual", "beta_x", "beta_y", "alpha_h", "rho")
    params = dict.fromkeys(names, 0.1) | {"score": "sigmoid", "dual_step": "batch", "hvp": hvp}
    method = {"algorithm": "local_scgdam", "params": params, "grid": {}}
    kinked = at("datasets.Digits.network.options.activation", activation)
    checked = cells(**kinked, methods=lambda all: all["Plain"].update(method))
    said = r"methods\.Plain on datasets\.Digits: hvp: finite_difference takes a smooth network, and 'mlp' has"
    fits = hvp == "exact" or activation == "tanh"
    with contextlib.nullcontext() if fits else pytest.raises(UserError, match=said):
        preflight.check(checked)


def test_every_trial_of_every_method_is_checked_before_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    rewrite(**at("methods.Plain_too.grid", {"lr, momentumm": [[0.1 * n, 0.5] for n in range(1, 5)]}))
    monkeypatch.setattr(workers, "train_run", lambda *args: pytest.fail("trained"))
    said = r"toy\.yaml: methods\.Plain_too: .*unknown hyper-parameter 'momentumm'"
    with pytest.raises(UserError, match=said):
        tuning.tune_dataset(load_config(), "toy", "Digits", None, print)


@pytest.mark.parametrize("paper", paper_keys())
def test_the_papers_as_shipped_pass(paper: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Together, and each cell of the demo alone, as where one is left of a table."""
    monkeypatch.chdir(ROOT)
    together, demo = (Plan(load_config(overrides={"scale": of}), paper).cells() for of in ("reduced", "demo"))
    alone = {(cell.dataset, cell.method): [cell] for cell in demo}.values()
    for chosen in (together, *alone):
        preflight.check(chosen)
        preflight.check_tables(chosen)


SITES = ("Basel", "Lyon", "St. {X}, Turin")


def at_sites(metrics: list[str], site: bool = True, kinds: str = "ab", **data: Any) -> list[Cell]:
    """The cells of a table of three hospitals."""
    with Path("clinic.csv").open("w") as file:
        rows = [(n, kinds[n % len(kinds)], SITES[n % 3]) for n in range(60)]
        csv.writer(file).writerows([("dose", "kind", "hospital"), *rows])
    named = "site: hospital\n" if site else ""
    write_clinic(f"file: clinic.csv\nlabel: kind\n{named}", {"metrics": metrics}, data)
    return clinic_cells()


def test_as_many_clients_as_sites_and_the_key_is_that_of_their_number() -> None:
    counted, given = (at_sites(["test_auc"], **BY_SITE | {"clients": of}) for of in ("sites", 3))
    assert counted[0].runs[0].data.clients == 3
    assert [cell.key for cell in counted] == [cell.key for cell in given]
    preflight.check(counted)


@pytest.mark.parametrize(
    ("metric", "data", "said"),
    [
        ("test_auc", BY_SITE | {"site": False}, "clients is sites, but 'clinic' does not say who owns"),
        ("test_auc", BY_SITE | {"clients": 4}, r"each of the 3 sites .* data\.clients is 4: set it to 3"),
        ("test_auc@Basle", {"clients": 2}, r"unknown site 'Basle'\. Did you mean 'Basel'\?"),
        ("test_accuracy", {"clients": 2}, r"test_accuracy is not measured .*`task: \{name: detailed"),
        ("test_auc@{X}", {"clients": 2}, r"unknown site '\{X\}'"),
    ],
)
def test_what_the_sites_do_not_allow_is_found_before_training(
    metric: str, data: dict[str, Any], said: str
) -> None:
    with pytest.raises(UserError, match=said):
        checked = at_sites([metric], **data)
        preflight.check(checked)
        preflight.check_tables(checked)


def test_what_is_left_of_a_table_is_not_held_against_its_metrics() -> None:
    """One method may measure less than the others, and one cell may be run for other metrics."""
    chosen = at_sites(["test_accuracy"], clients=2)
    left = [cell for cell in chosen if cell.method == chosen[0].method]
    preflight.check_tables(left)
    assert len(left) < len(chosen)


def test_one_metric_for_each_site() -> None:
    at_sites(["test_auc", "test_auc@sites", "worst_site_test_auc"], clients=3)
    of_sites = [f"test_auc@{site}" for site in SITES]
    assert load_paper("toy").tables["table1"].metrics == ["test_auc", *of_sites, "worst_site_test_auc"]
    preflight.check_tables(at_sites(["test_auc_h", "test_auc@sites", "site_std_test_auc"], clients=3))


@pytest.mark.parametrize("tests", ["all", "own"])
def test_datasets_that_are_joined_are_the_sites(tests: str) -> None:
    several = {"sources": ["mnist"], "tests": tests}
    table = {"datasets": ["Digits"], "metrics": ["test_auc@sites"]}
    checked = cells(
        defaults=lambda defaults: defaults["data"].update(several),
        tables=lambda tables: tables["table1"].update(table),
    )
    assert load_paper("toy").tables["table1"].metrics == ["test_auc@digits", "test_auc@mnist"]
    preflight.check(checked)
    preflight.check_tables(checked)


def test_a_method_for_two_classes_on_three_is_found_before_training() -> None:
    run = at_sites(["test_overall_accuracy"], kinds="abc", clients=3, **AS_IT_IS)[0].runs[0]
    preflight.check_runs([("", "Clinic", "Plain", run)])
    values = {"lr": 0.1, "lr_dual": 0.1, "beta_x": 0.9, "beta_y": 0.9, "score": "logit", "dual_step": "batch"}
    other = run.model_copy(update={"method": "local_sgdam", "params": values})
    with pytest.raises(UserError, match="'local_sgdam' is for two classes, and 'clinic' has 3"):
        preflight.check_runs([("", "Clinic", "AUC", other)])
