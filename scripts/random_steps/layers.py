"""Stacks of layers, drawn as `model: {input, layers, loss}` of a job; modules.py builds them."""

ACTIVATIONS = ("relu", "gelu", "silu", "tanh", "sigmoid", "leaky_relu", "elu", "softplus", "mish", "hardswish")
CAN_BE_IN_PLACE = ("relu", "silu", "leaky_relu", "elu", "mish", "hardswish")


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
