#!/usr/bin/env python3
"""Runs commands in surroundings that are hostile, broken or unusual, and compares their answers with those of ordinary ones.

surroundings.py MEMFATHOM [--only CLASS] [--log FILE]

Each try answers as usual, or fails with an exit code of docs/exit-codes.md other than 70 and a sentence; it never runs what lies about,
writes elsewhere, or answers something else. Locales that are not installed, and what needs root, are named as left out. --log appends
"CLASS TRIED FAILED SECONDS" lines for scripts/reliability.
"""
import argparse
import ctypes
import itertools
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

PATIENCE = 120
JOB = {"model": {"preset": "gpt2"}, "training": {"batch_size": 2, "sequence_length": 32, "label_smoothing": 0.5},
       "target": {"gpu": "t4", "memory": "14.5 GiB"}}
PLANTED = "#include <stdio.h>\n__attribute__((constructor)) static void loaded(void) { FILE* f = fopen(\"loaded\", \"w\"); if (f) fclose(f); }\n"
LIBRARIES = ["libnvidia-ml.so.1", "libnvidia-ml.so", "libcuda.so.1", "libcudart.so.12", "libcudnn.so.9", "libcublas.so.12", "libcufft.so.11",
             "libmemfathom_cuda.so", "libmemfathom_cpu.so", "libmemfathom.so.0", "libfmt.so.9", "libnccl.so.2"]
MODULES = ["json", "ctypes", "os", "sys", "torch", "subprocess", "site", "sitecustomize", "usercustomize", "memfathom", "typing", "dataclasses"]
LOCALES = ["de_DE.UTF-8", "fr_FR.UTF-8", "tr_TR.UTF-8", "fa_IR.UTF-8", "hi_IN.UTF-8", "de_CH.UTF-8", "pt_BR.ISO-8859-1", "ja_JP.EUC-JP",
           "zh_TW.BIG5"]
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 1 << 18


class Failed(Exception):
    pass


class Lab:
    def __init__(self, program):
        self.program = program
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="memfathom-surroundings-"))
        self.folder.chmod(0o755)
        self.count = 0

    def work(self):
        self.count += 1
        work = self.folder / str(self.count)
        work.mkdir()
        (work / "job.json").write_text(json.dumps(JOB))
        (work / "jobs.jsonl").write_text("".join(json.dumps(JOB) + "\n" for _ in range(3)))
        (work / "runs.csv").write_text("job,metric,bytes,gpu\njob.json,device,3000000000,t4\n")
        return work

    def environment(self, work, **more):
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LD_LIBRARY_PATH")}
        base = {**kept, "HOME": str(work), "LC_ALL": "C.UTF-8", "MEMFATHOM_NVML": "/nonexistent", "MEMFATHOM_DB": "store.db"}
        return {name: value for name, value in {**base, **more}.items() if value is not None}

    def run(self, words, work=None, expects=None, prepare=None, variables=None, said=True, **popen):
        """The standard output of a command; `expects` are its exit codes, by default any but those of a crash."""
        work = work or self.work()
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **popen}
        process = subprocess.Popen([self.program, *words], cwd=work, env=self.environment(work, **(variables or {})), preexec_fn=prepare, **options)
        try:
            out, err = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise Failed(f"{words} did not end")
        code = process.returncode
        if code not in (expects or (0, 1, 2, 3, 4)):
            raise Failed(f"{words} exits with {code}: {(err or b'').decode(errors='replace')[-300:]}")
        if said and code > 1 and not err and options["stderr"] == subprocess.PIPE:
            raise Failed(f"{words} exits with {code} without a sentence")
        return out


def estimate(lab, **options):
    return lab.run(["estimate", "job.json", "--format", "json"], **options)


COMMANDS = [["estimate", "job.json"], ["estimate", "--batch", "jobs.jsonl"], ["observe", "runs.csv"], ["status"], ["gpus"], ["calibrations", "list"],
            ["calibrate", "--device", "virtual:plain", "--plan", "quick"], ["report", "estimate", "job.json", "--output", "page.html"]]


