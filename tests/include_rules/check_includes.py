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
    "api": {"core", "kernels", "db", "profiler", "estimator", "api"},
    "cli": {"core", "kernels", "db", "profiler", "fitter", "estimator", "api", "cli"},
    "serve": {"core", "serve"},
    "web": {"core", "kernels", "db", "estimator", "api", "web"},
}

# Inside a folder: which sub-folders a sub-folder may include, by the longest prefix that matches. A sub-folder that is not
# listed may include everything that its folder may; cycles are refused everywhere.
ROOMS = {
    "kernels/memory": {"kernels/memory"},
    "kernels/framework": {"kernels/framework", "kernels/memory"},
    "kernels/workspaces": {"kernels/workspaces"},
    "estimator/models/blocks": {"kernels", "estimator/models/blocks"},
    "estimator/models/stack": {"kernels", "estimator/models/blocks", "estimator/models/stack"},
}

# A library's headers, where they may be included, and how that is said.
LIBRARIES = [
    (r"sqlite3\.h|SQLiteCpp/", r"^db/", "SQLite only in db"),
    (r"ceres/", r"^fitter/", "Ceres only in fitter"),
    (r"(cuda|cublas|cudnn|cufft|curand|cusparse|nvml|nvtx|cub/|thrust/)", r"/cuda/", "CUDA headers only in */cuda"),
    (r"toml\+\+/", r"^core/parse_toml\.cc$", "toml++ only in core/parse_toml.cc"),
    (r"yaml-cpp/", r"^core/parse_yaml\.cc$", "yaml-cpp only in core/parse_yaml.cc"),
    (r"CLI/", r"^cli/", "CLI11 only in cli"),
    (r"httplib", r"^serve/", "cpp-httplib only in serve"),
    (r"(oneapi/|dnnl|fftw3)", r"^kernels/devices/cpu/libraries/", "oneDNN and FFTW only in kernels/devices/cpu/libraries"),
]

# Text from outside is parsed with bounds of size and depth: parse_json, or parse_json_value where locations are not needed.
# yaml_text.cc and trace_writer.cc read their own text; a trace is read line by line, without a tree.
JSON_PARSERS = re.compile(r"[jJ]son::(parse|sax_parse|accept|from_\w+)\s*\(")
MAY_PARSE_JSON = {
    "core/parse_json.cc",
    "core/json_value.cc",
    "core/yaml_text.cc",
    "kernels/memory/trace/trace_reader.cc",
    "kernels/memory/trace/trace_writer.cc",
}

# Model families never include each other: what two of them need is a block.
FAMILIES = "estimator/models/families/"

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CUDA_CONDITION = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif)\b.*\b(MEMFATHOM_\w*CUDA\w*|USE_CUDA|WITH_CUDA)\b")


def family_of(path: str) -> str:
    """The family of a file: language/gpt2 of language/gpt2.cc, language/t5 of language/t5/t5_stack.h; "" of what all share."""
    parts = path.removeprefix(FAMILIES).split("/")
    return "/".join(parts[:2]).rsplit(".", 1)[0] if len(parts) > 1 else ""


def complaint(path: str, line: str) -> str | None:
    """Why `line` may not stand in the file `path` (relative to the root), or None."""
    if CUDA_CONDITION.search(line):
        return "CUDA present or absent is a choice of source files (target_sources), not of the preprocessor"
    if JSON_PARSERS.search(line.split("//")[0]) and path not in MAY_PARSE_JSON:
        return "JSON is parsed by parse_json or parse_json_value (core/json_value.h), which bound size and depth"
    found = INCLUDE.match(line)
    if not found:
        return None
    quoted, header = found[1] == '"', found[2]
    room = next((name for name in sorted(ROOMS, key=len, reverse=True) if path.startswith(name + "/")), None)
    folder = path.split("/")[0]
    target = header.split("/")[0]
    if quoted and target in FOLDERS:
        if target not in FOLDERS[folder]:
            return f"{folder} may not include {target}"
        if folder == "estimator" and re.match(r"kernels/devices/(cpu|cuda)/", header):
            return "estimator sees the layers only, no device but the dry one"
        if header.startswith("cli/estimate/") and not path.startswith("cli/estimate/"):
            return "cli/estimate is a leaf: what others need of it belongs to estimator, cli/job or cli/text"
        if path.startswith(FAMILIES) and header.startswith(FAMILIES) and family_of(header) not in {"", family_of(path)}:
            return f"{family_of(path)} may not include another family; what they share is a block"
        if room and target != "core" and not any(header.startswith(name + "/") for name in ROOMS[room]):
            return f"{room} may include {', '.join(['core', *sorted(ROOMS[room])])} only"
        return None
    if quoted and "/" not in header:
        return "include paths start at the project root"
    for pattern, allowed, rule in LIBRARIES:
        if re.match(pattern, header) and not re.search(allowed, path):
            return rule
    if path.endswith((".cu", ".cuh")) and header.startswith("fmt/"):
        return "fmt is never included by a .cu file (nvcc rejects its checks under C++20)"
    return None


def find_cycles(edges: dict[str, dict[str, str]]) -> list[list[str]]:
    """The groups of sub-folders that include each other, directly or around a corner (Tarjan's components)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in edges.get(node, {}):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] != index[node]:
            return
        group = []
        while not group or group[-1] != node:
            group.append(stack.pop())
        if len(group) > 1:
            groups.append(sorted(group))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return groups


def main() -> int:
    root = pathlib.Path(sys.argv[1])
    complaints = files = 0
    edges: dict[str, dict[str, str]] = {}  # sub-folder -> sub-folder -> the first line that includes it
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
                found = INCLUDE.match(line)
                if found and found[1] == '"' and found[2].split("/")[0] in FOLDERS:
                    source, target = path.rpartition("/")[0], found[2].rpartition("/")[0]
                    if source != target:
                        edges.setdefault(source, {}).setdefault(target, f"{path}:{number}")
    for group in find_cycles(edges):
        complaints += 1
        ways = [f"{at} includes {b}" for a in group for b, at in sorted(edges.get(a, {}).items()) if b in group]
        print(f"sub-folders that include each other: {', '.join(group)} ({'; '.join(ways)})")
    print(f"{files} files, {len(edges)} sub-folders, {complaints} complaints")
    return 1 if complaints or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
