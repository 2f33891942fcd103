#!/usr/bin/env python3
"""Lists that the compiler cannot compare: what stands in one place of the sources is named in the others that need it.

Prints each thing that is missing and where; exits 1 when there is one. usage: check_lists.py ROOT
"""

import pathlib
import re
import sys

ROOT = pathlib.Path()

# Makers that no row of families.h has because code chooses them, by target.stack.library.
MAKERS_WITHOUT_A_ROW = {"make_litgpt"}

# Sources whose options several commands have, and the pages that name them. `recommend` and the others refer to
# estimate's page for the flags of a job.
SHARED_OPTIONS = {
    "cli/job/job_options.cc": ["estimate"],
    "cli/job/job_source.cc": ["estimate"],
    "cli/calibrate/profiling.cc": ["calibrate", "profile"],
    "cli/bench/compare.cc": ["bench"],
    "cli/fleet/submission.cc": ["fleet"],
    "cli/observe/removals.cc": ["observations", "samples"],
    "cli/estimate/recommend.cc": ["recommend", "estimate"],
}

# Keys of results that C++ callers find in `json` only.
# Answers that include/memfathom/results.h does not give: they are for programs that read JSON.
JSON_WITHOUT_READER = {f"estimator/json/{name}_json.cc" for name in ("live_gpu", "oom", "timeline")}
ONLY_IN_JSON = {
    "schema", "coefficient", "first_iteration_allocated_peak_bytes", "rank", "host_node_bytes", "ranks_per_node",
    "device", "rule_of_thumb", "per_layer_bytes", "activations_bytes", "limit_bytes", "safe",
    "checklist", "done", "file_patches", "file", "format", "by_hand", "used_fraction", "trainable_parameters", "grid", "targets",
    "kind", "memory_as_shown_by_driver", "comfortable_bytes", "uncertainty", "below_bytes", "above_bytes",
}

# Read, but not offered: docs/jobs.md calls it by the presets' names.
KEYS_OUTSIDE_THE_CONTRACT = {"family"}