def planted_libraries(lab):
    work = lab.work()
    source = work / "planted.c"
    source.write_text(PLANTED)
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        return
    subprocess.run([compiler, "-shared", "-fPIC", "-o", work / "planted.so", source], check=True)
    needed = subprocess.run(["ldd", lab.program], capture_output=True, text=True, check=True).stdout.split()
    for name in {*LIBRARIES, *(word for word in needed if ".so" in word and "/" not in word and "ld-linux" not in word)}:
        shutil.copy(work / "planted.so", work / name)
        for folder in ("lib", "glibc-hwcaps/x86-64-v3", "x86_64"):
            (work / folder).mkdir(parents=True, exist_ok=True)
            shutil.copy(work / "planted.so", work / folder / name)
    variables = {"MEMFATHOM_NVML": None, "LD_LIBRARY_PATH": None}
    for words in [*COMMANDS, ["selftest"], ["calibrate", "--device", "cpu", "--plan", "quick", "--filter", "nothing"]]:
        lab.run(words, work, variables=variables)
        if (work / "loaded").exists():
            raise Failed(f"{words} loads a library of the current directory")
        yield


def planted_modules(lab):
    work = lab.work()
    for name in MODULES:
        (work / f"{name}.py").write_text(f"open({str(work / 'loaded')!r}, 'w').close()\n")
    (work / "train.py").write_text("print('trained')\n")
    for words in (["calibrate", "--framework", "pytorch"], ["calibrate", "--framework", "pytorch", "--python", sys.executable], ["status"],
                  ["check", "--model", "gpt2", "--sequence-length", "8", "--gpu", "t4", "--", "true"]):
        lab.run(words, work)
        if (work / "loaded").exists():
            raise Failed(f"{words} imports a module of the current directory")
        yield


def temporary_folders(lab):
    for name in ("/nonexistent", "/proc", "", "relative", "/dev/null", "with space\n", "x" * 5000):
        for words in (*COMMANDS, ["check", "--model", "gpt2", "--sequence-length", "8", "--gpu", "h100-80gb", "--", "true"]):
            lab.run(words, variables={"TMPDIR": name}, expects=(0, 1, 2, 3, 4))
            yield


def file_modes(lab):
    """Nothing is more open than the umask says, and a file that is replaced keeps its mode."""
    for mask in (0o077, 0o027, 0o022, 0o777):
        work = lab.work()
        for words in (COMMANDS[2], COMMANDS[7], ["db", "backup", "backup.db"], ["db", "export", "exported"]):
            lab.run(words, work, prepare=lambda mask=mask: os.umask(mask))
            for path in work.rglob("*"):
                if path.name not in ("job.json", "jobs.jsonl", "runs.csv") and path.is_file() and path.stat().st_mode & 0o777 & mask:
                    raise Failed(f"{words} under umask {mask:03o} leaves {path.name} with mode {path.stat().st_mode & 0o777:03o}")
            yield
    work = lab.work()
    (work / "page.html").write_text("mine")
    (work / "page.html").chmod(0o640)
    lab.run(COMMANDS[7], work, expects=(0, 1))
    if (work / "page.html").stat().st_mode & 0o777 != 0o640:
        raise Failed("--output changes the mode of a file")
    yield


def symbolic_links(lab):
    """A link under the name of the temporary file is not followed, and one under the final name is not a way to other people's files."""
    work = lab.work()
    victim = work / "victim"
    victim.write_text("precious")
    for name in ("page.html.tmp", "page.html.new", "page.html~", ".page.html.tmp"):
        (work / name).symlink_to(victim)
    lab.run(COMMANDS[7], work, expects=(0, 1))
    if victim.read_text() != "precious":
        raise Failed("--output writes through a link under a temporary name")
    yield
    for target in ("/nonexistent/page.html", "loop"):
        work = lab.work()
        (work / "loop").symlink_to("loop")
        (work / "page.html").symlink_to(target)
        lab.run(COMMANDS[7], work)
        yield
    for name in ("store.db", "job.json"):
        work = lab.work()
        (work / name).unlink(missing_ok=True)
        (work / name).symlink_to(name)
        lab.run(COMMANDS[2], work, expects=(2, 4))
        yield


