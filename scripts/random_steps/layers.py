"""Stacks of layers: drawn as `model: {input, layers, loss}` of a job, and built as modules of torch."""
import torch
import torch.nn as nn
import torch.nn.functional as F

ACTIVATIONS = ("relu", "gelu", "silu", "tanh", "sigmoid", "leaky_relu", "elu", "softplus", "mish", "hardswish")
MODULES = {"relu": nn.ReLU, "gelu": nn.GELU, "silu": nn.SiLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "leaky_relu": nn.LeakyReLU, "elu": nn.ELU, "softplus": nn.Softplus, "mish": nn.Mish, "hardswish": nn.Hardswish}
CAN_BE_IN_PLACE = ("relu", "silu", "leaky_relu", "elu", "mish", "hardswish")


# Drawing


def _activation(rng):
    name = rng.choice(ACTIVATIONS)
    layer = {"type": name}
    if name in CAN_BE_IN_PLACE and rng.random() < 0.3:
        layer["inplace"] = True
    return layer


def _mlp(rng):
    width, layers = rng.choice((96, 257, 512, 1000)), []
    size = rng.choice((64, 784, 1025))
    for _ in range(rng.randint(1, 5)):
        layers.append({"type": "linear", "out": width, "bias": rng.random() < 0.8})
        if rng.random() < 0.4:
            layers.append({"type": rng.choice(("layer_norm", "batch_norm"))})
        layers.append(_activation(rng))
        if rng.random() < 0.3:
            layers.append({"type": "dropout", "p": 0.1})
        if rng.random() < 0.3:
            layers.append({"type": "residual", "layers": [{"type": "linear", "out": width}, _activation(rng)]})
    layers.append({"type": "linear", "out": 10})
    return {"input": {"shape": [size]}, "layers": layers, "loss": rng.choice(("cross_entropy", "mse", "l1", "smooth_l1", "binary_cross_entropy_with_logits"))}


def _norm(rng, width):
    return rng.choice(({"type": "batch_norm"}, {"type": "group_norm", "groups": width // 8}, {"type": "instance_norm"}))


def _cnn(rng):
    width, layers = rng.choice((16, 32, 48)), []
    size = rng.choice((32, 63, 96))
    for _ in range(rng.randint(1, 3)):
        layers.append({"type": "conv2d", "out": width, "kernel": rng.choice((1, 3, 5)), "padding": 2, "stride": rng.choice((1, 2)), "bias": rng.random() < 0.5})
        if rng.random() < 0.7:
            layers.append(_norm(rng, width))
        layers.append(_activation(rng))
        if rng.random() < 0.4:
            layers.append({"type": "residual", "layers": [{"type": "conv2d", "out": width, "kernel": 3, "padding": 1, "groups": rng.choice((1, width))}, _activation(rng)]})
        if rng.random() < 0.5:
            layers.append({"type": rng.choice(("max_pool2d", "avg_pool2d")), "kernel": 2})
        width *= 2
    layers += [{"type": "adaptive_avg_pool2d", "size": 1}, {"type": "flatten"}, {"type": "linear", "out": 10}]
    return {"input": {"shape": [3, size, size]}, "layers": layers, "loss": "cross_entropy"}


def _level(rng, width, depth):
    block = [{"type": "conv2d", "out": width, "kernel": 3, "padding": 1}, _norm(rng, width), _activation(rng)]
    if not depth:
        return block
    down = {"type": "max_pool2d", "kernel": 2} if rng.random() < 0.5 else {"type": "conv2d", "out": width, "kernel": 2, "stride": 2}
    up = {"type": "conv_transpose2d", "out": width, "kernel": 2, "stride": 2} if rng.random() < 0.5 else {"type": "upsample", "scale": 2, "mode": rng.choice(("nearest", "bilinear"))}
    return [*block, {"type": "concat", "branches": [[], [down, *_level(rng, 2 * width, depth - 1), up]]}, {"type": "conv2d", "out": width, "kernel": 3, "padding": 1}, _activation(rng)]


def _unet(rng):
    size = rng.choice((32, 64, 80))
    return {"input": {"shape": [rng.choice((1, 3)), size, size]}, "layers": [*_level(rng, rng.choice((16, 32)), rng.randint(1, 3)), {"type": "conv2d", "out": 2, "kernel": 1}], "loss": rng.choice(("cross_entropy", "mse"))}


def _fno(rng):
    width, size, modes = rng.choice((16, 32)), rng.choice((32, 48)), rng.choice((4, 8))
    blocks = [{"type": "fno_block", "width": width, "modes": [modes, modes]} for _ in range(rng.randint(1, 4))]
    around = {"type": "conv2d", "kernel": 1}
    return {"input": {"shape": [3, size, size]}, "layers": [around | {"out": width}, *blocks, around | {"out": 64}, {"type": "gelu"}, around | {"out": 1}], "loss": "mse"}


def draw(rng):
    return rng.choice((_mlp, _cnn, _unet, _fno))(rng)


# Building


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
