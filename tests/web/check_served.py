#!/usr/bin/env python3
"""check_served.py MEMFATHOM FAKE_NVML SCREENSHOTS: the page of `memfathom serve` in a real browser: the answers of the page that stands
alone, this machine's GPUs as charts that move, its calibrations, a token, and no request to anywhere else. Without a GPU here, the
program's own loader is given the tests' double of NVIDIA's management library (FAKE_NVML)."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from page import Page  # noqa: E402

GIB = 2 ** 30
TOKEN = "0123456789abcdef0123"


class Served:
    """`memfathom serve` on a free port, in the home of a page."""

    def __init__(self, page, *options, **environment):
        self.process = subprocess.Popen([page.program, "serve", "--port", "0", "--quiet", *options], stdout=subprocess.PIPE, text=True, env={**page.environment, **environment})
        self.url = re.match(r"http://(.*):(\d+)/", self.process.stdout.readline()).group(0).replace("0.0.0.0", "127.0.0.1")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def check_answers(page):
    """What the page says is what the program says, also of a file and of an advice."""
    page.open()
    words = ["estimate", "--model", "llama-2-7b", "--batch-size", "4", "--sequence-length", "2048", "--dtype", "bf16", "--lora-rank", "16", "--gpu", "rtx-4090"]
    assert page.peak() == page.native(words)["totals"]["device_peak_bytes"]
    page.settled()
    page.settle(lambda: page.browser.click("#advice [data-patch=combination]"))
    assert page.status() in ("fits", "tight")
    page.set_control("sequence_length", 1024)
    assert page.peak() == page.native(page.command()[1:])["totals"]["device_peak_bytes"]
    page.settle(lambda: page.drop("job.yaml", "model: {preset: gpt2}\ntraining: {batch_size: 2, sequence_length: 128}\ntarget: {gpu: rtx-4090}\n"))
    assert page.status() == "fits"
    page.drop("step.jsonl", "{}")
    assert "stands alone" in page.browser.wait("document.getElementById('drop-problem').textContent")


def check_without_gpu(page):
    page.open()
    page.browser.wait("document.getElementById('live-calibrations').textContent")
    shown = page.text("#live-section")
    status = page.native(["status"])
    assert "No GPU was found" in shown and status["notes"][0].replace("no GPU: ", "") in shown, shown
    assert "virtual:h100-80gb/memfathom" not in shown and "published calibrations" in shown, shown
    page.accessible()
    page.browser.screenshot(page.pictures / "served-no-gpu.png")


def used(page, device):
    return page.browser.script("const title = document.querySelector(`[data-device='${arguments[0]}']`); return title === null ? null : Number(title.parentElement.querySelector('.used [data-bytes]').dataset.bytes)", device)


def check_machine(page, processes):
    """Two GPUs whose use grows: the chart follows, the process is named, and the GPU's free memory can be the target."""
    page.open()
    page.browser.wait("document.querySelectorAll('.machine-gpu').length === 2")
    assert "NVIDIA H100 80GB HBM3" in page.text(".machine-gpu h3")
    for gib in (20, 35, 50):
        processes.write_text(f"7 {gib * 1024} 0\n4242 1024 0\n")
        page.browser.wait("Number(document.querySelector('.used [data-bytes]').dataset.bytes) === arguments[0]", (3 + gib + 1) * GIB, seconds=20)
    points = page.browser.script("const path = document.querySelector('.machine-gpu .curve').getAttribute('d'); return path.slice(1).split('L').map((point) => point.split(' ').map(Number))")
    assert len(points) >= 3 and points[-1][1] < points[0][1], points  # higher on the screen is more
    assert all(a[0] <= b[0] for a, b in zip(points, points[1:])), points
    assert "python" in page.text(".machine-gpu table") and "50.00 GiB" in page.text(".machine-gpu table")
    assert used(page, "cuda:1") == 54 * GIB
    page.accessible()
    page.speak("zh")
    page.browser.wait("document.getElementById('live').textContent.includes('上的进程') && document.querySelectorAll('#live-calibrations td').length > 0", seconds=20)
    page.browser.screenshot(page.pictures / "served-chinese.png")
    page.speak("en")
    rows = page.browser.script("return [...document.querySelectorAll('#live-calibrations tbody tr')].map((row) => row.firstChild.textContent)")
    own = [one["name"] for one in page.native(["calibrations", "list"])["calibrations"] if one["status"] != "published"]
    assert rows == own and own, (rows, own)
    page.settle(lambda: page.browser.click(".machine-gpu button"))
    answer = page.native(page.command()[1:])
    assert page.peak() == answer["totals"]["device_peak_bytes"] and page.status() == answer["verdict"]["status"] == "does_not_fit", answer["verdict"]
    page.settled()
    page.browser.screenshot(page.pictures / "served-gpus.png")
    page.browser.resize(390, 844)
    page.browser.prefer("dark")
    page.browser.wait("document.documentElement.scrollWidth <= 390")
    time.sleep(2.5)
    page.browser.screenshot(page.pictures / "served-390.png")
    page.accessible()
    page.browser.prefer("light")
    page.browser.resize(1280, 1000)


def check_requests(page, url):
    """The page asked the server that it came from, and nobody else."""
    asked = set()
    for entry in page.browser.log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            asked.add(message["params"]["request"]["url"])
    foreign = {one for one in asked if not one.startswith((url, "blob:", "data:", "about:", "chrome"))}
    assert asked and not foreign, foreign


def main():
    program, double, pictures = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), pathlib.Path(sys.argv[3])
    if shutil.which("chromedriver") is None:
        print("left out: chromedriver is not installed (Debian: chromium-driver)")
        return 77
    pictures.mkdir(parents=True, exist_ok=True)
    page = Page("", program, pictures)
    try:
        with Served(page, "--time-limit", "120") as served:
            page.url = served.url
            check_without_gpu(page)
            check_answers(page)
            page.quiet()
            check_requests(page, served.url)
            page.browser.open("about:blank")  # the page would go on asking a server that is gone
        subprocess.run([program, "calibrate", "--device", "virtual:h100-80gb", "--plan", "quick", "--filter", "mlp", "--quiet"], env=page.environment, capture_output=True, check=False)
        processes = pathlib.Path(page.home, "processes")
        processes.write_text("7 10240 0\n")
        with Served(page, "--time-limit", "120", MEMFATHOM_NVML=double, MEMFATHOM_FAKE_CARDS="2", MEMFATHOM_FAKE_PLACE="host", MEMFATHOM_FAKE_NAME="NVIDIA H100 80GB HBM3",
                    MEMFATHOM_FAKE_PROCESSES=str(processes)) as served:
            page.url = served.url
            check_machine(page, processes)
            page.quiet()
            check_requests(page, served.url)
            page.browser.open("about:blank")  # the page would go on asking a server that is gone
        with Served(page, "--host", "0.0.0.0", MEMFATHOM_TOKEN=TOKEN) as served:
            page.url = f"{served.url}?token={TOKEN}"
            page.open()
            page.url = served.url
            page.browser.open("about:blank")
            page.browser.open(served.url)
            assert "token" in page.browser.wait("document.getElementById('status') && document.getElementById('verdict').textContent")
    finally:
        page.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
