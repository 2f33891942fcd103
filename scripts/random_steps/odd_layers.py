"""Stacks of layers that few networks have: in one and three dimensions, over tokens, with uneven kernels, strides, groups and dilation."""

ACTIVATIONS = ("relu", "gelu", "silu", "tanh", "prelu", "relu6", "selu", "hardswish", "gelu_pytorch_tanh")


def _activation(rng):
    name = rng.choice(ACTIVATIONS)
    return {"type": name, "inplace": True} if name in ("relu6", "selu") and rng.random() < 0.5 else {"type": name}


def _dropped(rng, inplace=False):
    return [{"type": "dropout", "p": 0.1, "inplace": inplace}] if rng.random() < 0.3 else []


def _line(rng):
    width, layers = rng.choice((16, 24, 48)), []
    for _ in range(rng.randint(1, 4)):
        dilation = rng.choice((1, 2, 4))
        layers.append({"type": "conv1d", "out": width, "kernel": 3, "padding": dilation, "dilation": dilation, "stride": rng.choice((1, 1, 2)), "groups": rng.choice((1, 2)) if layers else 1, "bias": rng.random() < 0.6})
        if rng.random() < 0.6:
            layers.append(rng.choice(({"type": "batch_norm"}, {"type": "group_norm", "groups": 4})))
        layers += [_activation(rng), *_dropped(rng)]
    return {"input": {"shape": [rng.choice((1, 6)), rng.choice((128, 500, 1001))]}, "layers": layers, "loss": rng.choice(("mse", "l1"))}


def _volume(rng):
    width, layers = rng.choice((8, 16)), []
    for _ in range(rng.randint(1, 3)):
        layers.append({"type": "conv3d", "out": width, "kernel": rng.choice((1, 3, [1, 3, 3])), "padding": 1, "stride": rng.choice((1, 2, [1, 2, 2])), "bias": rng.random() < 0.6})
        if rng.random() < 0.6:
            layers.append(rng.choice(({"type": "batch_norm"}, {"type": "group_norm", "groups": 4})))
        layers += [_activation(rng), *_dropped(rng)]
        width *= 2
    return {"input": {"shape": [rng.choice((1, 3)), 8, rng.choice((16, 21)), 24]}, "layers": layers, "loss": "mse"}


def _uneven(rng):
    width, layers = rng.choice((16, 32)), []
    for _ in range(rng.randint(1, 4)):
        kind = rng.random()
        groups = rng.choice((1, 1, 2, 4)) if layers else 1
        if kind < 0.5:
            layers.append({"type": "conv2d", "out": width, "kernel": rng.choice(([3, 5], 3, [1, 7])), "padding": rng.choice((2, [1, 3])), "stride": rng.choice((1, [2, 1], 3)), "dilation": rng.choice((1, 1, 2)), "groups": groups, "bias": rng.random() < 0.5})
        elif kind < 0.75 and layers:
            layers.append({"type": "conv_transpose2d", "out": width, "kernel": rng.choice((2, 3, 4)), "stride": rng.choice((1, 2, 3)), "padding": rng.choice((0, 1)), "groups": groups, "bias": rng.random() < 0.5})
        else:
            layers += [{"type": "conv2d", "out": 4 * width, "kernel": 3, "padding": 1}, {"type": "pixel_shuffle", "factor": 2}]
        if rng.random() < 0.5:
            layers.append(rng.choice(({"type": "batch_norm"}, {"type": "group_norm", "groups": 4}, {"type": "instance_norm"})))
        layers += [_activation(rng), *_dropped(rng)]
        if rng.random() < 0.3:
            layers.append({"type": rng.choice(("max_pool2d", "avg_pool2d")), "kernel": 3, "stride": 2, "padding": 1})
        if rng.random() < 0.25:
            layers.append({"type": "pad", "size": [1, 2, 0, 3]})
        if rng.random() < 0.25:
            layers.append({"type": "crop", "size": [1, 1, 2, 0]})
    return {"input": {"shape": [rng.choice((1, 3, 4)), rng.choice((32, 45)), rng.choice((32, 60))]}, "layers": layers, "loss": rng.choice(("mse", "smooth_l1"))}


def _tokens(rng):
    heads = rng.choice((2, 4))
    width, length = heads * rng.choice((16, 20, 32)), rng.choice((50, 64, 129))
    layers = [{"type": "embedding", "vocab": rng.choice((100, 1001)), "size": width}, {"type": "position_embedding", "length": length}, *_dropped(rng)]
    for _ in range(rng.randint(1, 3)):
        norm = {"type": rng.choice(("layer_norm", "rms_norm"))}
        attention = {"type": "multihead_attention", "hidden": width, "heads": heads, "dropout": rng.choice((0, 0.1)), "need_weights": rng.random() < 0.3}
        forward = [{"type": "linear", "out": 3 * width}, {"type": rng.choice(("gelu", "relu", "silu"))}, {"type": "linear", "out": width}]
        layers += [{"type": "residual", "layers": [norm, attention]}, {"type": "residual", "layers": [norm, *forward, *_dropped(rng, rng.random() < 0.5)]}]
        if rng.random() < 0.3:
            layers[-2:] = [{"type": "checkpoint", "layers": layers[-2:]}]
    return {"input": {"shape": [length], "dtype": "int64"}, "layers": [*layers, {"type": "layer_norm"}, {"type": "linear", "out": rng.choice((1, 10, 300))}], "loss": rng.choice(("mse", "l1"))}


def draw(rng):
    return rng.choice((_line, _volume, _uneven, _uneven, _tokens, _tokens))(rng)
