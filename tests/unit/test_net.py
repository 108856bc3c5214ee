"""A network as a function of one vector: equal to its module, the same stacked as one by one, twice derived."""

from __future__ import annotations

import contextlib
import copy
import itertools
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedbench import models
from fedbench.errors import UserError
from fedbench.models import cnn, densenet121, mlp, resnet20
from fedbench.net import Net, build_network
from fedbench.net.twice import Twice
from fedbench.objectives.cross_entropy import cross_entropy

NETWORKS: dict[str, tuple[Any, tuple[int, int, int], dict[str, Any]]] = {
    "mlp": (mlp.build, (1, 4, 4), {"hidden": [7, 5], "activation": "leaky_relu"}),
    "cnn": (cnn.build, (2, 12, 12), {"channels": [3, 4], "kernel": 3, "hidden": [6]}),
    "cnn of grey images": (cnn.build, (1, 12, 10), {"channels": [3, 4], "kernel": 3, "hidden": [6]}),
    "resnet20": (resnet20.build, (3, 8, 8), {}),
    "densenet121": (densenet121.build, (3, 32, 32), {}),
}
K, B = 3, 4

pytestmark = pytest.mark.usefixtures("double")


def make(name: str, outputs: int = 1, seed: int = 0) -> nn.Module:
    builder, shape, options = NETWORKS[name]
    torch.manual_seed(seed)
    module: nn.Module = builder(shape, outputs, **options)
    return module


def batch(name: str, clients: int = K, seed: int = 0) -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(seed)
    inputs = torch.randn(clients, B, *NETWORKS[name][1], generator=rng)
    return inputs, torch.randint(0, 2, (clients, B), generator=rng)


def flat(tensors: Any) -> Tensor:
    parts = [t.detach().reshape(-1) for t in tensors if t.is_floating_point()]
    return torch.cat(parts) if parts else torch.zeros(0)


@pytest.mark.parametrize("name", NETWORKS)
def test_equals_the_module_at_any_vector(name: str) -> None:
    module = make(name, outputs=2)
    net = Net(copy.deepcopy(module))
    assert torch.equal(net.initial(), flat(module.parameters())) and net.d == len(net.initial())
    assert torch.equal(net.initial_buffers(), flat(module.buffers()))
    x = net.initial() + 0.01 * torch.randn(net.d)
    nn.utils.vector_to_parameters(x, module.parameters())
    inputs, _ = batch(name, 1)
    buffers = net.initial_buffers()[None].clone()

    torch.testing.assert_close(net.scores(x[None], inputs, buffers)[0], module(inputs[0]))
    torch.testing.assert_close(buffers[0], flat(module.buffers()))
    module.eval()
    torch.testing.assert_close(net.scores(x[None], inputs, buffers, train=False)[0], module(inputs[0]))
    torch.testing.assert_close(buffers[0], flat(module.buffers()))  # evaluation leaves them alone


@pytest.mark.parametrize("name", NETWORKS)
def test_stacked_clients_equal_one_by_one(name: str) -> None:
    """Scores, running statistics, gradients and Hessian products, exactly but for rounding."""
    net = Net(make(name))
    clients = 2 if name == "densenet121" else K
    x = net.initial() + 0.02 * torch.randn(clients, net.d)
    inputs, labels = batch(name, clients)
    q = torch.randn(clients, net.d)

    def everything(chosen: list[int]) -> list[Tensor]:
        buffers = net.initial_buffers().expand(len(chosen), -1).clone()
        leaf = x[chosen].requires_grad_()
        scores = net.scores(leaf, inputs[chosen], buffers)
        losses = cross_entropy(scores, labels[chosen])
        (gradient,) = torch.autograd.grad(losses.sum(), leaf, create_graph=True)
        (product,) = torch.autograd.grad((gradient * q[chosen]).sum(), leaf)
        again = net.scores(x[chosen], inputs[chosen], buffers, train=False)
        without = net.scores(x[chosen], inputs[chosen], None)
        return [part.detach() for part in (scores, buffers, gradient, product, again, without)]

    stacked = everything(list(range(clients)))
    assert [part.shape[0] for part in stacked] == [clients] * 6
    single = [torch.cat(parts) for parts in zip(*[everything([k]) for k in range(clients)], strict=True)]
    for mine, theirs in zip(stacked, single, strict=True):
        assert (mine - theirs).norm() <= 1e-9 * theirs.norm()
    assert not torch.allclose(stacked[3], torch.zeros(()))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("hidden", [[], [5, 4]])
