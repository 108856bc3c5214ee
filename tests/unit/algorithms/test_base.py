"""Methods by name: hyper-parameters are all written, all known, all of the right kind."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from world import CONDITIONAL, METHODS, PARAMS, spec

from fedbench import algorithms, registry
from fedbench.algorithms import make_method
from fedbench.errors import UserError
from fedbench.spec import LATE_PARAMS


def test_every_method_has_tests() -> None:
    ours = set(registry.names(algorithms)) - set(registry.origins(algorithms))
    kept = {path.stem.removeprefix("test_method_") for path in Path(__file__).parent.glob("test_method_*.py")}
    assert ours - kept == {
        *METHODS,
        "untrained",  # has no step to check: tests/unit/tasks/test_controls.py
        *CONDITIONAL,
    }  # your own are tested in a file of their own


@pytest.mark.parametrize("method", METHODS)
def test_nothing_has_a_hidden_default(method: str) -> None:
    for name in PARAMS[method]:
        rest = {key: value for key, value in PARAMS[method].items() if key != name}
        with pytest.raises(UserError, match=f"method '{method}' needs {name}: write every hyper-parameter"):
            make_method(method, rest)


@pytest.mark.parametrize(
    ("method", "change", "says"),
    [
        ("fedavg", {"learning_rate": 1.0}, "unknown hyper-parameter 'learning_rate'"),
        ("local_sgdm", {"momentun": 1.0}, r"unknown hyper-parameter 'momentun'.*'momentum'\? Known: lr, m"),
        ("fedavg", {"lr": "0.1"}, "lr: Input should be a valid number"),
        ("fedavg", {"lr": "1e-1"}, "YAML takes 1e-1 for a text, write 0.1"),
        ("fedavg", {"lr": True}, "lr: Input should be a valid number"),
        ("fedavg", {"lr": None}, "lr: Input should be a valid number"),
        ("coda", {"restart_samples": 1.5}, r"restart_samples: Input should be a valid integer"),
        ("coda", {"score": "sigmoids"}, r"unknown score 'sigmoids'\. Did you mean 'sigmoid'\?"),
        ("coda", {"dual_step": "means"}, "unknown dual_step 'means'"),
        ("coda", {"lr": 0.0}, "'coda': lr: Input should be"),
        ("coda_plus", {"lr_dual": -1.0}, "'coda_plus': lr_dual: Input should be"),
        ("codasca", {"proximal": -0.1}, "'codasca': proximal: Input should be"),
        ("codasca", {"server_lr": 0}, "'codasca': server_lr: Input should be"),
        ("codasca", {"lr": float("nan")}, "'codasca': lr: Input should be a finite number"),
        ("codasca", {"variates": "prime"}, r"unknown variates 'prime'\. Did you mean 'primal'\?"),
        ("codasca", {"anchor": "mean"}, "unknown anchor 'mean'"),
        ("local_sgdam", {"score": "tanh"}, "unknown score 'tanh'"),
        ("local_scgdam", {"hvp": "exakt"}, r"unknown hvp 'exakt'\. Did you mean 'exact'\?"),
        ("local_scgdam", {"score": "tanh"}, "unknown score 'tanh'"),
        ("scaffold", {"lr": 0.0}, "method 'scaffold': lr: Input should be"),  # option II divides by it
        ("climb_scaffold", {"lr": 0.0}, "method 'climb_scaffold': lr: Input should be"),
        ("coda_plus", {"alpha_start": -2}, "alpha_start: Input should be"),
        ("codasca", {"alpha_least": -1.5}, "alpha_least: Input should be"),
        ("local_sgdam", {"alpha_least": "none"}, "alpha_least: Input should be a valid number"),
        ("coda", {"ascent": "stages"}, r"'coda': unknown ascent 'stages'\. Did you mean 'stage'"),
        ("coda", {"ascent": "stage", "restart_samples": 0}, "restart_samples, which has to be above 0"),
        ("coda", {"stage_start": "averaged"}, "unknown stage_start 'averaged'"),
        ("codasca", {"anchor": "own"}, "unknown anchor 'own'"),
        ("coda", {"a_b": "decays"}, "'coda': unknown a_b 'decays'"),
        ("feddyn", {"alpha": 0.0}, "method 'feddyn': alpha: Input should be"),
        ("moon", {"temperature": 0.0}, "method 'moon': temperature: Input should be"),
        ("fedyogi", {"tau": -1.0}, "method 'fedyogi': tau: Input should be"),
        ("climb", {"dual_scale": "papers"}, r"unknown dual_scale 'papers'\. Did you mean 'paper'\?"),
        ("a_fedavg", {"kappa": 0.9}, "'a_fedavg': kappa: Input should be"),
        ("a_fedavg", {"lr": 0.0}, "lr: Input should be"),
        ("a_scaffold", {"kappa": 0.0}, "'a_scaffold': kappa: Input should be"),
        ("pairwise", {"temperature": 0.0}, "temperature is 0.0, but has to be above 0"),
        ("pairwise", {"loss": "sigmoide"}, "Did you mean 'sigmoid'"),
        ("pairwise", {"slope": 0.0}, "slope: Input should be"),
        ("pairwise", {"passive": 0}, "passive: Input should be"),
        ("pairwise", {"pool": "epoch"}, "unknown pool 'epoch'"),
        ("pairwise", {"score": "softmax"}, "unknown score"),
        ("pairwise", {"share": "clients"}, "Did you mean 'client'"),
        ("pairwise", {"halves": "equals"}, "Did you mean 'equal'"),
        ("fcsg_m", {"beta": 0.0}, "'fcsg_m': beta: Input should be"),
        ("acc_fcsg_m", {"beta": 1.5}, "beta: Input should be"),
        ("acc_fcsg_m", {"anchor": "mean"}, "unknown anchor 'mean'"),
        ("local_scgdm", {"beta_in": 0.0}, "beta_in: Input should be"),
        ("local_scgd", {"state": "all"}, "unknown state 'all'"),
    ],
)
def test_mistakes_are_named(method: str, change: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        make_method(method, (PARAMS | CONDITIONAL)[method] | change)


def test_a_hyper_parameter_that_came_late_has_the_default_that_leaves_old_keys_alone() -> None:
    kinds = [registry.find(algorithms, "method", name, "Method") for name in registry.names(algorithms)]
    late = {
        (field.name, field.default)
        for kind in kinds
        for field in dataclasses.fields(kind)
        if field.default is not dataclasses.MISSING
    }
    assert late == {*LATE_PARAMS.items()}
    given = ({}, {"alpha_start": 0, "alpha_least": None}, {"alpha_start": -1})
    before, same, other = (spec("coda", params) for params in given)
    assert before.key == same.key != other.key and before == same
    methods = [make_method("coda", run.params) for run in (before, same, other)]
    assert methods[0] == methods[1] != methods[2]
