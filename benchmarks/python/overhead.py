"""What Python costs: importing the package, and a question above the C interface.

PYTHONPATH=python MEMFATHOM_LIBRARY=build/release/lib/libmemfathom.so.0 python3 benchmarks/python/overhead.py

Prints CPU milliseconds, the median of many runs; a busy machine changes CPU time far less than wall time.
"""

import json
import resource
import statistics
import subprocess
import sys
import time

from memfathom import Session, _library
from memfathom._jobs import request

JOB = {
    "model": {"preset": "gpt2"},
    "training": {"sequence_length": 256, "batch_size": 2},
    "target": {"gpu": "rtx-4090"},
}


def cpu_of_process(code: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def cpu_of(call) -> float:
    start = time.thread_time()
    call()
    return 1e3 * (time.thread_time() - start)


def median(measure, repetitions: int) -> float:
    return statistics.median(measure() for _ in range(repetitions))


def main() -> None:
    bare = median(lambda: cpu_of_process("pass"), 20)
    imported = median(lambda: cpu_of_process("import memfathom"), 20)
    with Session(db=None, live_gpus=False) as session:
        text = request(JOB, {}, {})
        session.estimate(JOB)
        # Both kinds of call alternate, so that whatever else the machine does meets both.
        pairs = [
            (
                cpu_of(lambda: session.estimate(JOB)),
                cpu_of(lambda: _library.ask("estimate", session._handle, text)),
            )
            for _ in range(200)
        ]
    print(
        json.dumps(
            {
                "import_ms": round(imported - bare, 2),
                "estimate_ms": round(statistics.median(one for one, _ in pairs), 3),
                "above_c_api_ms": round(statistics.median(one - other for one, other in pairs), 3),
            }
        )
    )


if __name__ == "__main__":
    main()
