"""Validates the bills of materials in a wheel against CycloneDX's own schema: python3 check_sbom.py WHEEL

Needs the package `cyclonedx-python-lib[validation]`, which has the schemas.
"""

import sys
import zipfile

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator


def main() -> int:
    validator = JsonStrictValidator(SchemaVersion.V1_6)
    with zipfile.ZipFile(sys.argv[1]) as wheel:
        bills = [name for name in wheel.namelist() if name.endswith(".cdx.json")]
        if not bills:
            print(f"{sys.argv[1]}: no bill of materials", file=sys.stderr)
            return 1
        for name in bills:
            wrong = validator.validate_str(wheel.read(name).decode())
            if wrong is not None:
                print(f"{name}: {str(wrong).splitlines()[0]}", file=sys.stderr)
                return 1
            print(f"{name}: valid CycloneDX 1.6")
    return 0


if __name__ == "__main__":
    sys.exit(main())