def test_plain_layers_are_stacked_as_vmap_does_to_the_bit(bias: bool, hidden: list[int]) -> None:
    widths = [12, *hidden, 2]
    layers: list[nn.Module] = [nn.Flatten()]
    for fan_in, fan_out in itertools.pairwise(widths):
        layers += [nn.Linear(fan_in, fan_out, bias=bias), nn.LeakyReLU()]
    net = Net(nn.Sequential(*layers))
    x, inputs = net.initial() + 0.1 * torch.randn(K, net.d), torch.randn(K, 7, 3, 2, 2)
    collected = []
    for plain in (True, False):
        net._plain = plain
        leaf = net.leaf(x)
        scores = net.scores(leaf, inputs)
        collected.append((scores, *leaf.gradient(scores.square().mean((1, 2)))))
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(*collected, strict=True))


@pytest.mark.parametrize("clients", [1, 2])
@pytest.mark.parametrize("name", ["cnn", "resnet20"])
def test_leaf_gives_the_gradients_of_the_vector(name: str, clients: int) -> None:
    net = Net(make(name))
    x = net.initial() + 0.02 * torch.randn(clients, net.d)
    inputs, labels = batch(name, clients)
    q, factor = torch.randn(clients, net.d), torch.ones(clients, requires_grad=True)

    full = x.clone().requires_grad_()
    (expected,) = torch.autograd.grad(
        cross_entropy(net.scores(full, inputs), labels).sum(), full, create_graph=True
    )
    (product,) = torch.autograd.grad((expected * q).sum(), full)
    leaf = net.leaf(x)
    losses = cross_entropy(net.scores(leaf, inputs), labels)
    result, in_factor = leaf.gradient((factor * losses).sum(), factor, create_graph=True)
    torch.testing.assert_close(result, expected)
    torch.testing.assert_close(in_factor, losses)
    torch.testing.assert_close(leaf.gradient((result * q).sum())[0], product, rtol=1e-8, atol=1e-10)
    assert result.shape == (clients, net.d)


def test_without_buffers_training_leaves_no_trace_and_evaluation_is_refused() -> None:
    net = Net(make("resnet20"))
    inputs, _ = batch("resnet20")
    x = net.initial().expand(K, -1)
    buffers = net.initial_buffers().expand(K, -1).clone()
    with_trace = net.scores(x, inputs, buffers)
    torch.testing.assert_close(net.scores(x, inputs, None), with_trace)
    assert not torch.equal(buffers[0], net.initial_buffers())
    assert torch.equal(net.initial_buffers(), flat(make("resnet20").buffers()))
    with pytest.raises(ValueError, match="buffers"):
        net.scores(x, inputs, None, train=False)


@pytest.mark.parametrize("name", NETWORKS)
def test_last_layer_is_found(name: str) -> None:
    module = make(name, outputs=5)
    net = Net(copy.deepcopy(module))
    place, shape = net.last_layer()
    *_, last = (part for part in module.modules() if isinstance(part, nn.Linear))
    assert shape == last.weight.shape and shape[0] == 5
    assert torch.equal(net.initial()[place].view(shape), last.weight)
    with pytest.raises(UserError, match="linear output layer"):
        Net(nn.Sequential(nn.Conv2d(1, 1, 3), nn.Flatten())).last_layer()


def test_initial_weights_depend_on_the_seed_alone() -> None:
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    first = build_network("mlp", (4,), 1, seed=7).initial()
    assert torch.equal(torch.random.get_rng_state(), before)  # nothing global moved
    torch.manual_seed(2)
    torch.rand(3)
    assert torch.equal(build_network("mlp", (4,), 1, seed=7).initial(), first)
    assert not torch.equal(build_network("mlp", (4,), 1, seed=8).initial(), first)


