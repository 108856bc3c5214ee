"""The arena: every method meets the others on the same data, network, batches and schedule, with as many trials."""

from __future__ import annotations

import pytest

from fedbench.errors import UserError
from fedbench.spec import RunSpec
from fedbench.study.cells import resolve
from fedbench.study.configuration import load_paper, load_scale
from fedbench.study.schema import Paper
from fedbench.train.tune.trials import trial_specs, trials_of

CONTROLS = ("Pooled", "Random")


def runs_on(paper: Paper, dataset: str, scale: str) -> dict[str, RunSpec]:
    """Resolve each method that has a cell on a dataset."""
    how = load_scale(scale)
    return {
        name: resolve(paper, how, dataset, {}, name, tuned={})
        for name, method in paper.methods.items()
        if method.has({"dataset": dataset})
    }


@pytest.mark.parametrize("dataset", load_paper("arena").datasets)
def test_methods_share_partitions_batches_and_schedule(dataset: str) -> None:
    paper = load_paper("arena")
    for scale in ("demo", "reduced", "paper"):
        runs = runs_on(paper, dataset, scale)
        first = runs["FedAvg"]
        for name, run in runs.items():
            assert run.network == first.network, name
            if name != "Pooled":
                train = run.train.model_copy(update={"prior": first.train.prior})  # of the min-max loss alone
                assert run.data == first.data and train == first.train, name
        pooled, full = runs["Pooled"], first.train.participation.clients or first.data.clients
        assert pooled.data.clients == 1 and pooled.data.imbalance == first.data.imbalance
        assert pooled.train.batch_size == full * (first.train.batch_size or 0)
        assert pooled.train.iterations == first.train.iterations


def test_every_method_has_the_same_number_of_trials_everywhere() -> None:
    paper = load_paper("arena")
    for name, method in paper.methods.items():
        if name == "Random":
            assert not method.grid
            continue
        trials = trials_of(paper, method, name)
        for dataset in paper.datasets:
            if method.has({"dataset": dataset}):
                tried = [trial_specs(paper, dataset, name, params)[0] for params in trials]
                assert len({run.key for run in tried}) == paper.tune.trials
                assert tried[0].data.validation == 0.1


def test_a_method_may_be_kept_to_some_datasets_and_differ_on_one() -> None:
    paper = load_paper("arena")
    assert "LocalSCGDAM" not in runs_on(paper, "MNIST-classes", "reduced")
    assert "Acc-FCSG-M" not in runs_on(paper, "CIFAR10-cyclic", "reduced")
    content = paper.model_dump(exclude={"key"})
    content["methods"]["FedAvg"]["only"] = {"dataset": ["Digits"]}
    with pytest.raises(UserError, match=r"FedAvg has only dataset Digits, not MNIST-silos"):
        _check(content, {"datasets": ["MNIST-silos"], "methods": ["FedAvg"], "metrics": ["test_auc"]})
    content["methods"]["FedAvg"]["only"] = {"dataset": ["Digitz"]}
    with pytest.raises(UserError, match="Digitz"):
        _check(content, {"datasets": ["Digits"], "methods": ["FedAvg"], "metrics": ["test_auc"]})


def _check(content: dict[str, object], table: dict[str, object]) -> None:
    """Check a paper that is a changed arena with one table."""
    from fedbench.study import checks

    tables = {"table1": {"title": "t", "additions": [], "rows": ["method"], **table}}
    paper = Paper.model_validate({**content, "key": "arena", "tables": tables, "figures": {}, "claims": []})
    for mistake in (*checks.unknown_names(paper), *checks.mistakes(paper)):
        raise UserError(mistake)
