"""The compositional gradient: chain rule against autograd straight through, and the three Hessian products."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from world import PARAMS, tiny_norm

from fedbench.algorithms import make_method
from fedbench.models import mlp
from fedbench.net import Net
from fedbench.objectives.auc_compositional import InnerStep
from fedbench.objectives.auc_minimax import auc_minimax
from fedbench.objectives.cross_entropy import cross_entropy
from fedbench.problem import Batch, Problem
from fedbench.tasks.classification import Task as Classification

pytestmark = pytest.mark.usefixtures("double")

Data = tuple[Tensor, Tensor]
K, B, RHO, PRIOR = 2, 7, 0.4, 0.3


def batches(seed: int) -> list[Batch]:
    rng = torch.Generator().manual_seed(seed)
    return [
        Batch(torch.randn(K, B, 1, 6, 6, generator=rng), torch.randint(0, 2, (K, B), generator=rng))
        for _ in range(2)
    ]


def straight(module: nn.Module, x: Tensor, alpha: Tensor, zeta: Data, xi: Data) -> Tensor:
    """Differentiate F(w - rho grad CE(w), a, b, alpha) by x = (w, a, b) as one function."""
    x = x.clone().requires_grad_()

    def outputs(w: Tensor, inputs: Tensor) -> Tensor:
        named, at = {}, 0
        for name, p in module.named_parameters():
            named[name] = w[at : at + p.numel()].view_as(p)
            at += p.numel()
        buffers = {name: buffer.clone() for name, buffer in module.named_buffers()}
        return functional_call(module, (named, buffers), (inputs,)).squeeze(-1)

    w = x[:-2]
    inner = nn.functional.binary_cross_entropy_with_logits(outputs(w, xi[0]), xi[1].double())
    (gradient,) = torch.autograd.grad(inner, w, create_graph=True)
    adapted = w - RHO * gradient
    scores = torch.sigmoid(outputs(adapted, zeta[0]))
    value = auc_minimax(scores[None], zeta[1][None], x[None, -2], x[None, -1], alpha[None], PRIOR)
    return torch.autograd.grad(value.sum(), x)[0]


def test_chain_rule_equals_autograd_through_the_composition() -> None:
    torch.manual_seed(0)
    module = tiny_norm()
    net = Net(tiny_norm())
    w = torch.cat([p.detach().reshape(-1) for p in module.parameters()])
    x = torch.cat([w + 0.1 * torch.randn(K, net.d), torch.randn(K, 2)], 1)
    alpha, (zeta, xi) = torch.randn(K), batches(1)
    method = make_method("local_scgdam", PARAMS["local_scgdam"] | {"rho": RHO})
    state = method.init_from_data(
        Problem(Classification(), net, PRIOR, 2, K),
        {"x": x, "alpha": alpha, "h": torch.zeros_like(x)},
        [zeta, xi],
    )
    for k in range(K):
        expected = straight(
            module, x[k], alpha[k], (zeta.inputs[k], zeta.labels[k]), (xi.inputs[k], xi.labels[k])
        )
        torch.testing.assert_close(state["u"][k], expected, rtol=1e-12, atol=1e-14)


def inner_steps(hvp: str) -> tuple[InnerStep, Tensor]:
    torch.manual_seed(0)
    net = Net(mlp.build((1, 6, 6), 1, hidden=[5], activation="tanh"))
    w = net.initial() + 0.2 * torch.randn(K, net.d)
    batch = batches(2)[0]
    step = InnerStep(net, lambda v: cross_entropy(net.scores(v, batch.inputs), batch.labels), w, RHO, hvp)
    return step, torch.randn(K, net.d) * torch.tensor([[1.0], [100.0]])


def test_inner_step_is_one_gradient_step() -> None:
    torch.manual_seed(0)
    net = Net(mlp.build((1, 6, 6), 1, hidden=[5], activation="tanh"))
    w = net.initial()[None].requires_grad_()
    batch = Batch(*(part[:1] for part in batches(2)[0][:2]))
    loss = cross_entropy(net.scores(w, batch.inputs), batch.labels)
    (gradient,) = torch.autograd.grad(loss.sum(), w)
    step = InnerStep(
        net, lambda v: cross_entropy(net.scores(v, batch.inputs), batch.labels), w.detach(), RHO, "exact"
    )
    torch.testing.assert_close(step.adapted, w.detach() - RHO * gradient)
    torch.testing.assert_close(step.loss, loss.detach())


def test_exact_product_agrees_with_differences_whatever_the_vectors_length() -> None:
    exact, q = inner_steps("exact")
    differences, _ = inner_steps("finite_difference")
    first, other = exact.jacobian_transposed(q), differences.jacobian_transposed(q)
    for k in range(K):  # client by client: their vectors differ a hundredfold in length
        assert (first[k] - other[k]).norm() < 1e-4 * (first[k] - q[k]).norm()


def test_first_order_drops_the_hessian_which_is_not_small() -> None:
    exact, q = inner_steps("exact")
    first, _ = inner_steps("first_order")
    assert torch.equal(first.jacobian_transposed(q), q)
    assert ((exact.jacobian_transposed(q) - q).norm(dim=1) > 0.01 * q.norm(dim=1)).all()


def test_differences_of_a_zero_vector_are_zero() -> None:
    differences, q = inner_steps("finite_difference")
    assert torch.equal(differences.jacobian_transposed(torch.zeros_like(q)), torch.zeros_like(q))
