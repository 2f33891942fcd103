"""Runs `auditwheel show` on a wheel and prints the platform tag that it finds.

python3 audit_wheel.py AUDITWHEEL WHEEL

The program finds its library in ../lib once both are installed. auditwheel looks at the archive, where scripts and data have folders
of their own, so it gets a copy in which the library lies where the program looks. What auditwheel says goes to standard error.
"""

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path


def audited(auditwheel: str, wheel: Path) -> str:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, wheel.name)
        with zipfile.ZipFile(wheel) as given, zipfile.ZipFile(copy, "w") as placed:
            for entry in given.infolist():
                content = given.read(entry)
                if entry.filename.endswith(".dist-info/RECORD"):
                    content = content.replace(b".data/data/lib/", b".data/lib/")
                entry.filename = entry.filename.replace(".data/data/lib/", ".data/lib/")
                placed.writestr(entry, content)
        return subprocess.run([auditwheel, "show", str(copy)], check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> int:
    said = " ".join(audited(sys.argv[1], Path(sys.argv[2])).split())
    print(said, file=sys.stderr)
    tag = re.search(r'consistent with the following platform tag: "(\w+)"', said)
    if tag is None or not tag[1].startswith("manylinux"):
        print(f"{sys.argv[2]}: it wants libraries that not every Linux has", file=sys.stderr)
        return 1
    print(tag[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
