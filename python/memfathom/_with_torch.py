"""python -m memfathom._with_torch (script|live|job) ...: starts the recorder, or ends with code 3 where PyTorch is missing."""

from __future__ import annotations

import importlib
import os
import sys

MODULES = {"script": "memfathom.torch.__main__", "live": "memfathom.torch.live", "job": "memfathom.torch.from_job",
           "job-if-there": "memfathom.torch.from_job"}
NO_TORCH = 3


def main() -> None:
    what = sys.argv.pop(1)
    try:
        import torch  # noqa: F401
    except ImportError as error:
        if not what.endswith("-if-there"):
            print(f"PyTorch cannot be imported by {sys.executable}: {error}", file=sys.stderr, flush=True)
        os._exit(NO_TORCH)
    importlib.import_module(MODULES[what]).main()


if __name__ == "__main__":
    main()
