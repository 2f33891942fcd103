#!/usr/bin/env python3
"""Writes tests/data/torch_cases/*.json: what PyTorch computes for small inputs, for tests/kernels/devices/cpu/torch_test.cc.

Run with a Python that has torch; the files are kept in the repository, so a build needs none.
"""
import json
import pathlib

import torch
import torch.nn.functional as F

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "torch_cases"
NAMES = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16", torch.int64: "int64",
         torch.complex64: "complex64", torch.bool: "bool", torch.float64: "fp64"}


def tensor(t):
    t = t.detach()
    flat = torch.view_as_real(t).flatten() if t.is_complex() else t.flatten()
    values = [v if isinstance(v, int) else float(f"{v:.9g}") for v in flat.to(torch.float64 if t.dtype != torch.int64 else t.dtype).tolist()]
    return {"dtype": NAMES[t.dtype], "shape": list(t.shape) or [1], "values": values}


def case(name, kind, options, inputs, outputs):
    return {"name": name, "kind": kind, "options": options,
            "in": {k: tensor(v) for k, v in inputs.items()}, "out": {k: tensor(v) for k, v in outputs.items()}}


def leaf(*shape, dtype=torch.float32):
    return torch.randn(*shape, dtype=torch.float32).to(dtype).requires_grad_()


