"""Makes the wheel memfathom-cudaN of a build of the CUDA module.

python3 make_wheel.py --cuda N --version V --binaries FOLDER --licences FOLDER --platform TAG --out FOLDER

FOLDER has libmemfathom_cuda.so and memfathom-cudnn-planner. NVIDIA's libraries are not in the wheel: their own wheels, on
which it depends, install them beside it. Needs the package `wheel`.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python/dependencies"))
from sbom import LIST, bill  # noqa: E402

# What the module and the planner link statically; the other libraries are the program's.
LINKED = ["fmt", "nlohmann-json", "tomlplusplus", "yaml-cpp", "zlib"]
# Any version with the API that it is compiled against; cuDNN 9.8 is the first that plans for a described GPU.
NVIDIA = {
    "12": [
        "nvidia-cuda-runtime-cu12>=12.5,<13",
        "nvidia-cublas-cu12>=12.5,<13",
        "nvidia-cufft-cu12>=11.2,<12",
        "nvidia-cudnn-cu12>=9.8,<10",
    ],
    "13": [
        "nvidia-cuda-runtime>=13.0,<14",
        "nvidia-cublas>=13.0,<14",
        "nvidia-cufft>=12.0,<13",
        "nvidia-cudnn-cu13>=9.8,<10",
    ],
}


def metadata(name: str, version: str, cuda: str) -> str:
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {name}",
        f"Version: {version}",
        f"Summary: The CUDA {cuda} module of memfathom: measures GPUs of NVIDIA",
        "License-Expression: Apache-2.0",
        "License-File: LICENSE",
        "Requires-Python: >=3.9",
        # Program and module are built together: another version is refused when it is opened.
        f"Requires-Dist: memfathom=={version}",
        *[f"Requires-Dist: {one}" for one in NVIDIA[cuda]],
        "Description-Content-Type: text/markdown",
        "",
        f"`pip install memfathom[cuda{cuda}]` adds what `memfathom calibrate --device cuda:0` needs to measure a GPU by itself. To",
        "estimate, and to calibrate with PyTorch (`--framework pytorch`), `memfathom` alone is enough.",
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser()
    for option in ("cuda", "version", "binaries", "licences", "platform", "out"):
        parser.add_argument(f"--{option}", required=True)
    given = parser.parse_args()
    name = f"memfathom-cuda{given.cuda}"
    stem = f"{name.replace('-', '_')}-{given.version}"
    with tempfile.TemporaryDirectory() as folder:
        package, about = Path(folder, "memfathom_cuda"), Path(folder, f"{stem}.dist-info")
        shutil.copytree(ROOT / "python/cuda/memfathom_cuda", package, ignore=shutil.ignore_patterns("__pycache__"))
        for binary in ("libmemfathom_cuda.so", "memfathom-cudnn-planner"):
            shutil.copy(Path(given.binaries, binary), package / binary)
            (package / binary).chmod(0o755)
        (about / "licenses/bundled").mkdir(parents=True)
        (about / "sboms").mkdir()
        shutil.copy(ROOT / "LICENSE", about / "licenses/LICENSE")
        for library in LINKED:
            for file in Path(given.licences).glob(f"{library}-*.txt"):
                shutil.copy(file, about / "licenses/bundled" / file.name)
        components = bill(given.version, LIST.read_text(), name, LINKED)
        (about / f"sboms/{name}.cdx.json").write_text(json.dumps(components, indent=2) + "\n")
        (about / "METADATA").write_text(metadata(name, given.version, given.cuda))
        (about / "WHEEL").write_text(
            f"Wheel-Version: 1.0\nGenerator: memfathom\nRoot-Is-Purelib: false\nTag: py3-none-{given.platform}\n"
        )
        subprocess.run([sys.executable, "-m", "wheel", "pack", "--dest-dir", given.out, folder], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
