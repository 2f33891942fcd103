"""memfathom: how much GPU memory a job takes. `memfathom.torch` records steps of PyTorch; it is imported when used."""


def __getattr__(name):
    if name in ("capture", "recording"):
        from . import torch as recorded

        return getattr(recorded, name)
    raise AttributeError(f"module 'memfathom' has no attribute '{name}'")