def text_of(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def files(folder: str, suffix: str) -> list[str]:
    found = sorted(str(path.relative_to(ROOT)) for path in (ROOT / folder).rglob("*" + suffix))
    if not found:
        raise FileNotFoundError(f"{ROOT / folder} holds no {suffix}")
    return found


def code(path: str) -> str:
    """A source without its comments; texts stay."""
    return re.sub(r"(?m)(?:^|\s)//.*$", "", text_of(path))


def names_word(text: str, word: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) is not None


def check_models():
    sources = text_of("estimator/models/sources.cmake")
    for suffix in (".cc", ".json"):
        for path in files("estimator/models", suffix):
            if not re.search(rf"(?m)^\s*{re.escape(path.removeprefix('estimator/'))}$", sources):
                yield f"estimator/models/sources.cmake does not list {path}"
    header = code("estimator/models/families/families.h")
    table = header[header.index("kModelFamilies[]"):]
    makers = set(re.findall(r"ModelMaker (make_\w+);", header))
    for maker in sorted(makers - MAKERS_WITHOUT_A_ROW):
        if not names_word(table, maker):
            yield f"families.h declares {maker}, but no row of kModelFamilies has it"
    # A family is what reads a config: its source defines a maker that the header declares, or its folder's does.
    declared = makers | set(re.findall(r"ImageSourceMaker (make_\w+);", header))
    for path in files("estimator/models/families", ".cc"):
        parts = path.split("/")
        group = path if len(parts) == 5 else "/".join(parts[:5])
        members = [path] if group == path else files(group, ".cc")
        if parts[4] == "classifiers":
            continue  # presets of image classifiers, which have a table of their own
        if not any(re.search(rf"\b{maker}\(", code(member)) for maker in declared for member in members):
            yield f"{path} defines no maker that families.h declares"
    page = text_of("docs/models.md")
    variants = code("estimator/models/blocks/llama/llama_variant.cc")
    rows = re.findall(r'^\s*\{"([^"]+)", ModelKind::', table, re.M)
    rows += re.findall(r'\{\s*\.type = "([^"]+)"', variants)
    if len(rows) < 60:
        yield f"only {len(rows)} families were found in families.h and llama_variant.cc"
    for row in rows:
        if not names_word(page, row):
            yield f"docs/models.md does not name {row}"


def check_commands():
    table = code("cli/commands.cc")
    commands = [name for name in re.findall(r'Command\{"(\w+)"', table) if not name.startswith("__")]
    contract = text_of("docs/contract.md")
    for name in commands:
        if f"(commands/{name}.md)" not in contract:
            yield f"docs/contract.md has no link to commands/{name}.md"
    for path in files("cli", ".cc"):
        source = code(path)
        declared = re.findall(r'\b(?:option|flag|option_or|list_option)\(\s*"(--[a-z0-9-]+)[",]', source)
        if path == "cli/job/job_options.cc":
            declared += re.findall(r'\{"(--[a-z0-9-]+)[",]', source)  # its tables
        if not declared:
            continue
        pages = sorted({name.split()[0] for name in re.findall(r'OptionParser \w+\("([\w -]+)"\)', source)})
        pages = SHARED_OPTIONS.get(path, pages)
        if not pages:
            yield f"{path} declares options of no command that check_lists.py knows"
        for page in pages:
            text = text_of(f"docs/commands/{page}.md")
            for option in sorted(set(declared)):
                if not names_word(text, option):
                    yield f"docs/commands/{page}.md does not name {option} of {path}"


def code_in(page: str) -> str:
    """What a page shows as code, where keys stand."""
    blocks = re.findall(r"(?m)^ {4}.*$", page)
    return "\n".join(re.findall(r"`[^`]+`", page) + blocks)


def json_keys(path: str) -> set[str]:
    return set(re.findall(r'(?:\{|json\[|\.add\()"([a-z_]+)"[,\]]', code(path)))


def check_contract():
    contract = text_of("docs/contract.md")
    job = contract[contract.index("## 3."):contract.index("### 3.1")]
    for path in ("estimator/job/read_job.cc", "estimator/job/read_training.cc"):
        for call in re.findall(r"(?:check_keys\(|kKeys)\s*\{([^}]*)\}", code(path)):
            for key in re.findall(r'"(\w+)"', call):
                if key not in KEYS_OUTSIDE_THE_CONTRACT and not names_word(job, key):
                    yield f"docs/contract.md section 3 does not name {key} of {path}"
    for key, path, row in (("loss", "estimator/models/blocks/losses.cc", r'\{LossKind::\w+, "([\w-]+)"\}'),
                           ("precision", "estimator/job/read_training.cc", r'NamedPrecision\{"([\w-]+)"')):
        line = re.search(rf"(?m)^\| `{key}` \|.*$", job)
        values = re.findall(row, code(path))
        if not values:
            yield f"no values of {key} were found in {path}"
        for value in values:
            if line is None or not names_word(line[0], value):
                yield f"docs/contract.md does not name {value} of {path} in the row of {key}"
    shown = code_in(contract)
    reader = text_of("include/memfathom/results.h") + text_of("include/memfathom/session.h")
    # What results.h reads of a status that it does not know is the last of each enum.
    for key, enum, fallback in (("verdict.status", "VerdictStatus", "unknown"),
                                ("calibration.status", "CalibrationStatus", "none")):
        paragraph = re.search(rf"(?m)^- `{key}`(?:.*\n)(?:  .*\n)*", contract)
        values = re.findall(rf'case {enum}::\w+: return "(\w+)"', code("estimator/answer/estimate.cc"))
        if not values:
            yield f"no values of {enum} were found in estimator/answer/estimate.cc"
        for value in values:
            if paragraph is None or not names_word(paragraph[0], value):
                yield f"docs/contract.md does not name {value} of {key}"
            if value != fallback and f'"{value}"' not in reader:
                yield f"include/memfathom/results.h does not read {value} of {key}"
    for path in files("estimator/json", ".cc"):
        for key in sorted(json_keys(path)):
            if not names_word(shown, key):
                yield f"docs/contract.md does not name {key} of {path}"
            if key not in ONLY_IN_JSON and path not in JSON_WITHOUT_READER and f'"{key}"' not in reader:
                yield f"include/memfathom/results.h does not read {key} of {path}"


def check_uses():
    """Things that are declared in one file and must be used in another."""
    options = code("kernels/memory/allocator/options.h")
    struct = options[options.index("struct AllocatorOptions"):options.index("bool operator==")]
    fields = re.findall(r"^  (?!static)[\w:<>, ]+? (\w+)(?: = [^;]+|\{.*\})?;", struct, re.M)
    others = "".join(code(path) for path in files("kernels/memory/allocator", ".cc") if not path.endswith("/options.cc"))
    if len(fields) < 4:
        yield f"only {len(fields)} fields were found in AllocatorOptions"
    for field in fields:
        if not names_word(others, field):
            yield f"AllocatorOptions::{field} is read, but no source of kernels/memory/allocator uses it"
    # A library that a session notes is reported by the run, for the constant that its jobs pay.
    run, job = code("estimator/run/dry_run.cc"), code("core/predictor.h")
    for library in re.findall(r"bool used_(\w+)\(\) const", code("kernels/framework/tensor/session.h")):
        if f"session.used_{library}()" not in run:
            yield f"estimator/run/dry_run.cc does not report used_{library}() of session.h"
        if f"bool uses_{library} " not in job:
            yield f"ReplayedJob of core/predictor.h has no uses_{library}"
    charts = re.findall(r"^[\w:]+ (\w+)\(", code("api/chart.h"), re.M)
    pages = "".join(code(path) for path in files("cli/report", ".cc"))
    for chart in charts:
        if not names_word(pages, chart):
            yield f"no page of cli/report calls {chart} of chart.h"
    asked = code("tests/kernels/workspaces/forwarding_test.cc")
    for query in re.findall(r"virtual WorkspaceSize (\w+)\(", code("core/workspace.h")):
        if f"model.{query}(" not in asked:
            yield f"expect_forwarding of forwarding_test.cc does not ask for {query}"


def main() -> int:
    global ROOT
    ROOT = pathlib.Path(sys.argv[1])
    missing = []
    for check in (check_models, check_commands, check_contract, check_uses):
        missing += check()
    print("\n".join(missing))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
