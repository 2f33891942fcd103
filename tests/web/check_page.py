#!/usr/bin/env python3
"""check_page.py PAGE MEMFATHOM SCREENSHOTS [JOBS]: the page in a real browser (Debian's chromium, headless): it loads, reads every
kind of file, follows sliders, applies advice, round-trips its link, speaks Chinese, has a dark side and a narrow one, and shows
what the program says. No request may leave it and nothing may be written to its console.

Where web/fetch-axe has fetched axe-core (or MEMFATHOM_AXE names its axe.min.js), its rules of WCAG 2.1 A and AA are checked in every
state of the page."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from export_checks import ExportChecks  # noqa: E402
from hostile_checks import HostileChecks  # noqa: E402
from page import Page  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests/data/readers"
OOM = ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB of which 1.00 GiB is "
       "free. Including non-PyTorch memory, this process has 22.60 GiB memory in use. Of the allocated memory 20.00 GiB is allocated by PyTorch, "
       "and 2.00 GiB is reserved by PyTorch but unallocated.")
# Two allocations in a step, as memfathom.trace/1.
TRACE = [{"schema": "memfathom.trace/1", "precision": "fp32"}] + [event for iteration in (1, 2) for event in (
    {"op": "phase", "name": "forward", "iteration": iteration}, {"op": "alloc", "id": 2 * iteration, "bytes": 64 << 20, "phase": "forward", "iteration": iteration},
    {"op": "alloc", "id": 2 * iteration + 1, "bytes": 32 << 20, "phase": "forward", "iteration": iteration},
    {"op": "free", "id": 2 * iteration + 1, "phase": "backward", "iteration": iteration}, {"op": "free", "id": 2 * iteration, "phase": "backward", "iteration": iteration})]


ALL = ("loads sliders timeline advice link files config oom trace hostile_file hostile_link chinese dark narrow keyboard exports equals_the_program "
       "stays_responsive restless quiet axe large_trace giants")


class PageCheck(ExportChecks, HostileChecks, Page):
    def check(self, name):
        start = time.monotonic()
        getattr(self, f"check_{name}")()
        self.done.append(name)
        print(f"  {name}: {time.monotonic() - start:.1f} s", flush=True)

    # What the page must do, in the order in which it is checked.

    def check_loads(self):
        self.open()
        timing = self.browser.script("return [performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd, Number(document.body.dataset.firstAnswer)]")
        print(f"  first answer {timing[1]:.0f} ms after the start of navigation, {timing[1] - timing[0]:.0f} ms after the page was loaded")
        answer = self.native(["estimate", "--model", "llama-2-7b", "--batch-size", "4", "--sequence-length", "2048", "--dtype", "bf16", "--lora-rank", "16", "--gpu", "rtx-4090"])
        assert self.peak() == answer["totals"]["device_peak_bytes"]
        assert self.status() == answer["verdict"]["status"]
        self.browser.wait("document.querySelectorAll('#advice [data-patch]').length > 3", seconds=90)
        self.browser.wait("document.body.dataset.settled", seconds=180)
        self.browser.screenshot(self.pictures / "page-light.png")

    def check_sliders(self):
        before = self.peak()
        self.settle(lambda: self.browser.script(
            "const slider = document.getElementById('control-batch_size'); slider.focus(); slider.value = 0; slider.dispatchEvent(new Event('input'));"))
        assert self.peak() < before
        self.set_control("gradient_checkpointing", "full")
        answer = self.native(["estimate", "--model", "llama-2-7b", "--batch-size", "1", "--sequence-length", "2048", "--dtype", "bf16", "--lora-rank", "16", "--gpu", "rtx-4090",
                              "--set", "training.gradient_checkpointing=full"])
        assert self.peak() == answer["totals"]["device_peak_bytes"]
        for sharding in ("ZeRO-3", "FSDP", "FSDP hybrid", "none"):
            self.set_control("num_gpus", 4)
            self.set_control("sharding", sharding)
            assert self.status() != "refused", sharding
        self.set_control("lora", 0)
        assert self.status() == "does_not_fit"

    def check_timeline(self):
        size = self.browser.script("const box = document.querySelector('#timeline svg').getBoundingClientRect(); return [box.left + box.width / 2, box.top + 100]")
        self.browser.script("document.querySelector('#timeline svg').dispatchEvent(new PointerEvent('pointermove', {clientX: arguments[0], clientY: arguments[1]}))", *size)
        assert "GiB" in self.browser.script("return document.querySelector('#timeline .card').textContent")
        words = self.browser.script("const chart = document.querySelector('#timeline svg'); chart.focus(); const read = () => document.querySelector('#timeline .card').textContent;"
                                    "const key = (name) => chart.dispatchEvent(new KeyboardEvent('keydown', {key: name})); key('Home'); const first = read(); key('End'); return [first, read()];")
        assert words[0] != words[1]

    def check_advice(self):
        self.open()
        self.browser.wait("document.querySelector('#advice [data-patch=combination]')", seconds=120)
        self.settle(lambda: self.browser.click("#advice [data-patch=combination]"))
        assert self.status() in ("fits", "tight")
        assert self.browser.script("return document.getElementById('control-gradient_checkpointing').value") == "full"
        self.settle(lambda: self.browser.click("#applied button"))
        assert self.status() == "does_not_fit"

    def check_link(self):
        self.set_control("sequence_length", 512)
        self.browser.wait("location.hash.length > 20")
        peak, fragment = self.peak(), self.browser.script("return location.hash")
        self.open(fragment)
        assert self.peak() == peak
        assert self.browser.script("return document.querySelector('#control-sequence_length').parentElement.querySelector('[type=number]').value") == "512"
        self.open("#1hostile")
        assert self.status() in ("does_not_fit", "fits", "tight")

    def check_files(self):
        config = (DATA / "tiny-llama/config.json").read_text()
        kinds = {"config.json": config, "axolotl.yaml": (DATA / "axolotl.yaml").read_text(), "job.yaml": (ROOT / "examples/llama-2-7b-lora.yaml").read_text(),
                 "train.sh": "torchrun --nproc_per_node 2 train.py --model_name_or_path gpt2 --per_device_train_batch_size 3 --bf16 --output_dir out\n"}
        for name, text in kinds.items():
            self.open()
            self.settle(lambda: self.drop(name, text))
            assert self.status() != "refused", (name, self.browser.script("return document.getElementById('verdict').textContent"))
            assert self.browser.script("return document.querySelectorAll('#files li').length") == 1, name
        for name in ("deepspeed.json", "accelerate.yaml", "training_args.json"):
            self.open()
            before = self.peak()
            self.settle(lambda: self.drop(name, (DATA / name).read_text()))
            assert self.status() != "refused", (name, self.browser.script("return document.getElementById('verdict').textContent"))
            assert self.peak() != before, name
            assert self.browser.script("return document.getElementById('model-input').value") == "llama-2-7b", name

    def check_config(self):
        """A dropped config.json, then another length: the program says the same of the same file."""
        self.open()
        self.settle(lambda: self.drop("config.json", (DATA / "tiny-llama/config.json").read_text()))
        self.set_control("sequence_length", 256)
        shutil.copy(DATA / "tiny-llama/config.json", self.home)
        command = self.command()
        assert command[:2] == ["memfathom", "estimate"]
        answer = self.native(command[1:])
        assert self.peak() == answer["totals"]["device_peak_bytes"], command

    def check_oom(self):
        self.open()
        self.drop("train.log", OOM)
        self.browser.wait("!document.getElementById('oom').hidden")
        self.settle(lambda: self.browser.click("#oom-use"))
        assert "23.69 GiB" in self.browser.script("return document.getElementById('gpu-input').value")
        self.browser.script("document.getElementById('paste').value = arguments[0]", OOM)
        self.browser.script("document.getElementById('paste-box').open = true")
        self.browser.click("#read-paste")

    def check_trace(self):
        self.open()
        text = "\n".join(json.dumps(event) for event in TRACE) + "\n"
        self.settle(lambda: self.drop("step.jsonl", text))
        pathlib.Path(self.home, "step.jsonl").write_text(text)
        answer = self.native(["estimate", "--set", "model.trace=step.jsonl", "--gpu", "rtx-4090"])
        assert self.peak() == answer["totals"]["device_peak_bytes"]

    def check_chinese(self):
        self.open()
        self.speak("zh")
        text = self.browser.script("return document.body.innerText")
        assert "放不下" in text and "激活值" in text and "优化器" in text
        assert "每条 2048 个 token" in text and "rank 为 16 的 LoRA" in text
        english = self.browser.script("return [...document.querySelectorAll('#remarks li')].map((e) => e.textContent).filter((t) => /[a-z]+ [a-z]+ [a-z]+ [a-z]+/.test(t))")
        assert english == [], english
        assert self.browser.script("return document.documentElement.lang") == "zh-CN"
        self.browser.wait("document.body.dataset.settled", seconds=180)
        self.browser.screenshot(self.pictures / "page-chinese.png")

    def check_dark(self):
        self.browser.prefer("dark")
        self.open()
        assert self.browser.script("return getComputedStyle(document.body).backgroundColor") == "rgb(16, 19, 23)"
        self.browser.wait("document.body.dataset.settled", seconds=180)
        self.browser.screenshot(self.pictures / "page-dark.png")
        self.accessible()
        self.browser.click("#theme")
        assert self.browser.script("return getComputedStyle(document.body).backgroundColor") == "rgb(244, 245, 247)"
        self.browser.prefer("light")

    def check_narrow(self):
        self.browser.resize(390, 844)
        self.open()
        self.browser.wait("document.body.dataset.settled", seconds=180)
        assert self.browser.script("return document.documentElement.scrollWidth") <= 390
        self.browser.screenshot(self.pictures / "page-390.png")
        self.browser.resize(1280, 1000)

    def check_axe(self):
        """Every state of the page, in both languages and both colours."""
        for scheme in ("light", "dark"):
            self.browser.prefer(scheme)
            for language in ("en", "zh"):
                self.open()
                self.speak(language)
                self.settled()
                self.browser.script("for (const details of document.querySelectorAll('details')) details.open = true")
                self.accessible()  # with advice
                self.settle(lambda: self.browser.click("#advice [data-patch=combination]"))
                self.browser.click("#export-command")
                self.settled()
                self.accessible()  # applied, and it fits
                self.browser.click("#gpu-input")
                self.accessible()  # a list is open
                self.drop("train.log", OOM)
                self.browser.wait("!document.getElementById('oom').hidden")
                self.drop("nothing.json", "{")
                self.browser.wait("!document.getElementById('drop-problem').hidden")
                self.accessible()  # an error message, and a file that is none
                self.browser.script("location.hash = arguments[0]", self.fragment({"job": {"model": {"preset": "gpt2"}}}))
                self.browser.wait("document.getElementById('status').dataset.status === 'refused'")
                self.accessible()  # a job that cannot be answered
        self.browser.resize(390, 844)
        self.open()
        self.settled()
        self.accessible()
        self.browser.resize(1280, 1000)
        self.browser.prefer("light")

    def check_equals_the_program(self):
        """What stands in the page for so many jobs is what the program prints: totals, verdict, every component."""
        lines = subprocess.check_output([sys.executable, str(pathlib.Path(__file__).parent / "make_jobs.py"), self.program, str(2 * self.jobs)], text=True).splitlines()
        pathlib.Path(self.home, "jobs.jsonl").write_text("\n".join(lines))
        printed = subprocess.run([self.program, "estimate", "--batch", "jobs.jsonl", "--format", "json"], capture_output=True, text=True, cwd=self.home, check=False,
                                 env=self.environment).stdout.splitlines()
        answered = [(json.loads(line), json.loads(answer)) for line, answer in zip(lines, printed) if '"memfathom.estimate/1"' in answer][:self.jobs]
        assert len(answered) == self.jobs
        self.open()
        for job, answer in answered:
            job.pop("id")
            fragment = self.fragment({"job": job, "files": [], "command": None, "set": {}})
            self.settle(lambda: self.browser.script("location.hash = arguments[0]", fragment))
            shown = self.browser.script(
                "const bytes = (id) => Number(document.getElementById(id).dataset.bytes);"
                "return {device: bytes('device-peak'), reserved: bytes('reserved-peak'), allocated: bytes('allocated-peak'), status: document.getElementById('status').dataset.status,"
                "components: [...document.querySelectorAll('#components [data-component]')].map((e) => [e.dataset.component, Number(e.closest('tr').querySelector('[data-bytes]').dataset.bytes)])}")
            totals = answer["totals"]
            expected = {"device": totals["device_peak_bytes"], "reserved": totals["reserved_peak_bytes"], "allocated": totals["allocated_peak_bytes"], "status": answer["verdict"]["status"]}
            assert {key: shown[key] for key in expected} == expected, (job, shown, expected)
            assert sorted(map(tuple, shown["components"])) == sorted((one["name"], one["bytes"]) for one in answer["components"]), job

    def check_stays_responsive(self):
        """The longest pause of the page while a slider moves: the work is in a worker."""
        self.open()
        pause = self.browser.script_async(
            "const done = arguments[0]; let last = performance.now(), worst = 0, n = 0; const slider = document.getElementById('control-sequence_length');"
            "const tick = () => { const now = performance.now(); worst = Math.max(worst, now - last); last = now;"
            "slider.value = 10 + (n % 10); slider.dispatchEvent(new Event('input')); if (++n < 40) setTimeout(tick, 25); else done(worst); }; tick();")
        print(f"  longest pause {pause:.0f} ms")
        assert pause < 1000, pause
        self.browser.wait("!document.getElementById('verdict').classList.contains('stale')")

    def check_quiet(self):
        """Nothing went over the network, and the console stayed empty."""
        requests = set()
        for entry in self.browser.log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                if not url.startswith(("blob:", "data:", "about:", "chrome", "file:")):
                    requests.add(url)
        assert not requests, requests
        self.quiet()
        blocked = self.browser.script_async("const done = arguments[0]; fetch('http://127.0.0.1:9/').then(() => done('sent'), (error) => done(String(error)));")
        assert "Failed to fetch" in blocked
        assert any("Content Security Policy" in entry["message"] for entry in self.browser.log("browser")), "fetch was not refused by the policy"


def main():
    page, program, pictures = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    jobs = int(sys.argv[4]) if len(sys.argv) > 4 else 50
    if not page.exists():
        print(f"left out: there is no {page}; scripts/build-web makes it")
        return 77
    if shutil.which("chromedriver") is None:
        print("left out: chromedriver is not installed (Debian: chromium-driver)")
        return 77
    pictures.mkdir(parents=True, exist_ok=True)
    check = PageCheck(page.resolve().as_uri(), os.path.abspath(program), pictures, jobs)
    failed = False
    try:
        names = os.environ.get("MEMFATHOM_PAGE_CHECKS", ALL).split()
        for name in names:
            try:
                check.check(name)
            except (AssertionError, RuntimeError) as error:
                failed = True
                print(f"  {name}: FAILED: {error!r}", flush=True)
    finally:
        check.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
