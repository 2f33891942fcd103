"""LoRA adapters on the linear layers of a network, as PEFT attaches them: the base is frozen, adapters are made after it."""


def make_adapter(torch, base, rank, dtype):
    nn = torch.nn

    class Adapted(nn.Module):
        def __init__(self):
            super().__init__()
            self.base = base
            self.a = nn.Linear(base.in_features, rank, bias=False, dtype=dtype, device=base.weight.device)
            self.b = nn.Linear(rank, base.out_features, bias=False, dtype=dtype, device=base.weight.device)
            self.scale = 2.0

        def forward(self, x):
            result = self.base(x)
            kind = result.dtype
            return (result + self.b(self.a(x.to(self.a.weight.dtype))) * self.scale).to(kind)

    return Adapted()


def attach(torch, network, lora, dtype):
    """`lora` is training.lora of the job, `dtype` the parameters' type."""
    if lora.get("targets") not in ("all-linear", ["all-linear"]) or lora.get("dropout"):
        raise ValueError("the probe has LoRA with targets all-linear and without dropout only")
    kind = getattr(torch, {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}[lora["precision"]]) if "precision" in lora else dtype
    network.requires_grad_(False)
    places = [(path, layer) for path, layer in network.named_modules() if isinstance(layer, torch.nn.Linear)]
    for path, layer in places:  # in the order of the base
        parent, _, name = path.rpartition(".")
        setattr(network.get_submodule(parent), name, make_adapter(torch, layer, lora.get("rank", 8), kind))
