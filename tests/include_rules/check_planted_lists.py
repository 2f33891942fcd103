#!/usr/bin/env python3
"""Plants a gap of each sort in a copy of the sources and expects check_lists.py to name it.

usage: check_planted_lists.py CHECK ROOT COPY
"""

import pathlib
import shutil
import subprocess
import sys

FOLDERS = ("api", "cli", "core", "docs", "estimator/answer", "estimator/job", "estimator/json", "estimator/models", "estimator/run", "include",
           "kernels/framework/tensor", "kernels/memory/allocator", "tests/kernels/workspaces")

# A file, what is replaced in it (None: the file is new), by what, and what the check says.
GAPS = [
    ("estimator/models/families/language/gpt9.cc", None, "void f() {}", "sources.cmake does not list"),
    ("estimator/models/families/language/gpt9.cc", None, "void f() {}", "gpt9.cc defines no maker"),
    ("estimator/models/presets/gpt9.json", None, "{}", "does not list estimator/models/presets/gpt9.json"),
    ("estimator/models/families/families.h", "ModelMaker make_bart;", "ModelMaker make_bart;\nModelMaker make_gpt9;",
     "declares make_gpt9, but no row"),
    ("estimator/models/families/families.h", '    {"bart", ModelKind', '    {"gpt9", ModelKind::kLanguage, make_bart, {}},\n    {"bart", ModelKind',
     "docs/models.md does not name gpt9"),
    ("estimator/models/blocks/llama/llama_variant.cc", '{.type = "llama"', '{.type = "gpt9"},\n    {.type = "llama"',
     "docs/models.md does not name gpt9"),
    ("cli/commands.cc", 'Command{"estimate"', 'Command{"frob", "", run_frob},\n      Command{"estimate"',
     "no link to commands/frob.md"),
    ("cli/estimate/gpus.cc", "parser.flag(", 'parser.flag("--frob", frob);\n  parser.flag(',
     "gpus.md does not name --frob"),
    ("cli/job/job_options.cc", 'parser.option("--fsdp"', 'parser.option("--frob,--fr", v.frob);\n  parser.option("--fsdp"',
     "estimate.md does not name --frob"),
    ("estimator/job/read_job.cc", 'node.check_keys({"gpu"', 'node.check_keys({"frob", "gpu"', "section 3 does not name frob"),
    ("estimator/json/estimate_json.cc", '.add("reserved_peak_bytes"', '.add("frob_bytes", 1)\n                  .add("reserved_peak_bytes"',
     "docs/contract.md does not name frob_bytes"),
    ("estimator/json/estimate_json.cc", 'json["totals"]', 'json["frob"] = 1;\n  json["totals"]',
     "results.h does not read frob"),
    ("estimator/answer/estimate.cc", "    case VerdictStatus::kTight:", '    case VerdictStatus::kFrob: return "frob";\n    case VerdictStatus::kTight:',
     "does not read frob of verdict.status"),
    ("estimator/models/blocks/losses.cc", "{LossKind::kL1,", '{LossKind::kFrob, "frob"},\n       {LossKind::kL1,',
     "in the row of loss"),
    ("kernels/memory/allocator/options.h", "  bool expandable_segments", "  bool frob = false;\n  bool expandable_segments",
     "AllocatorOptions::frob is read"),
    ("kernels/framework/tensor/session.h", "  bool used_cufft() const", "  bool used_frob() const;\n  bool used_cufft() const",
     "does not report used_frob()"),
    ("api/chart.h", "std::string timeline_chart", "std::string frob_chart();\nstd::string timeline_chart",
     "calls frob_chart"),
    ("core/workspace.h", "  virtual WorkspaceSize fft", "  virtual WorkspaceSize frob(int) const = 0;\n  virtual WorkspaceSize fft",
     "does not ask for frob"),
]


def run(check: str, copy: pathlib.Path) -> tuple[int, str]:
    done = subprocess.run([sys.executable, check, str(copy)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def main() -> int:
    check, root, copy = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    shutil.rmtree(copy, ignore_errors=True)
    for folder in FOLDERS:
        shutil.copytree(root / folder, copy / folder)
    status, said = run(check, copy)
    if status != 0:
        print(f"the copy itself has a gap: {said}")
        return 1
    failures = 0
    for file, old, new, expected in GAPS:
        path = copy / file
        before = path.read_text(encoding="utf-8") if old is not None else None
        if before is not None and old not in before:
            print(f"{file} has no {old!r} to plant a gap at")
            failures += 1
            continue
        path.write_text(new if before is None else before.replace(old, new, 1), encoding="utf-8")
        status, said = run(check, copy)
        if status != 1 or expected not in said:
            print(f"{file}: expected {expected!r}, got {status}: {said}")
            failures += 1
        if before is None:
            path.unlink()
        else:
            path.write_text(before, encoding="utf-8")
    shutil.rmtree(copy)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
