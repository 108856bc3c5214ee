"""Convolutions and batch-norms whose gradients are differentiated again, on a processor.

PyTorch computes the second derivative of a batch-norm by some forty operations on all activations, and that of a
convolution by kernels for other shapes: a product with the Hessian of a ResNet20 took five times as long as its
gradient. With the kernels of the first derivative it takes half of that. Values and first derivatives keep their
bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.overrides import TorchFunctionMode

_aten = torch.ops.aten


class Twice(TorchFunctionMode):
    """Within it, convolutions and batch-norms of a network in training can be differentiated twice."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Take the place of the two functions; leave others as they are."""
        kwargs = kwargs or {}
        if func is torch.conv2d and not kwargs and not isinstance(args[4], str):
            x, weight, bias, stride, padding, dilation, groups = args
            return _Convolution.apply(x, weight, bias, (stride, padding, dilation, False, [0, 0], groups))  # type: ignore[no-untyped-call]
        if func is F.batch_norm and kwargs["training"] and kwargs["weight"] is not None:
            given = (kwargs["weight"], kwargs["bias"], *args[1:], kwargs["momentum"], kwargs["eps"])
            return _Norm.apply(args[0], *given)  # type: ignore[no-untyped-call]
        return func(*args, **kwargs)


def _backward(g: Tensor, x: Tensor, weight: Tensor, how: tuple[Any, ...], wanted: list[bool]) -> list[Any]:
    """Return a convolution's gradients by x, weight and bias, those that are wanted."""
    sizes = [len(weight)] if wanted[2] else None
    return _aten.convolution_backward(g, x, weight, sizes, *how, wanted)  # type: ignore[no-any-return]


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, how: tuple[Any, ...]) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.how = how
        return _aten.convolution(x, weight, bias, *how)  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        wanted = [*ctx.needs_input_grad[:3]]
        return *_ConvolutionBack.apply(g, *ctx.saved_tensors, ctx.how, wanted), None  # type: ignore[no-untyped-call]


class _ConvolutionBack(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, g: Tensor, x: Tensor, weight: Tensor, how: tuple[Any, ...], wanted: list[bool]
    ) -> Any:
        ctx.save_for_backward(g, x, weight)
        ctx.set_materialize_grads(False)
        ctx.how = how
        return tuple(_backward(g, x, weight, how, wanted))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_x: Tensor | None, by_weight: Tensor | None, by_bias: Tensor | None) -> Any:
        (g, x, weight), how = ctx.saved_tensors, ctx.how
        of_g = of_x = of_weight = None
        if by_x is not None:
            of_g = _aten.convolution(by_x, weight, by_bias, *how)
            of_weight = _backward(g, by_x, weight, how, [False, True, False])[1]
        if by_weight is not None:
            of_x = _backward(g, x, by_weight, how, [True, False, False])[0]
            more = _aten.convolution(x, by_weight, None if by_x is not None else by_bias, *how)
            of_g = more if of_g is None else of_g.add_(more)
        return of_g, of_x, of_weight, None, None


def _norm_backward(
    g: Tensor, x: Tensor, weight: Tensor, mean: Tensor, scale: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients by x, weight and bias: with z = (x - mean) scale, per channel and m numbers in it,

    weight scale (g - sum(g)/m - z sum(g z)/m),  sum(g z),  sum(g).
    """
    return _aten.native_batch_norm_backward(g, x, weight, None, None, mean, scale, True, eps, [True] * 3)  # type: ignore[no-any-return]


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, *how: Any) -> Tensor:
        out, mean, scale = _aten.native_batch_norm(x, weight, bias, *how[:2], True, *how[2:])
        ctx.save_for_backward(x, weight, mean, scale)
        ctx.eps = how[-1]
        return out  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return *_NormBack.apply(g, *ctx.saved_tensors, ctx.eps), None, None, None, None  # type: ignore[no-untyped-call]


class _NormBack(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, g: Tensor, x: Tensor, weight: Tensor, mean: Tensor, scale: Tensor, eps: float
    ) -> Any:
        result = _norm_backward(g, x, weight, mean, scale, eps)
        ctx.save_for_backward(g, x, weight, mean, scale, *result[1:])
        ctx.eps = eps
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, v: Tensor, by_weight: Tensor, by_bias: Tensor) -> Any:
        """Return the gradients by g, x, weight of L = <v, gradient by x> + <by_weight, sum(g z)> + <by_bias, sum(g)>.

        With V = sum(v), P = sum(v z), G = sum(g), Q = sum(g z) and K = sum(v g) - (V G + P Q)/m, the first part of L is
        weight scale K. Its derivative by z is that of a batch-norm's output by x, for a gradient that mixes v and g; by
        scale it is weight K, and the derivative of scale by x is -scale^2 z/m.
        """
        g, x, weight, mean, scale, q, total = ctx.saved_tensors
        how, m = (mean, scale, ctx.eps), x.numel() // x.shape[1]

        def wide(channel: Tensor) -> Tensor:
            return channel.view(1, -1, *[1] * (x.dim() - 2))

        of_g, p, total_v = _norm_backward(v, x, weight, *how)
        k = (v * g).sum([at for at in range(x.dim()) if at != 1]) - (total_v * total + p * q) / m
        by_z = by_weight * scale
        of_g.addcmul_(x, wide(by_z)).add_(wide(by_bias - by_z * mean))
        mixed = (v * wide(-weight * scale * q / m)).addcmul_(g, wide(by_weight - weight * scale * p / m))
        of_x = _norm_backward(mixed, x, torch.ones_like(weight), *how)[0]
        factor = -weight * k * scale**3 / m
        of_x.addcmul_(x, wide(factor)).sub_(wide(factor * mean))
        return of_g, of_x, scale * k, None, None, None