def activations():
    table = [("tanh", torch.tanh, "tanh", "tanh_backward", "output", []),
             ("sigmoid", torch.sigmoid, "sigmoid", "sigmoid_backward", "output", []),
             ("relu", F.relu, "relu", "threshold_backward", "output", []),
             ("gelu", F.gelu, "gelu", "gelu_backward", "input", []),
             ("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), "gelu_tanh", "gelu_tanh_backward", "input", []),
             ("silu", F.silu, "silu", "silu_backward", "input", []),
             ("mish", F.mish, "mish", "mish_backward", "input", []),
             ("leaky_relu", lambda x: F.leaky_relu(x, 0.02), "leaky_relu", "leaky_relu_backward", "input", [0.02]),
             ("elu", lambda x: F.elu(x, 1.2), "elu", "elu_backward", "input", [1.2, 1.0]),
             ("selu", F.selu, "elu", "elu_backward", "input", [1.6732632423543772, 1.0507009873554805]),
             ("softplus", lambda x: F.softplus(x, 2, 10), "softplus", "softplus_backward", "input", [2, 10]),
             ("relu6", F.relu6, "hardtanh", "hardtanh_backward", "input", [0, 6]),
             ("hardswish", F.hardswish, "hardswish", "hardswish_backward", "input", []),
             ("rsqrt", torch.rsqrt, "rsqrt", "rsqrt_backward", "output", [])]
    points = [-20, -6, -3, -2.5, -1, -0.1, 0, 0.1, 0.7, 1, 2.5, 3, 4.5, 6, 7, 20]
    for name, function, forward, backward, saves, scalars in table:
        for dtype in (torch.float32, torch.bfloat16):
            values = [abs(p) + 0.25 for p in points] if name == "rsqrt" else points
            x = torch.tensor(values, dtype=dtype, requires_grad=True)
            y = function(x)
            g = torch.linspace(-1, 1, len(points)).to(dtype)
            y.backward(g)
            yield case(f"{name}_{NAMES[dtype]}", "activation",
                       {"forward": forward, "backward": backward, "saves": saves, "scalars": scalars},
                       {"x": x, "g": g}, {"y": y, "dx": x.grad})


def losses():
    table = [("mse", F.mse_loss, "squared_difference", "mse_backward", []),
             ("l1", F.l1_loss, "abs_difference", "l1_backward", []),
             ("smooth_l1", lambda x, t, reduction="mean": F.smooth_l1_loss(x, t, beta=0.3, reduction=reduction),
              "smooth_l1", "smooth_l1_backward", [0.3]),
             ("bce_with_logits", F.binary_cross_entropy_with_logits, "bce_with_logits", "bce_with_logits_backward", []),
             ("bce", F.binary_cross_entropy, "bce", "bce_backward", [])]
    for name, function, forward, backward, scalars in table:
        x = torch.tensor([0.0, 0.02, 0.3, 0.5, 0.77, 1.0], requires_grad=True)
        t = torch.tensor([0.0, 1.0, 0.3, 0.9, 0.0, 1.0])
        function(x, t).backward()
        yield case(name, "loss", {"forward": forward, "backward": backward, "scalars": scalars},
                   {"x": x, "target": t, "g": torch.ones(1)},
                   {"y": function(x, t, reduction="none"), "dx": x.grad})


def softmaxes():
    for name, function in (("softmax", torch.softmax), ("log_softmax", torch.log_softmax)):
        for dim in (0, 1, 2):
            x, g = (torch.randn(2, 5, 3) * 3).requires_grad_(), torch.randn(2, 5, 3)
            y = function(x, dim)
            y.backward(g)
            yield case(f"{name}_{dim}", "softmax", {"op": name, "dim": dim}, {"x": x, "g": g}, {"y": y, "dx": x.grad})


def norms():
    def result(name, op, groups, training, x, weight, bias, y, running=None):
        g = torch.randn_like(y)
        y.backward(g)
        inputs = {"x": x, "weight": weight, "dy": g}
        outputs = {"y": y, "dx": x.grad, "dweight": weight.grad}
        if bias is not None:
            inputs["bias"], outputs["dbias"] = bias, bias.grad
        if running is not None:
            inputs.update({"running_mean": running[0], "running_var": running[1]})
            outputs.update({"new_running_mean": running[2], "new_running_var": running[3]})
        return case(name, "norm", {"op": op, "groups": groups, "training": training, "eps": 1e-5, "momentum": 0.1}, inputs, outputs)

    x, w, b = leaf(3, 4, 6), leaf(6), leaf(6)
    yield result("layer_norm", "layer", 1, True, x, w, b, F.layer_norm(x, (6,), w, b, 1e-5))
    x, w = leaf(5, 7), leaf(7)
    yield result("rms_norm", "rms", 1, True, x, w, None, F.rms_norm(x, (7,), w, 1e-5))
    x, w, b = leaf(2, 6, 3, 2), leaf(6), leaf(6)
    yield result("group_norm", "group", 3, True, x, w, b, F.group_norm(x, 3, w, b, 1e-5))
    x, w, b = leaf(2, 3, 7), leaf(3), leaf(3)
    yield result("instance_norm", "group", 3, True, x, w, b, F.instance_norm(x, weight=w, bias=b, eps=1e-5))
    for training in (True, False):
        x, w, b = leaf(3, 4, 2, 3), leaf(4), leaf(4)
        mean, var = torch.randn(4), torch.rand(4) + 0.5
        new_mean, new_var = mean.clone(), var.clone()
        y = F.batch_norm(x, new_mean, new_var, w, b, training, 0.1, 1e-5)
        yield result("batch_norm" if training else "batch_norm_eval", "batch", 1, training, x, w, b, y,
                     (mean, var, new_mean, new_var))


def cross_entropies():
    for shape, target in (((5, 7), (5,)), ((2, 4, 3), (2, 3))):
        x = leaf(*shape)
        log_probabilities = F.log_softmax(x, 1).detach().requires_grad_()
        t = torch.randint(0, shape[1], target)
        t.view(-1)[1] = -100
        loss = F.nll_loss(log_probabilities, t)
        loss.backward()
        yield case(f"nll_{len(shape)}d", "nll", {}, {"log_probabilities": log_probabilities, "target": t},
                   {"loss": loss, "dx": log_probabilities.grad})


def convolutions():
    table = [("conv1d", F.conv1d, (2, 3, 9), (4, 3, 3), dict(padding=1)),
             ("conv2d", F.conv2d, (1, 3, 6, 5), (4, 3, 3, 3), dict(stride=2, padding=1)),
             ("conv2d_groups", F.conv2d, (1, 4, 5, 5), (6, 2, 3, 3), dict(groups=2)),
             ("conv2d_dilated", F.conv2d, (1, 2, 7, 7), (2, 2, 3, 3), dict(dilation=2)),
             ("conv3d", F.conv3d, (1, 2, 3, 4, 3), (3, 2, 2, 2, 2), {}),
             ("conv_transpose1d", F.conv_transpose1d, (1, 3, 4), (3, 2, 3), dict(stride=2, padding=1, output_padding=1)),
             ("conv_transpose2d", F.conv_transpose2d, (1, 4, 3, 3), (4, 2, 2, 2), dict(stride=2, groups=2)),
             ("conv_transpose2d_dilated", F.conv_transpose2d, (1, 2, 3, 3), (2, 2, 3, 3), dict(dilation=2))]
    for name, function, x_shape, w_shape, options in table:
        x, w = leaf(*x_shape), leaf(*w_shape)
        y = function(x, w, **options)
        g = torch.randn_like(y)
        y.backward(g)
        filled = dict(stride=1, padding=0, dilation=1, groups=1, output_padding=0, transposed="transpose" in name)
        filled.update(options)
        yield case(name, "convolution", filled, {"x": x, "w": w, "dy": g}, {"y": y, "dx": x.grad, "dw": w.grad})


def pools():
    def result(name, op, options, x, y, indices=None):
        g = torch.randn_like(y)
        y.backward(g)
        outputs = {"y": y, "dx": x.grad}
        if indices is not None:
            outputs["indices"] = indices
        return case(name, "pool", {"op": op, **options}, {"x": x, "dy": g}, outputs)

    plain = dict(kernel=[3, 3], stride=[2, 2], padding=[1, 1], count_include_pad=True)
    x = leaf(1, 2, 7, 6)
    yield result("max_pool2d", "max", plain, x, *F.max_pool2d(x, 3, 2, 1, return_indices=True))
    x = leaf(1, 2, 9)
    yield result("max_pool1d", "max", dict(kernel=[2], stride=[2], padding=[0], count_include_pad=True), x,
                 *F.max_pool1d(x, 2, 2, return_indices=True))
    x = leaf(1, 1, 4, 4, 4)
    yield result("max_pool3d", "max", dict(kernel=[2] * 3, stride=[2] * 3, padding=[0] * 3, count_include_pad=True), x,
                 *F.max_pool3d(x, 2, 2, return_indices=True))
    for counts in (True, False):
        x = leaf(1, 2, 7, 6)
        yield result(f"avg_pool2d_{counts}", "average", {**plain, "count_include_pad": counts}, x,
                     F.avg_pool2d(x, 3, 2, 1, count_include_pad=counts))
    x = leaf(2, 2, 7, 5)
    yield result("adaptive_avg_pool2d", "adaptive", dict(kernel=[], stride=[], padding=[], count_include_pad=True), x,
                 F.adaptive_avg_pool2d(x, (3, 2)))


def upsamples():
    for mode in ("nearest", "bilinear"):
        for size in ((6, 8), (7, 5), (2, 3)):
            x = leaf(1, 2, 3, 4)
            y = F.interpolate(x, size=size, mode=mode)
            g = torch.randn_like(y)
            y.backward(g)
            yield case(f"{mode}_{size[0]}x{size[1]}", "upsample", {"op": mode}, {"x": x, "dy": g}, {"y": y, "dx": x.grad})


def transforms():
    x = torch.randn(2, 4, 6)
    half = torch.fft.rfft2(x)
    yield case("rfft2", "fft", {"kind": "real_to_complex", "rank": 2, "inverse": False, "scale": 1.0}, {"x": x}, {"y": half})
    yield case("irfft2", "fft", {"kind": "complex_to_real", "rank": 2, "inverse": False, "scale": 1 / 24}, {"x": half * 2},
               {"y": torch.fft.irfft2(half * 2, s=(4, 6))})
    any_half = torch.randn(2, 5, 4, dtype=torch.complex64)
    yield case("irfft2_of_anything", "fft", {"kind": "complex_to_real", "rank": 2, "inverse": False, "scale": 1 / 35}, {"x": any_half},
               {"y": torch.fft.irfft2(any_half, s=(5, 7))})
    x = torch.randn(2, 7)
    yield case("rfft_odd", "fft", {"kind": "real_to_complex", "rank": 1, "inverse": False, "scale": 1.0}, {"x": x}, {"y": torch.fft.rfft(x)})
    z = torch.randn(2, 3, 5, dtype=torch.complex64)
    yield case("fft2", "fft", {"kind": "complex_to_complex", "rank": 2, "inverse": False, "scale": 1.0}, {"x": z}, {"y": torch.fft.fft2(z)})
    yield case("ifft", "fft", {"kind": "complex_to_complex", "rank": 1, "inverse": True, "scale": 0.2}, {"x": z}, {"y": torch.fft.ifft(z)})


def attentions():
    table = [("plain", 2, 2, 4, 5, False, False), ("causal", 2, 2, 5, 5, True, False), ("grouped", 4, 2, 4, 4, True, False),
             ("masked", 2, 2, 3, 4, False, True)]
    for name, heads, kv_heads, s, t, causal, masked in table:
        q, k, v = leaf(1, heads, s, 4), leaf(1, kv_heads, t, 4), leaf(1, kv_heads, t, 4)
        mask = torch.randn(1, 1, s, t) if masked else None
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, enable_gqa=heads != kv_heads)
        g = torch.randn_like(y)
        y.backward(g)
        inputs = {"q": q, "k": k, "v": v, "dout": g}
        if masked:
            inputs["mask"] = mask
        yield case(f"attention_{name}", "attention", {"causal": causal, "scale": 0.5}, inputs,
                   {"out": y, "dq": q.grad, "dk": k.grad, "dv": v.grad})


