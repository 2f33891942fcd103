"""Prints the bill of materials of the wheel as CycloneDX 1.6: memfathom and what it bundles, as CMakeLists.txt lists it.

python3 python/dependencies/sbom.py VERSION
"""

import json
import re
import sys
from pathlib import Path
from typing import Optional

LIST = Path(__file__).resolve().parent / "CMakeLists.txt"
CALL = re.compile(
    r"^dependency\((?P<name>\S+) VERSION (?P<version>\S+) ARCHIVE (?P<archive>\S+) LICENCE \S+ SPDX (?P<spdx>\S+)\s+SHA256 (?P<sha256>[0-9a-f]{64})",
    re.M,
)

# SQLiteCpp's archive has SQLite in it.
SQLITE = {
    "type": "library",
    "bom-ref": "sqlite@3.40.0",
    "name": "sqlite",
    "version": "3.40.0",
    "licenses": [{"license": {"id": "blessing"}}],
    "purl": "pkg:generic/sqlite@3.40.0",
}


def component(mirror: str, found: re.Match) -> dict:
    made = {
        "type": "library",
        "bom-ref": f"{found['name']}@{found['version']}",
        "name": found["name"],
        "version": found["version"],
        "licenses": [{"license": {"id": found["spdx"]}}],
        "purl": f"pkg:generic/{found['name']}@{found['version']}",
        "externalReferences": [
            {
                "type": "source-distribution",
                "url": f"{mirror}/{found['archive']}",
                "hashes": [{"alg": "SHA-256", "content": found["sha256"]}],
            }
        ],
    }
    if found["name"] == "sqlitecpp":
        made["components"] = [SQLITE]
    return made


def bill(version: str, text: str, product: str = "memfathom", only: Optional[list] = None) -> dict:
    mirror = re.search(r'set\(MEMFATHOM_SOURCES "(\S+)"', text)[1]
    components = [component(mirror, found) for found in CALL.finditer(text)]
    if len(components) != len(re.findall(r"^dependency\(", text, re.M)):
        raise SystemExit(f"{LIST}: a dependency is not written as this script reads it")
    if only is not None:
        components = [one for one in components if one["name"] in only]
    own = {
        "type": "application",
        "bom-ref": f"{product}@{version}",
        "name": product,
        "version": version,
        "licenses": [{"license": {"id": "Apache-2.0"}}],
        "purl": f"pkg:pypi/{product}@{version}",
    }
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": own},
        "components": components,
        "dependencies": [{"ref": own["bom-ref"], "dependsOn": [one["bom-ref"] for one in components]}],
    }


if __name__ == "__main__":
    print(json.dumps(bill(sys.argv[1], LIST.read_text()), indent=2))
