"""python -m memfathom.torch [-o FILE] [--iterations N] [--world N] [--gpu JSON] (train.py | -m module) [its arguments]

Runs a script unmodified until its steps are recorded. The last line on standard error is a JSON object that says how it went.
"""
import json
import logging
import os
import runpy
import sys
import time
import traceback
import warnings

USAGE = "python -m memfathom.torch [-o FILE] [--iterations N] [--world N] [--gpu JSON] [--vary SIZE[=NAME]]... (train.py | -m module) [arguments]"
FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # of the package
SEVERAL = ("--vary", "--assign")
NETWORK = ("huggingface.co", "LocalEntryNotFoundError", "OfflineModeIsEnabled", "URLError", "ConnectError", "ConnectionError", "gaierror", "Name or service not known")
NO_DOWNLOAD = ("memfathom: the script asks the network for a model, a dataset or weights that are not on this machine. A recording needs no weights, only shapes: "
               "fetch the files where there is a network and name their folder; or build the model from its configuration (AutoModel.from_config, weights=None, pretrained=False); "
               "or ask without the script: memfathom estimate --model NAME, or memfathom estimate config.json")
AGAIN = "--unlimited"  # the script is not told that its GPU is full


def parse(words):
    """Options up to the script's name; what follows is the script's."""
    options = {AGAIN: "0", "-o": "step.jsonl.gz", "--iterations": "2", "--world": "1", "--gpu": "{}", "--vary": [], "--assign": []}
    while words and words[0] in options:
        if len(words) < 2:
            raise SystemExit(f"{words[0]} needs a value; {USAGE}")
        if words[0] in SEVERAL:
            options[words[0]].append(words[1])
        else:
            options[words[0]] = words[1]
        words = words[2:]
    is_module = bool(words) and words[0] == "-m"
    words = words[1:] if is_module else words
    if not words:
        raise SystemExit(USAGE)
    return options, is_module, words


def user_traceback(error):
    """The traceback as without a recorder: not the frames that started the script, nor what lies below an operation of PyTorch."""
    told = traceback.TracebackException.from_exception(error)
    part = told
    while part is not None:
        kept = []
        for frame in part.stack:
            if frame.name == "__torch_dispatch__" and frame.filename.startswith(FOLDER):
                break
            if not frame.filename.startswith((FOLDER, "<frozen runpy>")) and "runpy.py" not in frame.filename:
                kept.append(frame)
        part.stack[:] = kept
        part = part.__cause__ or part.__context__
    sys.stderr.write("".join(told.format()))


def is_missing_download(error):
    """Whether the script wanted something from the network that is not on this machine."""
    while error is not None:
        said = f"{type(error).__module__}.{type(error).__name__} {error}"
        if any(word in said for word in NETWORK):
            return True
        error = error.__cause__ or error.__context__
    return False


def main():
    arguments = sys.argv[1:]
    options, is_module, words = parse(arguments)
    warnings.filterwarnings("ignore", "Accessing the data pointer of FakeTensor")  # libraries compare pointers; they are distinct
    logging.getLogger("torch._subclasses.fake_tensor").disabled = True  # the exception that follows says the same
    if options["--vary"]:
        from memfathom.torch import vary_script

        kept = [word for name in ("--iterations", "--world", "--gpu") for word in (name, options[name])]
        os._exit(vary_script.record(options["-o"], kept, options["--vary"], is_module, words))
    world, begin = int(options["--world"]), time.monotonic()
    try:
        from memfathom import torch as recorded
        from memfathom.torch import distributed, script_sizes
    except ImportError as error:
        print(f"PyTorch cannot be imported by {sys.executable}: {error}; name another Python with --python", file=sys.stderr)
        os._exit(3)
    gpu = json.loads(options["--gpu"])
    if "WORLD_SIZE" in os.environ and world == 1:
        world = int(os.environ["WORLD_SIZE"])
    os.environ.update(distributed.environment(world) if world > 1 else {})
    sys.argv = words
    sys.path.insert(0, os.getcwd() if is_module else os.path.dirname(os.path.abspath(words[0])))
    failure, code = None, 0
    with recorded.recording(iterations=int(options["--iterations"]), gpu=gpu, world=world, limited=options[AGAIN] == "0") as result:
        try:
            if options["--assign"]:
                script_sizes.run_with(words[0], options["--assign"])
            else:
                (runpy.run_module if is_module else runpy.run_path)(words[0], run_name="__main__", **({"alter_sys": True} if is_module else {}))
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1 if end.code else 0
            if isinstance(end.code, str):
                print(end.code, file=sys.stderr)
            code = 0 if code and result.outlives(end) else code
        except Exception as error:
            failure = None if result.outlives(error) else error
    sys.stdout.flush()
    if (failure is not None or code) and result.was_full:  # it did not go on with less: what it would take is recorded
        os.execv(sys.executable, [sys.executable, "-m", "memfathom._with_torch", "script", AGAIN, "1", *arguments])
    if failure is not None:
        user_traceback(failure)
        if "nocard" in str(failure):
            print("memfathom: PyTorch's autograd engine looked for a real GPU; it does so for gradients that are DTensors (tensor parallelism), which cannot be recorded without one: "
                  "record one rank's part of the model, or use memfathom capture --live on a GPU", file=sys.stderr)
        if is_missing_download(failure):
            print(NO_DOWNLOAD, file=sys.stderr)
    elif code != 0:
        print(f"{words[0]} ended by itself with exit code {code} after {result.steps} recorded steps", file=sys.stderr)
    else:
        result.write(options["-o"])
    said = {"steps": result.steps, "enough": result.enough, "events": result.events, "operations": result.operations, "allocated_peak_bytes": result.allocated_peak_bytes,
            "seconds": round(time.monotonic() - begin, 1), "failed": failure is not None, "exit": code}
    print(json.dumps(said), file=sys.stderr, flush=True)
    # Threads and libraries of the script are not asked whether they agree.
    os._exit(2 if failure is not None or code else 0)


if __name__ == "__main__":
    main()