def embeddings():
    table, index = leaf(6, 3), torch.tensor([[0, 5], [2, 5]])
    y = F.embedding(index, table, padding_idx=2)
    g = torch.randn_like(y)
    y.backward(g)
    yield case("embedding", "embedding", {"padding_index": 2}, {"table": table, "index": index, "g": g}, {"out": y, "dtable": table.grad})


def products():
    a, b, bias, old = torch.randn(4, 5), torch.randn(5, 3), torch.randn(3), torch.randn(4, 3)
    yield case("linear", "gemm", {"alpha": 1.0, "beta": 0.0}, {"a": a, "b": b, "bias": bias}, {"out": a @ b + bias})
    yield case("addmm", "gemm", {"alpha": 0.5, "beta": 2.0}, {"a": a, "b": b, "old": old}, {"out": torch.addmm(old, a, b, alpha=0.5, beta=2)})
    a, b = torch.randn(2, 3, 4), torch.randn(2, 4, 2)
    yield case("bmm", "gemm", {"alpha": 1.0, "beta": 0.0}, {"a": a, "b": b}, {"out": a @ b})
    a, b = torch.randn(2, 3, 4, dtype=torch.complex64), torch.randn(2, 4, 2, dtype=torch.complex64)
    yield case("complex_bmm", "gemm", {"alpha": 1.0, "beta": 0.0}, {"a": a, "b": b}, {"out": a @ b})
    a, b = torch.randn(4, 5).bfloat16(), torch.randn(5, 3).bfloat16()
    yield case("bf16_mm", "gemm", {"alpha": 1.0, "beta": 0.0}, {"a": a, "b": b}, {"out": a @ b})


