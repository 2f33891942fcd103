"""Stacks of layers as modules of torch, and their losses."""
import torch
import torch.nn as nn
import torch.nn.functional as F

MODULES = {"relu": nn.ReLU, "gelu": nn.GELU, "silu": nn.SiLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "leaky_relu": nn.LeakyReLU, "elu": nn.ELU, "softplus": nn.Softplus, "mish": nn.Mish, "hardswish": nn.Hardswish}


class Residual(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, x):
        return self.layers(x) + x


class Concat(nn.Module):
    def __init__(self, branches):
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x):
        return torch.cat([branch(x) for branch in self.branches], 1)


class FourierBlock(nn.Module):
    """Li et al.: a spectral convolution of two corners next to a 1x1 convolution, then GELU."""

    def __init__(self, width, modes):
        super().__init__()
        self.modes = modes
        self.weights1, self.weights2 = (nn.Parameter(torch.empty(width, width, *modes, dtype=torch.cfloat)) for _ in range(2))
        self.skip = nn.Conv2d(width, width, 1)

    def spectral(self, x):
        a, b = self.modes
        spectrum = torch.fft.rfft2(x)
        out = torch.zeros(*x.shape[:2], x.size(-2), x.size(-1) // 2 + 1, dtype=torch.cfloat, device=x.device)
        out[:, :, :a, :b] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, :a, :b], self.weights1)
        out[:, :, -a:, :b] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, -a:, :b], self.weights2)
        return torch.fft.irfft2(out, s=(x.size(-2), x.size(-1)))

    def forward(self, x):
        return F.gelu(self.spectral(x) + self.skip(x))


def _convolution(kind, spec, size):
    made = kind(size, spec["out"], spec["kernel"], **{k: spec[k] for k in ("stride", "padding", "groups", "bias") if k in spec})
    return made, spec["out"]


def _module(spec, size):
    """The module of a layer after `size` channels or features, and how many follow."""
    kind = spec["type"]
    if kind in MODULES:
        return MODULES[kind](**({"inplace": True} if spec.get("inplace") else {})), size
    if kind == "linear":
        return nn.Linear(size, spec["out"], spec.get("bias", True)), spec["out"]
    if kind == "conv2d":
        return _convolution(nn.Conv2d, spec, size)
    if kind == "conv_transpose2d":
        return _convolution(nn.ConvTranspose2d, spec, size)
    if kind == "residual":
        return Residual(_sequence(spec["layers"], size)[0]), size
    if kind == "concat":
        parts = [_sequence(branch, size) for branch in spec["branches"]]
        return Concat([part for part, _ in parts]), sum(out for _, out in parts)
    if kind == "fno_block":
        return FourierBlock(spec["width"], spec["modes"]), size
    simple = {"layer_norm": lambda: nn.LayerNorm(size), "dropout": lambda: nn.Dropout(spec["p"]), "group_norm": lambda: nn.GroupNorm(spec["groups"], size),
              "instance_norm": lambda: nn.InstanceNorm2d(size, affine=True), "max_pool2d": lambda: nn.MaxPool2d(spec["kernel"]), "avg_pool2d": lambda: nn.AvgPool2d(spec["kernel"]),
              "adaptive_avg_pool2d": lambda: nn.AdaptiveAvgPool2d(spec["size"]), "flatten": nn.Flatten, "upsample": lambda: nn.Upsample(scale_factor=spec["scale"], mode=spec["mode"])}
    return simple[kind](), size


def _sequence(layers, size, is_image=True):
    made = []
    for spec in layers:
        if spec["type"] == "batch_norm":
            module = (nn.BatchNorm2d if is_image else nn.BatchNorm1d)(size)
        else:
            module, size = _module(spec, size)
        made.append(module)
    return nn.Sequential(*made), size


def _operator(layers, size):
    """An operator has its lifting and its projection as modules."""
    first, after = (next(i for i in order if layers[i]["type"] == "fno_block") for order in (range(len(layers)), range(len(layers) - 1, -1, -1)))
    lift, size = _sequence(layers[:first], size)
    blocks = [_sequence([spec], size)[0][0] for spec in layers[first:after + 1]]
    return nn.Sequential(lift if len(lift) > 1 else lift[0], *blocks, _sequence(layers[after + 1:], size)[0])


def module_of(model):
    shape, layers = model["input"]["shape"], model["layers"]
    if any(layer["type"] == "fno_block" for layer in layers):
        return _operator(layers, shape[0])
    return _sequence(layers, shape[0], len(shape) == 3)[0]


LOSSES = {"cross_entropy": F.cross_entropy, "mse": F.mse_loss, "l1": F.l1_loss, "smooth_l1": F.smooth_l1_loss, "binary_cross_entropy_with_logits": F.binary_cross_entropy_with_logits}


def target_of(model, output, dtype):
    if model["loss"] == "cross_entropy":
        return torch.zeros(output[0], *output[2:], dtype=torch.int64)
    return torch.zeros(*output, dtype=dtype)
