#!/usr/bin/env python3
"""Who may include whom (docs/architecture.md). Prints each offending line; exits 1 when there is one."""

import pathlib
import re
import sys

FOLDERS = {
    "core": {"core"},
    "kernels": {"core", "kernels"},
    "db": {"core", "db"},
    "profiler": {"core", "kernels", "profiler"},
    "fitter": {"core", "fitter"},
    "estimator": {"core", "kernels", "estimator"},
    "cli": {"core", "kernels", "db", "profiler", "fitter", "estimator", "cli"},
}

# A library's headers, where they may be included, and how that is said.
LIBRARIES = [
    (r"sqlite3\.h|SQLiteCpp/", r"^db/", "SQLite only in db"),
    (r"ceres/", r"^fitter/", "Ceres only in fitter"),
    (r"(cuda|cublas|cudnn|cufft|curand|cusparse|nvml|nvtx|cub/|thrust/)", r"/cuda/", "CUDA headers only in */cuda"),
    (r"yaml-cpp/", r"^core/parse_yaml\.cc$", "yaml-cpp only in core/parse_yaml.cc"),
    (r"CLI/", r"^cli/", "CLI11 only in cli"),
    (r"(oneapi/|dnnl|fftw3)", r"^kernels/cpu/", "oneDNN and FFTW only in kernels/cpu"),
]

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CUDA_CONDITION = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif)\b.*\b(MEMFATHOM_\w*CUDA\w*|USE_CUDA|WITH_CUDA)\b")


def complaint(path: str, line: str) -> str | None:
    """Why `line` may not stand in the file `path` (relative to the root), or None."""
    if CUDA_CONDITION.search(line):
        return "CUDA present or absent is a choice of source files (target_sources), not of the preprocessor"
    found = INCLUDE.match(line)
    if not found:
        return None
    quoted, header = found[1] == '"', found[2]
    folder = path.split("/")[0]
    target = header.split("/")[0]
    if quoted and target in FOLDERS:
        if target not in FOLDERS[folder]:
            return f"{folder} may not include {target}"
        if folder == "estimator" and re.match(r"kernels/(cpu|cuda)/", header):
            return "estimator sees the layers only, no device but the dry one"
        return None
    if quoted and "/" not in header:
        return "include paths start at the project root"
    for pattern, allowed, rule in LIBRARIES:
        if re.match(pattern, header) and not re.search(allowed, path):
            return rule
    if path.endswith((".cu", ".cuh")) and header.startswith("fmt/"):
        return "fmt is never included by a .cu file (nvcc rejects its checks under C++20)"
    return None


def main() -> int:
    root = pathlib.Path(sys.argv[1])
    complaints = files = 0
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in {".h", ".cc", ".cu", ".cuh"}:
                continue
            files += 1
            path = file.relative_to(root).as_posix()
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                why = complaint(path, line)
                if why:
                    complaints += 1
                    print(f"{path}:{number}: {line.strip()}: {why}")
    print(f"{files} files, {complaints} complaints")
    return 1 if complaints or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