def optimizers():
    common = dict(learning_rate=0.05, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.1, momentum=0.0)
    table = [("sgd", "sgd", {}, lambda p: torch.optim.SGD(p, 0.05, weight_decay=0.1), []),
             ("momentum", "sgd", dict(momentum=0.9), lambda p: torch.optim.SGD(p, 0.05, 0.9, weight_decay=0.1), ["momentum_buffer"]),
             ("adam", "adam", {}, lambda p: torch.optim.Adam(p, 0.05, weight_decay=0.1), ["exp_avg", "exp_avg_sq"]),
             ("adamw", "adamw", {}, lambda p: torch.optim.AdamW(p, 0.05, weight_decay=0.1), ["exp_avg", "exp_avg_sq"]),
             ("rmsprop", "rmsprop", dict(beta2=0.99), lambda p: torch.optim.RMSprop(p, 0.05, 0.99, weight_decay=0.1), ["square_avg"]),
             ("rmsprop_momentum", "rmsprop", dict(beta2=0.99, momentum=0.5),
              lambda p: torch.optim.RMSprop(p, 0.05, 0.99, weight_decay=0.1, momentum=0.5), ["square_avg", "momentum_buffer"]),
             ("adagrad", "adagrad", dict(eps=1e-10), lambda p: torch.optim.Adagrad(p, 0.05, weight_decay=0.1), ["sum"])]
    for name, op, changes, make, states in table:
        p = torch.nn.Parameter(torch.randn(5))
        inputs = {"parameter": p.detach().clone()}
        optimizer = make([p])
        for step in range(3):
            p.grad = torch.randn(5)
            inputs[f"gradient{step + 1}"] = p.grad.clone()
            optimizer.step()
        outputs = {"parameter": p}
        for i, state in enumerate(states):
            outputs[f"state{i + 1}"] = optimizer.state[p][state]
        yield case(name, "optimizer", {"op": op, **common, **changes}, inputs, outputs)


def conversions():
    x = torch.tensor([0.1, 1 / 3, 65504, 65519.9, 6e-8, 2.9e-8, 3e-8, 1e-5, 3.1415927, -1.0009765625, 1.00048828125, 1.00146484375, 1e-40])
    for dtype in (torch.float16, torch.bfloat16):
        yield case(f"to_{NAMES[dtype]}", "copy", {}, {"x": x}, {"y": x.to(dtype)})


GROUPS = {"elementwise": (activations, losses, conversions), "rows": (softmaxes, norms, cross_entropies, attentions, embeddings),
          "linear": (convolutions, products, transforms), "planes": (pools, upsamples), "optimizers": (optimizers,)}

if __name__ == "__main__":
    torch.manual_seed(20261116)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for group, makers in GROUPS.items():
        cases = [c for maker in makers for c in maker()]
        lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
        text = '{"torch":"%s","cases":[\n%s\n]}\n' % (torch.__version__, lines)
        (FOLDER / f"{group}.json").write_text(text)
        print(group, len(cases), "cases", len(text), "bytes")