@pytest.mark.parametrize(
    ("name", "shape", "options", "says"),
    [
        ("resnet", (3, 8, 8), {}, r"unknown network 'resnet'.*'resnet20'.*Known: .*mlp"),
        ("mlp", (4,), {"hiden": [3]}, r"network 'mlp': 'hiden'\. Did you mean 'hidden'\? Known: activation, hidden\."),
        ("mlp", (4,), {"activation": "leaky"}, r"unknown activation 'leaky'.*'leaky_relu'"),
        ("cnn", (1, 28, 28), {"activation": "leaky"}, r"unknown activation 'leaky'.*'leaky_relu'"),
        ("cnn", (1, 8, 8), {}, "8 x 8 pixels are too small for 2 blocks"),
        ("densenet121", (2, 32, 32), {}, "3 channels or 1, not 2"),
        ("conv4", (1, 28, 28), {"form": "stride"}, r"'stride'\. Did you mean 'strided'"),
        ("conv4", (1, 22, 22), {"form": "strided"}, "23 x 23"),
    ],
)  # fmt: skip
def test_what_fits_no_network_is_named(
    name: str, shape: tuple[int, ...], options: dict[str, Any], says: str
) -> None:
    with pytest.raises(UserError, match=says):
        build_network(name, shape, 1, seed=0, options=options)


