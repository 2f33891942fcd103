"""Looks into a wheel: its size, its tag, its files, the licences of what it bundles, and what its binaries want.

python3 check_wheel.py WHEEL
"""

import json
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

MAX_BYTES = 8_000_000
# Every library that python/dependencies/CMakeLists.txt builds, and nothing with a licence that asks for more than its text.
BUNDLED = {"ceres", "cli11", "eigen", "fmt", "nlohmann-json", "sqlitecpp", "tomlplusplus", "yaml-cpp", "zlib"}
SYSTEM = {
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
    "libstdc++.so.6",
    "libgcc_s.so.1",
}
OWN = {"libmemfathom.so.0"}


def check(wheel: Path) -> list[str]:
    wrong = []

    def expect(holds: bool, sentence: str) -> None:
        if not holds:
            wrong.append(sentence)

    size = wheel.stat().st_size
    expect(size < MAX_BYTES, f"it has {size} bytes, more than {MAX_BYTES}")
    expect(
        re.search(r"-py3-none-(many)?linux_?\w+\.whl$", wheel.name) is not None,
        f"{wheel.name} is not for every Python 3",
    )
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        names = archive.namelist()
        archive.extractall(folder)
        listed = {re.sub(r"-[0-9.]+\.txt$", "", Path(name).name) for name in names if "/licenses/bundled/" in name}
        expect(listed == BUNDLED, f"licences of {sorted(listed)}, but it bundles {sorted(BUNDLED)}")
        expect(any(name.endswith(".dist-info/licenses/LICENSE") for name in names), "its own licence is missing")
        for licence in Path(folder).glob("*.dist-info/licenses/bundled/*"):
            # Its title; the MPL names the GPL in a sentence.
            title = re.search(r"^\s*GNU (\w+ )?GENERAL PUBLIC LICENSE\s*$", licence.read_text(errors="replace"), re.M)
            expect(title is None, f"{licence.name} is the GPL")
        bills = [json.loads(path.read_text()) for path in Path(folder).glob("*.dist-info/sboms/*.cdx.json")]
        expect(
            len(bills) == 1 and {one["name"] for one in bills[0]["components"]} == BUNDLED,
            "the bill of materials lists something else",
        )
        expect("memfathom/py.typed" in names, "py.typed is missing")
        program = [name for name in names if name.endswith(".data/scripts/memfathom")]
        library = [name for name in names if name.endswith(".data/data/lib/libmemfathom.so.0")]
        module = [name for name in names if name.endswith(".data/data/lib/memfathom/libmemfathom_cpu.so")]
        expect(len(program) == len(library) == len(module) == 1, "the program, the library or the CPU module is missing")
        stray = [name for name in names if not re.match(r"memfathom(-[0-9.]+\.(data|dist-info))?/", name)]
        expect(not stray, f"stray files: {stray}")
        binaries = [
            name for name in names if Path(folder, name).is_file() and Path(folder, name).read_bytes()[:4] == b"\x7fELF"
        ]
        expect(sorted(binaries) == sorted(program + library + module), f"binaries: {binaries}")
        newest = (0, 0)
        for name in binaries:
            dynamic = subprocess.run(
                ["readelf", "-dW", "--dyn-syms", str(Path(folder, name))], check=True, capture_output=True, text=True
            ).stdout
            wanted = set(re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic))
            expect(wanted <= SYSTEM | OWN, f"{name} wants {sorted(wanted - SYSTEM - OWN)}")
            newest = max([newest, *((int(a), int(b)) for a, b in re.findall(r"@GLIBC_([0-9]+)\.([0-9]+)", dynamic))])
            for path in re.findall(r"\(R(?:UN)?PATH\).*\[(.*)\]", dynamic):
                expect(all(part.startswith("$ORIGIN") for part in path.split(":")), f"{name} searches {path}")
        exported = subprocess.run(
            ["nm", "-D", "--defined-only", str(Path(folder, library[0]))], check=True, capture_output=True, text=True
        ).stdout
        foreign = [
            line
            for line in exported.splitlines()
            if not re.search(r" (T memfathom_\w+@@MEMFATHOM_0|A MEMFATHOM_0(@@MEMFATHOM_0)?)$", line)
        ]
        expect(not foreign, f"the library exports {foreign[:5]}")
        print(f"{wheel.name}: {size} bytes, glibc {newest[0]}.{newest[1]}, bundles {', '.join(sorted(listed))}")
    return wrong


if __name__ == "__main__":
    failures = check(Path(sys.argv[1]))
    for failure in failures:
        print(f"{sys.argv[1]}: {failure}", file=sys.stderr)
    sys.exit(1 if failures else 0)