def poor_homes(lab):
    """Nobody, with a home that is read-only, missing or a file; read and write."""
    if os.getuid() != 0:
        return
    for home in ("/", "/nonexistent", "/dev/null", "/proc/self", ""):
        for words in COMMANDS:
            work = lab.work()
            work.chmod(0o755)
            lab.run(words, work, variables={"HOME": home, "MEMFATHOM_DB": None, "XDG_DATA_HOME": None, "XDG_CACHE_HOME": None},
                    prepare=lambda: (os.setgroups([]), os.setgid(65534), os.setuid(65534)))
            yield


def small_memory_folder(lab):
    """/dev/shm of one page, and none."""
    if os.getuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)

    def shrink():
        libc.unshare(CLONE_NEWNS)
        libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None)
        if libc.mount(b"none", b"/dev/shm", b"tmpfs", 0, b"size=4k") != 0:
            os._exit(99)

    usual = estimate(lab)
    for words in COMMANDS:
        out = lab.run(words, prepare=shrink, expects=(0, 1))
        if words[:2] == ["estimate", "job.json"] and not out:
            raise Failed("no answer")
        yield
    if estimate(lab, prepare=shrink) != usual:
        raise Failed("another answer with a small /dev/shm")


def limits(lab):
    usual = estimate(lab)
    settings = [(resource.RLIMIT_AS, value << 20) for value in (40, 60, 80, 100, 120, 150, 200, 300, 500, 1000, 4000)]
    settings += [(resource.RLIMIT_NOFILE, value) for value in range(3, 24)]
    settings += [(resource.RLIMIT_FSIZE, value) for value in (0, 1, 512, 4096, 65536)]
    settings += [(resource.RLIMIT_STACK, value << 10) for value in (64, 128, 256, 512, 1024)]
    settings += [(resource.RLIMIT_NPROC, 0), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_MEMLOCK, 0), (resource.RLIMIT_DATA, 64 << 20)]
    for (kind, value), words in itertools.product(settings, COMMANDS[:3] + COMMANDS[-1:]):
        def limit(kind=kind, value=value):
            resource.setrlimit(kind, (value, value))

        # Below what the loader needs the system ends the program before its first line: 127, or a signal. SIGXFSZ is the system's word.
        loads = subprocess.run([lab.program, "--version"], preexec_fn=limit, capture_output=True, check=False).returncode == 0
        if kind == resource.RLIMIT_STACK and value < 256 << 10:
            loads = False
        out = lab.run(words, prepare=limit, expects=None if loads else (0, 1, 2, 3, 4, 127, 126, -6, -7, -9, -11), said=loads)
        if loads and out and words[1] == "job.json" and words[0] == "estimate" and lab.run(words, expects=(0, 1)) != out:
            raise Failed(f"{words} answers something else under limit {kind} of {value}")
        yield
    del usual


def locales(lab):
    installed = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=False).stdout.lower().replace("-", "").split()
    usual = {tuple(words): lab.run([*words, "--format", "json"]) for words in (COMMANDS[0], COMMANDS[4])}
    store = lab.work()
    lab.run(COMMANDS[6], store, expects=(0, 1))
    for name in LOCALES:
        if name.lower().replace("-", "") not in installed:
            print(f"  {name}: left out, it is not installed", flush=True)
            continue
        for words, answer in usual.items():
            variables = {"LC_ALL": name, "LANG": name}
            if lab.run([*words, "--format", "json"], variables=variables) != answer:
                raise Failed(f"{words} answers something else in {name}")
            yield
        # Numbers that are written in one locale are read in another.
        work = lab.work()
        lab.run(COMMANDS[6], work, variables=variables, expects=(0, 1))
        lab.run(["db", "export", "exported"], work, variables=variables, expects=(0,))
        lab.run(["db", "check"], work, expects=(0,))
        lab.run(["--db", "again.db", "db", "import", *map(str, sorted((work / "exported").iterdir()))], work, expects=(0,))
        lab.run(["observe", "runs.csv"], work, variables=variables, expects=(0,))
        yield


