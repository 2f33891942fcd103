"""The CUDA module of memfathom, which measures GPUs of NVIDIA.

Nothing has to be imported: the program and the library look for the module in this folder, and it looks for NVIDIA's libraries in
the packages beside it (``nvidia-cudnn-cu13`` and others).
"""

from __future__ import annotations

from pathlib import Path

__version__ = "0.1.0"


def module() -> Path:
    """The file of the module."""
    return Path(__file__).resolve().parent / "libmemfathom_cuda.so"
