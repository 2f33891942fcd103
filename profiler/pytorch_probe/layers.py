"""Layers of a job as PyTorch modules, each written as in its library or in typical scripts."""


def make_layers(torch):
    nn, functional = torch.nn, torch.nn.functional

    class Attention(nn.Module):
        def __init__(self, spec, causal, bias):
            super().__init__()
            hidden = spec["hidden"]
            self.heads, self.causal = spec["heads"], causal
            self.eager = spec.get("implementation") == "eager"
            self.q, self.k, self.v, self.o = (nn.Linear(hidden, hidden, bias=bias) for _ in range(4))

        def forward(self, x):
            batch, length, hidden = x.shape
            size = hidden // self.heads
            q, k, v = (p(x).view(batch, length, -1, size).transpose(1, 2) for p in (self.q, self.k, self.v))
            if self.eager:
                scores = torch.matmul(q, k.transpose(2, 3)) * size ** -0.5
                scores = functional.softmax(scores, -1, dtype=torch.float32).to(q.dtype)
                out = torch.matmul(scores, v)
            else:
                out = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
            return self.o(out.transpose(1, 2).reshape(batch, length, hidden))

    class Gated(nn.Module):
        def __init__(self, hidden, inner):
            super().__init__()
            self.gate, self.up = nn.Linear(hidden, inner, bias=False), nn.Linear(hidden, inner, bias=False)
            self.down = nn.Linear(inner, hidden, bias=False)

        def forward(self, x):
            return self.down(functional.silu(self.gate(x)) * self.up(x))

    class Block(nn.Module):
        def __init__(self, spec):
            super().__init__()
            hidden, inner, style = spec["hidden"], spec.get("ffn", 4 * spec["hidden"]), spec["style"]
            if style not in ("gpt2", "llama", "vit"):
                raise ValueError("the probe has no transformer block of style %s" % style)
            llama = style == "llama"
            self.attention = Attention(spec, causal=style != "vit", bias=not llama)
            self.mlp = Gated(hidden, inner) if llama else nn.Sequential(
                nn.Linear(hidden, inner), nn.GELU(), nn.Linear(inner, hidden))
            norm = nn.RMSNorm if llama else nn.LayerNorm
            self.norm1, self.norm2 = norm(hidden), norm(hidden)

        def forward(self, x):
            x = x + self.attention(self.norm1(x))
            return x + self.mlp(self.norm2(x))

    class Spectral(nn.Module):
        def __init__(self, inside, outside, modes):
            super().__init__()
            self.outside, self.modes = outside, modes
            shape = (inside, outside, *modes)
            self.weights1 = nn.Parameter(torch.zeros(shape, dtype=torch.cfloat))
            self.weights2 = nn.Parameter(torch.zeros(shape, dtype=torch.cfloat))

        def forward(self, x):
            m1, m2 = self.modes
            spectrum = torch.fft.rfft2(x)
            out = torch.zeros(x.shape[0], self.outside, x.shape[-2], x.shape[-1] // 2 + 1, dtype=torch.cfloat,
                              device=x.device)
            out[:, :, :m1, :m2] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, :m1, :m2], self.weights1)
            out[:, :, -m1:, :m2] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, -m1:, :m2], self.weights2)
            return torch.fft.irfft2(out, s=x.shape[-2:])

    class FnoBlock(nn.Module):
        def __init__(self, spec):
            super().__init__()
            if spec.get("style", "classic") != "classic":
                raise ValueError("the probe has no fno block of style %s" % spec["style"])
            self.spectral = Spectral(spec["width"], spec["width"], spec["modes"])
            self.skip = nn.Conv2d(spec["width"], spec["width"], 1)

        def forward(self, x):
            return functional.gelu(self.spectral(x) + self.skip(x))

    class Residual(nn.Module):
        def __init__(self, spec):
            super().__init__()
            self.layers = nn.Sequential(*build(spec["layers"]))

        def forward(self, x):
            return self.layers(x) + x

    class Checkpoint(nn.Module):
        def __init__(self, spec):
            super().__init__()
            self.layers = nn.Sequential(*build(spec["layers"]))

        def forward(self, x):
            return torch.utils.checkpoint.checkpoint(self.layers, x, use_reentrant=False)

    def convolution(kind, s):
        return kind(s["in"], s["out"], s["kernel"], stride=s.get("stride", 1), padding=s.get("padding", 0),
                    groups=s.get("groups", 1), bias=s.get("bias", True))

    makers = {
        "linear": lambda s: nn.Linear(s["in"], s["out"], bias=s.get("bias", True)),
        "conv2d": lambda s: convolution(nn.Conv2d, s),
        "conv_transpose2d": lambda s: convolution(nn.ConvTranspose2d, s),
        "batch_norm": lambda s: nn.BatchNorm2d(s["features"]),
        "layer_norm": lambda s: nn.LayerNorm(s["features"]),
        "rms_norm": lambda s: nn.RMSNorm(s["features"]),
        "group_norm": lambda s: nn.GroupNorm(s["groups"], s["features"]),
        "max_pool2d": lambda s: nn.MaxPool2d(s["kernel"], s.get("stride", s["kernel"]), s.get("padding", 0)),
        "embedding": lambda s: nn.Embedding(s["vocab"], s["size"]),
        "flatten": lambda s: nn.Flatten(1),
        "relu": lambda s: nn.ReLU(), "gelu": lambda s: nn.GELU(), "silu": lambda s: nn.SiLU(),
        "tanh": lambda s: nn.Tanh(), "sigmoid": lambda s: nn.Sigmoid(),
        "attention": lambda s: Attention(s, causal=s.get("causal", True), bias=s.get("bias", False)),
        "transformer_block": Block,
        "spectral_conv": lambda s: Spectral(s["in"], s["out"], s["modes"]),
        "fno_block": FnoBlock,
        "residual": Residual,
        "checkpoint": Checkpoint,
    }

    def build(specs):
        layers = []
        for spec in specs:
            if spec["type"] == "repeat":
                for _ in range(spec["times"]):
                    layers += build(spec["layers"])
            elif spec["type"] in makers:
                layers.append(makers[spec["type"]](spec))
            else:
                raise ValueError("the probe has no layer of type %s" % spec["type"])
        return layers

    return build