def closed_descriptors(lab):
    for closed in itertools.chain.from_iterable(itertools.combinations((0, 1, 2), size) for size in (1, 2, 3)):
        for words in COMMANDS:
            work = lab.work()
            before = (work / "job.json").read_bytes()
            # The descriptors are inherited, so nothing is captured.
            lab.run(words, work, prepare=lambda closed=closed: [os.close(number) for number in closed], stdin=None,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if (work / "job.json").read_bytes() != before:
                raise Failed(f"{words} writes into its input with {closed} closed")
            if (work / "store.db").exists():
                lab.run(["db", "check"], work, expects=(0,))
            yield


def variables_that_are_odd(lab):
    usual = estimate(lab)
    odd = {"COLUMNS": ["-1", "0", "1", "99999999999999999999", "abc"], "TERM": ["", "dumb", "x" * 10000], "TZ": ["", ":/etc/passwd", "Moon/Base"],
           "LANG": ["xx_XX", "../../etc", "\xff"], "LC_ALL": ["xx_XX", ""], "PATH": ["", ".", "/nonexistent"], "NO_COLOR": ["1"],
           "HOME": ["", "\n", "~"], "XDG_CACHE_HOME": ["", "relative", "/dev/null"], "XDG_DATA_HOME": ["relative", "/dev/null"],
           "MALLOC_ARENA_MAX": ["1"], "GLIBC_TUNABLES": ["x=y"], "MEMFATHOM_PROBE": ["/nonexistent"], "BIG": ["x" * 100000]}
    for name, values in odd.items():
        for value in values:
            if estimate(lab, variables={name: value}) != usual:
                raise Failed(f"another answer with {name}={value[:40]!r}")
            for words in COMMANDS[1:]:
                lab.run(words, variables={name: value})
            yield


def no_terminal(lab):
    """In a session of its own, with no terminal to open, and with a standard input that never ends."""
    usual = estimate(lab)
    if estimate(lab, start_new_session=True) != usual:
        raise Failed("another answer without a terminal")
    yield
    for words in (["estimate", "-"], ["estimate", "--batch", "-"], ["oom", "-"], ["observe", "-"]):
        with open("/dev/zero", "rb") as endless:
            lab.run(words, stdin=endless, expects=(2, 4), start_new_session=True)
        yield


CLASSES = [planted_libraries, planted_modules, temporary_folders, file_modes, symbolic_links, poor_homes, small_memory_folder, limits, locales,
           closed_descriptors, variables_that_are_odd, no_terminal]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--only", action="append")
    parser.add_argument("--log")
    options = parser.parse_args()
    lab = Lab(os.path.abspath(options.program))
    failed_at_all = 0
    try:
        for one in CLASSES:
            if options.only and one.__name__ not in options.only:
                continue
            began = time.monotonic()
            tried = failed = 0
            try:
                for _ in one(lab):
                    tried += 1
            except Failed as problem:
                failed = 1
                tried += 1
                print(f"  {one.__name__}: {problem}", flush=True)
            failed_at_all += failed
            seconds = time.monotonic() - began
            print(f"{one.__name__}: {tried} tried, {failed} failed, {seconds:.1f} s", flush=True)
            if options.log:
                pathlib.Path(options.log).open("a", encoding="utf-8").write(f"{one.__name__} {tried} {failed} {seconds:.1f}\n")
    finally:
        shutil.rmtree(lab.folder, ignore_errors=True)
    sys.exit(1 if failed_at_all else 0)


main()
