"""python -m memfathom._with_torch (script|live|job) ...: starts the recorder, or ends with code 3 where PyTorch is missing."""

from __future__ import annotations

import importlib
import os
import sys
from importlib.machinery import SourceFileLoader
from typing import Any

MODULES = {"script": "memfathom.torch.__main__", "live": "memfathom.torch.live", "job": "memfathom.torch.from_job",
           "job-if-there": "memfathom.torch.from_job"}
NO_TORCH = 3


def leave_no_bytecode_beside_scripts() -> None:
    """Packages keep Python's own caches; in the folders of the user's script nothing is written."""
    write = SourceFileLoader.set_data

    def set_data(loader: Any, path: str, data: Any, **options: Any) -> None:
        if "-packages" in path:
            write(loader, path, data, **options)

    SourceFileLoader.set_data = set_data  # type: ignore[method-assign, assignment]


def main() -> None:
    leave_no_bytecode_beside_scripts()
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
