"""Looks into a wheel of the CUDA module: its files, what its binaries want and where they look for it, its licences and dependencies.

python3 check_cuda_wheel.py WHEEL
python3 check_cuda_wheel.py --platform FOLDER      prints the platform tag for the binaries in FOLDER
"""

import json
import platform
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from check_wheel import SYSTEM

BINARIES = ("libmemfathom_cuda.so", "memfathom-cudnn-planner")
BUNDLED = {"fmt", "nlohmann-json", "tomlplusplus", "yaml-cpp", "zlib"}
# The libraries that NVIDIA's wheels install, by the major version of CUDA.
NVIDIA = {
    "12": {"libcudart.so.12", "libcublas.so.12", "libcublasLt.so.12", "libcufft.so.11", "libcudnn.so.9"},
    "13": {"libcudart.so.13", "libcublas.so.13", "libcublasLt.so.13", "libcufft.so.12", "libcudnn.so.9"},
}


def dynamic(file: Path) -> str:
    command = ["readelf", "-dW", "--dyn-syms", str(file)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def newest_glibc(files: list) -> tuple:
    found = [(0, 0)]
    for file in files:
        found += [(int(a), int(b)) for a, b in re.findall(r"@GLIBC_([0-9]+)\.([0-9]+)", dynamic(file))]
    return max(found)


def check(wheel: Path) -> list:
    wrong = []

    def expect(holds: bool, sentence: str) -> None:
        if not holds:
            wrong.append(sentence)

    name = re.fullmatch(r"memfathom_cuda(12|13)-[0-9.]+-py3-none-(manylinux_\d+_\d+_\w+)\.whl", wheel.name)
    if name is None:
        return [f"{wheel.name} is no name of such a wheel"]
    cuda = name[1]
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        archive.extractall(folder)
        names = archive.namelist()
        elf = {one for one in names if archive.read(one)[:4] == b"\x7fELF"}
        expect(elf == {f"memfathom_cuda/{one}" for one in BINARIES}, f"binaries: {sorted(elf)}")
        for one in elf:
            text = dynamic(Path(folder, one))
            wanted = set(re.findall(r"\(NEEDED\).*\[(.+)\]", text))
            expect(wanted <= SYSTEM | NVIDIA[cuda], f"{one} wants {sorted(wanted - SYSTEM - NVIDIA[cuda])}")
            paths = re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", text)
            expect(
                len(paths) == 1 and all(part.startswith("$ORIGIN/../nvidia/") for part in paths[0].split(":")),
                f"{one} searches {paths}",
            )
        module = Path(folder, "memfathom_cuda/libmemfathom_cuda.so")
        exported = subprocess.run(["nm", "-D", "--defined-only", str(module)], check=True, capture_output=True, text=True)
        symbols = {line.split()[-1] for line in exported.stdout.splitlines()}
        expect("memfathom_cuda_module" in symbols, "the module has no entry point")
        listed = {re.sub(r"-[0-9.]+\.txt$", "", Path(one).name) for one in names if "/licenses/bundled/" in one}
        expect(listed == BUNDLED, f"licences of {sorted(listed)}, but it bundles {sorted(BUNDLED)}")
        expect(any(one.endswith(".dist-info/licenses/LICENSE") for one in names), "its own licence is missing")
        about = next(Path(folder).glob("*.dist-info/METADATA")).read_text()
        version = re.search(r"^Version: (.+)$", about, re.M)
        requires = re.findall(r"^Requires-Dist: (.+)$", about, re.M)
        expect(version is not None and f"memfathom=={version[1]}" in requires, f"it wants {requires}")
        bills = [json.loads(path.read_text()) for path in Path(folder).glob("*.dist-info/sboms/*.cdx.json")]
        expect(len(bills) == 1 and {one["name"] for one in bills[0]["components"]} == BUNDLED, "its bill of materials")
        glibc = newest_glibc([Path(folder, one) for one in elf])
        tag = re.match(r"manylinux_(\d+)_(\d+)_", name[2])
        expect(tag is not None and glibc <= (int(tag[1]), int(tag[2])), f"{name[2]}, but it wants glibc {glibc}")
        print(f"{wheel.name}: {wheel.stat().st_size} bytes, exports {len(symbols)} symbols, wants {', '.join(requires)}")
    return wrong


def main() -> int:
    if sys.argv[1] == "--platform":
        glibc = newest_glibc([Path(sys.argv[2], one) for one in BINARIES])
        print(f"manylinux_{glibc[0]}_{glibc[1]}_{platform.machine()}")
        return 0
    failures = check(Path(sys.argv[1]))
    for failure in failures:
        print(f"{sys.argv[1]}: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
