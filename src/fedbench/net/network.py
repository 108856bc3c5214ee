"""A network as a function of one flat parameter vector."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from fedbench.errors import UserError
from fedbench.net.leaf import Leaf
from fedbench.net.slots import take_out

PLAIN = (nn.Flatten, nn.Linear, nn.ReLU, nn.LeakyReLU, nn.Tanh)
"""Layers without hooks of ours: in a row they are computed without the cost of calling modules."""
# a network that draws is refused by the simulation, whose words say what to do
_vmap = functools.partial(torch.func.vmap, randomness="different")


class Net:
    """A module whose parameters are views of one flat vector, for one or many clients at once.

    The module gives the structure and the forward computation; its own parameters are taken out. With one client the
    module is called as it is; with several through ``torch.func.vmap`` over the clients.

    Attributes:
        d: number of trainable parameters.
        plain: whether it is a chain of plain layers, which computes several clients without vmap.
        n_buffers: number of floats in batch-norm running statistics (0 without batch-norm).
        rounding: whether products of training passes are of bfloat16 (``torch.autocast``); parameters, gradients of
            them and evaluations keep their type.
        parameters, statistics: name and shape of each part of the two vectors, in order.
    """

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self._initial, self._slots, self.parameters = take_out(module, "_parameters")
        self._initial_buffers, self._buffer_slots, self.statistics = take_out(module, "_buffers")
        self._sizes = [shape.numel() for _, _, shape in self._slots]
        starts = itertools.accumulate(self._sizes, initial=0)
        self._places = [
            (shape, torch.empty(shape, device="meta").stride(), at)
            for (_, _, shape), at in zip(self._slots, starts, strict=False)
        ]
        self._buffer_sizes = [shape.numel() for _, _, shape in self._buffer_slots]
        self.d, self.n_buffers = sum(self._sizes), sum(self._buffer_sizes)
        self._stacked, self._single, self.rounding = False, False, False
        self._run: Callable[[Tensor], Tensor] = module
        convolution = next((part for part in module.modules() if isinstance(part, nn.Conv2d)), None)
        if convolution is not None:
            convolution.register_forward_pre_hook(self._channels_last)
        for part in module.modules():
            if isinstance(part, nn.modules.batchnorm._BatchNorm):
                part.register_forward_pre_hook(self._update_statistics)
        # the views that were last made, and of what: steps that overwrite a vector come with the same one again
        self._leaf, self._leaf_of = Leaf([], stacked=False), torch.empty(0)
        self._parts, self._parts_of = list[Tensor](), torch.empty(0)
        self.plain = False
        if type(module) is nn.Sequential and all(type(part) in PLAIN for part in module):
            self._run = functools.partial(_in_sequence, [part.forward for part in module])
            self.plain = len([*module.children()]) == len(module)  # none stands there twice

    def initial(self) -> Tensor:
        """Return the initial parameters, shape [d]."""
        return self._initial.clone()

    def initial_buffers(self) -> Tensor:
        """Return the initial running statistics, shape [n_buffers]."""
        return self._initial_buffers.clone()

    def begin_with(self, x: Tensor, buffers: Tensor) -> None:
        """Take parameters [d] and running statistics [n_buffers] as the initial ones."""
        self._initial, self._initial_buffers = x, buffers

    def leaf(self, x: Tensor) -> Leaf:
        """Return parameters ``x`` [K, d] in the form that losses are differentiated with respect to."""
        if x.shape[0] > 1:
            return Leaf([x.detach().requires_grad_()], stacked=True)
        if x is not self._leaf_of:
            parts = [part.requires_grad_() for part in self._views(x)]
            self._leaf_of, self._leaf = x, Leaf(parts, stacked=False)
        return self._leaf

    def parts(self, x: Tensor) -> list[Tensor]:
        """Return one client's contiguous vector ``x`` [1, d] as views shaped like the network's tensors."""
        if x is not self._parts_of:
            self._parts_of, self._parts = x, self._views(x)
        return self._parts

    def _views(self, x: Tensor) -> list[Tensor]:
        row = x.detach().contiguous()
        first = row.storage_offset()
        # one call for each part: splitting and reshaping took three times as long
        return [row.as_strided(shape, stride, first + at) for shape, stride, at in self._places]

    def scores(
        self, x: Tensor | Leaf, inputs: Tensor, buffers: Tensor | None = None, *, train: bool = True
    ) -> Tensor:
        """Compute the network's outputs.

        Args:
            x: parameters of K clients, [K, d], or a leaf made of them.
            inputs: their batches, [K, B, ...].
            buffers: running statistics [K, n_buffers]. In training they are updated in place; without them batch-norm
                uses the batch's own statistics and leaves no trace.
            train: batch statistics (and an update of ``buffers``), or the running ones.

        Returns:
            Outputs [K, B, C].
        """
        if isinstance(x, Leaf) and x.stacked:
            x = x.parts[0]
        if isinstance(x, Leaf) or x.shape[0] == 1:
            return self.scores_of_one(x, inputs, buffers, train=train).unsqueeze(0)
        buffers, self._single = self._set_up(buffers, train), False
        if self.plain and self._run is not self.module:
            return self._rounded(lambda images: self._of_plain(x, images), inputs)
        if buffers is None:
            return _vmap(lambda p, i: self._call(p, i, None))(x, inputs)
        if not train:
            return _vmap(self._call)(x, inputs, buffers)
        self._stacked = True
        try:
            outputs, updated = _vmap(self._call_and_collect)(x, inputs, buffers)
        finally:
            self._stacked = False
        buffers.copy_(updated)
        return outputs

    def scores_of_one(
        self, x: Tensor | Leaf, inputs: Tensor, buffers: Tensor | None = None, *, train: bool = True
    ) -> Tensor:
        """As :meth:`scores` for K = 1, but without that axis in the result, [B, C]: on a small network it costs."""
        buffers, self._single = self._set_up(buffers, train), True
        parameters = x.parts if isinstance(x, Leaf) else x[0]
        return self._call(parameters, inputs[0], None if buffers is None else buffers[0])

    def _of_plain(self, x: Tensor, inputs: Tensor) -> Tensor:
        """Compute the outputs [K, B, C] of plain layers without vmap: the same bits, half the time for small ones."""
        parts = zip(torch.split(x, self._sizes, 1), self.parameters, strict=True)
        named = {name: part.view(len(x), *shape) for part, (name, shape) in parts}
        for place, layer in self.module.named_children():
            if isinstance(layer, nn.Linear):
                weight, bias = named[f"{place}.weight"].transpose(1, 2), named.get(f"{place}.bias")
                inputs = inputs @ weight if bias is None else torch.baddbmm(bias[:, None], inputs, weight)
            else:
                inputs = inputs.flatten(2) if isinstance(layer, nn.Flatten) else layer(inputs)
        return inputs

    def _set_up(self, buffers: Tensor | None, train: bool) -> Tensor | None:
        """Put the module into its mode, and return the statistics that it needs."""
        if self.module.training != train:
            self.module.train(train)
        if not self.n_buffers:
            return None
        if buffers is None and not train:
            raise ValueError("a network with batch-norm is evaluated with its buffers")
        return buffers

    def features(
        self, x: Tensor | Leaf, inputs: Tensor, buffers: Tensor | None = None, *, train: bool = True
    ) -> tuple[Tensor, Tensor]:
        """Compute the network's outputs and the inputs of its output layer; arguments as for :meth:`scores`.

        Returns:
            Outputs [K, B, C] and representations [K, B, F].

        Raises:
            UserError: the network does not end in a linear layer.
        """
        _, (classes, width) = self.last_layer()
        layer = [part for part in self.module.modules() if isinstance(part, nn.Linear)][-1]
        # both leave the network as one tensor, so that stacked clients need no path of their own; times one, whose
        # gradient is a tensor of its own: of a slice of both, some processors round the product otherwise
        handle = layer.register_forward_hook(lambda _, args, output: torch.cat([output * 1, args[0]], -1))
        run, self._run = self._run, self.module
        try:
            both = self.scores(x, inputs, buffers, train=train)
        finally:
            handle.remove()
            self._run = run
        if both.shape[-1] != classes + width:
            raise UserError("this network does not end in a linear layer, whose inputs are asked for")
        return both[..., :classes], both[..., classes:]

    def last_layer(self) -> tuple[slice, torch.Size]:
        """Return where the output layer's weight matrix [C, D] lies in the flat vector, and its shape."""
        end = 0
        place = None
        for size, (_, _, shape) in zip(self._sizes, self._slots, strict=True):
            if len(shape) == 2:
                place = (slice(end, end + size), shape)
            end += size
        if place is None:
            raise UserError("this network has no linear output layer, which the method needs")
        return place

    def _call(self, x: Tensor | list[Tensor], inputs: Tensor, buffers: Tensor | None) -> Tensor:
        # Plain attributes in the instance's dict are found before parameters are looked up: this costs next to
        # nothing per call, and one torch.split has one cat as its backward.
        if isinstance(x, Tensor):
            pairs = zip(torch.split(x, self._sizes), self._slots, strict=True)
            x = [part.view(slot[2]) for part, slot in pairs]
        for (home, name, _), part in zip(self._slots, x, strict=True):
            home[name] = part
        if buffers is None:
            for home, name, _ in self._buffer_slots:
                home[name] = None
        elif self._buffer_slots:
            parts = torch.split(buffers, self._buffer_sizes)
            for (home, name, shape), part in zip(self._buffer_slots, parts, strict=True):
                home[name] = part.view(shape)
        return self._rounded(self._run, inputs)

    def _rounded(self, run: Callable[[Tensor], Tensor], inputs: Tensor) -> Tensor:
        """Compute outputs, in training with products of bfloat16 if asked for; in evaluations ties would count."""
        if not self.rounding or not self.module.training:
            return run(inputs)
        with torch.autocast(inputs.device.type, torch.bfloat16):
            return run(inputs).to(inputs.dtype)

    def _channels_last(self, part: nn.Module, args: tuple[Tensor, ...]) -> Tensor | None:
        """Lay images out channels last for the first convolution: faster on CPUs, and not for vmap."""
        if not self._single:
            return None
        images = args[0]
        if images.shape[-3] > 1:
            return images.contiguous(memory_format=torch.channels_last)
        # With one channel both layouts are the same in memory, and the strides alone say which is meant.
        height, width = images.shape[-2:]
        return images.contiguous().as_strided(images.shape, (height * width, 1, width, 1))

    def _call_and_collect(self, x: Tensor, inputs: Tensor, buffers: Tensor) -> tuple[Tensor, Tensor]:
        outputs = self._call(x, inputs, buffers)
        parts = [home[f"next_{name}"] for home, name, _ in self._buffer_slots]
        return outputs, torch.cat([part.detach().reshape(-1) for part in parts])

    def _update_statistics(self, part: nn.modules.batchnorm._BatchNorm, args: tuple[Tensor, ...]) -> None:
        """Compute batch-norm's running statistics out of place: its own in-place update is lost under vmap."""
        if not self._stacked:
            return
        inputs = args[0].detach()
        dims = [dim for dim in range(inputs.dim()) if dim != 1]
        variance, mean = torch.var_mean(inputs, dims)
        rate = part.momentum or 0.0
        for name, batch in (("running_mean", mean), ("running_var", variance)):
            part.__dict__[f"next_{name}"] = (1 - rate) * part.__dict__[name] + rate * batch
            part.__dict__[name] = None


def _in_sequence(layers: Sequence[Callable[[Tensor], Tensor]], inputs: Tensor) -> Tensor:
    for layer in layers:
        inputs = layer(inputs)
    return inputs