FLAT = "nn.Sequential(nn.Flatten(), nn.Linear({width}, {outputs}){more})"


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        (FLAT.format(width=9, outputs="outputs + 1", more=""), r"returns \[2, 2\] .*\[2, 1\]"),
        (FLAT.format(width=9, outputs="outputs", more=", nn.Flatten(0)"), r"returns \[2\] .*\[2, 1\]"),
        (FLAT.format(width=8, outputs="outputs", more=""), r"samples of shape \[1, 3, 3\]: mat1 and mat2"),
        ("None", r"torch\.nn\.Module, not None"),
        ("nn.Flaten()", r"a_network\.py, line 3: AttributeError: .*'Flaten'"),
        ("Scaled()", "Scaled registers the buffer 'scale'"),
        ("nn.Sequential(nn.Flatten(2), nn.LSTM(9, outputs))", "returns a tuple .*\\[2, 1\\]"),
        ("nn.Sequential(nn.Flatten(), nn.Linear(9, outputs).requires_grad_(False))", r"1\.weight is frozen"),
        ("tied(nn.Sequential(nn.Linear(9, 9), nn.Linear(9, 9)))", r"1\.weight is .* of another layer"),
    ],
)
def test_a_network_of_ones_own_that_cannot_be_trained_is_named(
    returned: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = "class Scaled(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    held += "        self.register_buffer('scale', torch.ones(9))\n"
    held += "def tied(module):\n    module[1].weight = module[0].weight\n    return module\n"
    a_network(returned, tmp_path, monkeypatch, held)
    with pytest.raises(UserError, match=f"network 'a_network'.*{says}"):
        build_network("a_network", (1, 3, 3), 1, seed=0)


@pytest.mark.parametrize("weights", ["pytorch", "xavier"])
def test_lazy_layers_draw_their_weights_from_the_seed(
    weights: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They draw in the first call, on two zeros here; a run could not be repeated."""
    nets = []
    for first in ("nn.LazyLinear(4)", "nn.LazyLinear(4)", "nn.Linear(9, out_features=4)"):
        a_network(f"nn.Sequential(nn.Flatten(), {first})", tmp_path, monkeypatch)
        nets.append(build_network("a_network", (1, 3, 3), 4, seed=0, weights=weights).initial())
    assert torch.equal(nets[0], nets[1]) and nets[0].shape == nets[2].shape
    assert torch.equal(nets[0], nets[2])


def a_network(returned: str, folder: Path, monkeypatch: pytest.MonkeyPatch, more: str = "") -> None:
    """Write the network ``a_network``, whose ``build`` returns an expression."""
    text = f"import torch; from torch import nn\ndef build(shape, outputs):\n    return {returned}\n{more}"
    (folder / "a_network.py").write_text(text)
    monkeypatch.setattr(models, "__path__", [*models.__path__, str(folder)])
    monkeypatch.delitem(sys.modules, "fedbench.models.a_network", raising=False)


def test_a_leaf_of_a_row_inside_other_memory_is_that_row() -> None:
    net = build_network("mlp", (5,), 3, 0, {"hidden": [4]})
    inputs = torch.randn(1, 6, 5, generator=torch.Generator().manual_seed(0))
    rows = torch.stack([torch.zeros(net.d), net.initial()])
    inside = net.scores(net.leaf(rows[1:]), inputs)
    assert torch.equal(inside, net.scores(rows[1:].clone(), inputs))
    spread = rows.T.contiguous().T[1:]  # neighbouring parameters lie two floats apart
    assert torch.equal(net.scores(net.leaf(spread), inputs), inside)


def network(name: str) -> nn.Module:
    """A network in double precision, with weights drawn apart from those of its initialisation."""
    grouped = nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2, dilation=2)
    made: dict[str, nn.Module] = {
        "resnet20": resnet20.build((4, 8, 8), 2),
        "grouped": nn.Sequential(grouped, nn.Tanh(), nn.Conv2d(6, 2, 3, padding="same")),
        "tables": nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Tanh(), nn.Linear(3, 1)),
        "no statistics": nn.Sequential(nn.Conv2d(4, 2, 1), nn.BatchNorm2d(2, track_running_stats=False), nn.Flatten()),
    }  # fmt: skip
    module = made[name].double()
    for part in module.parameters():
        part.data.add_(0.1 * torch.randn_like(part))
    return module


@pytest.mark.parametrize("name", ["resnet20", "grouped", "tables", "no statistics"])
def test_the_second_derivative_is_that_of_pytorch(name: str) -> None:
    torch.manual_seed(0)
    module = network(name)
    x = torch.randn(5, 4, *[8, 8] if name != "tables" else [], dtype=torch.float64)
    state = {key: value.clone() for key, value in module.state_dict().items()}

    def derivatives(mode: Any) -> tuple[Tensor, list[Tensor], list[Tensor], dict[str, Tensor]]:
        module.load_state_dict(state)
        weights = [part for part in module.parameters() if part.requires_grad]
        with mode:
            out = module(x)
        loss = F.softplus(out.sin()).mean()
        first = torch.autograd.grad(loss, weights, create_graph=True)
        direction = [torch.cos(torch.arange(part.numel()).double()).view_as(part) for part in weights]
        product = torch.autograd.grad(
            sum((a * b).sum() for a, b in zip(first, direction, strict=True)), weights, allow_unused=True
        )
        product = [torch.zeros_like(w) if p is None else p for w, p in zip(weights, product, strict=True)]
        return out, [*first], product, {key: value.clone() for key, value in module.state_dict().items()}

    plain, ours = derivatives(contextlib.nullcontext()), derivatives(Twice())
    assert torch.equal(plain[0], ours[0])
    for before, now in zip(plain[1], ours[1], strict=True):
        assert torch.equal(before, now)
    assert plain[3].keys() == ours[3].keys()
    for key, value in plain[3].items():
        assert torch.equal(value, ours[3][key]), key
    scale = max(float(part.abs().max()) for part in plain[2])
    assert scale > 1e-4
    for before, now in zip(plain[2], ours[2], strict=True):
        torch.testing.assert_close(now, before, rtol=1e-9, atol=1e-12 * scale)


def test_evaluation_is_left_as_it_is() -> None:
    """With running statistics a batch-norm is another function."""
    torch.manual_seed(0)
    module = network("resnet20").eval()
    x = torch.randn(3, 4, 8, 8, dtype=torch.float64)
    with Twice():
        inside = module(x)
    assert torch.equal(inside, module(x))
