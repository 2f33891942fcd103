"""What a page may meet: files that are none, links from anybody, models that no page can compute, hands that never rest."""
import json
import pathlib
import time

DATA = pathlib.Path(__file__).resolve().parents[1] / "data/readers"
UNTOUCHED = "return document.querySelectorAll('#answer script, #answer img, #inputs script, #inputs img').length === 0 && ({}).polluted === undefined && document.title.includes('memfathom')"


def layers(count):
    config = json.loads((DATA / "tiny-llama/config.json").read_text())
    return json.dumps({**config, "num_hidden_layers": count})


class HostileChecks:
    def is_refused(self, name, code):
        """Drops the file that `code` makes; the page says why it cannot be read, and goes on with the job that it has."""
        before = self.peak()
        self.browser.script("document.getElementById('drop-problem').hidden = true;"
                            f"const transfer = new DataTransfer(); transfer.items.add(new File([(() => {{ {code} }})()], arguments[0]));"
                            "document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: transfer, bubbles: true, cancelable: true}));", name)
        sentence = self.browser.wait("!document.getElementById('drop-problem').hidden && document.getElementById('drop-problem').textContent", seconds=60)
        assert len(sentence) > 10 and "undefined" not in sentence and "[object" not in sentence, (name, sentence)
        assert self.browser.script(UNTOUCHED), name
        assert self.peak() == before and self.status() != "refused"
        return sentence

    def check_hostile_file(self):
        self.open()
        for name, code in (("config.json", "return '{'.repeat(5000)"), ("deep.json", "return '['.repeat(1000000)"), ("deep.yaml", "return 'a: '.repeat(100000)"),
                           ("x.yaml", "return '<script>document.title = \"taken\"</script>: 1'"), ("<img src=x onerror=alert(1)>.json", "return '{\"model_type\": \"<b>\"}'"),
                           ("noise.json", "return new Uint8Array(100000).map((_, i) => (i * 7919) >> 3)"), ("noise.jsonl", "return new Uint8Array(100000).map((_, i) => (i * 7919) >> 3)"),
                           ("zeros.yaml", "return new Uint8Array(4096)"), ("utf16.json", "return new Uint8Array([255, 254, 123, 0, 125, 0])"), ("latin1.yaml", "return new Uint8Array([0xe9, 0x3a, 0x20, 0xff])"),
                           ("empty.json", "return ''"), ("trace.jsonl.gz", "return new Uint8Array([31, 139, 8, 0, 1, 2, 3])"), ("snapshot.pickle", "return new Uint8Array([128, 4, 99, 111, 115, 10])"),
                           ("../../etc/passwd.jsonl", "return '{}'"), ("__proto__.json", "return '{\"__proto__\": {\"polluted\": 1}}'"),
                           ("large.yaml", "return 'a'.repeat(17 * 2 ** 20)")):
            self.is_refused(name, code)
        self.accessible()
        self.set_control("batch_size", 2)
        assert self.browser.script("return document.getElementById('drop-problem').hidden")

    def check_large_trace(self):
        """A trace of 100 MB, a billion bytes in a packed one, and one beyond the limit: an answer or a sentence, and a page that lives."""
        self.open()
        events = ("const lines = ['{\"schema\": \"memfathom.trace/1\", \"precision\": \"fp32\"}']; for (const iteration of [1, 2]) { lines.push(`{\"op\": \"phase\", \"name\": \"forward\", \"iteration\": ${iteration}}`);"
                  "for (let i = 0; i < 340000; ++i) { const id = iteration * 1000000 + i; lines.push(`{\"op\": \"alloc\", \"id\": ${id}, \"bytes\": ${512 * (1 + i % 97)}, \"phase\": \"forward\", \"iteration\": ${iteration}}`);"
                  "if (i > 50) lines.push(`{\"op\": \"free\", \"id\": ${id - 50}, \"phase\": \"forward\", \"iteration\": ${iteration}}`); } }")
        start = time.monotonic()
        size = self.browser.script(f"{events} window.trace = new File([lines.join('\\n') + '\\n'], 'step.jsonl'); return window.trace.size")
        assert size > 100e6, size
        before = self.browser.script("return document.body.dataset.shown")
        self.browser.script("const transfer = new DataTransfer(); transfer.items.add(window.trace); document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: transfer, bubbles: true, cancelable: true}));")
        self.browser.wait("(document.body.dataset.shown !== arguments[0] && document.body.dataset.shown) || !document.getElementById('drop-problem').hidden", before, seconds=120)
        print(f"  {size / 1e6:.0f} MB of trace: {self.status()} after {time.monotonic() - start:.1f} s; {self.text('#drop-problem')[:200]}")
        assert self.browser.script(UNTOUCHED)
        self.open()
        self.is_refused("beyond.jsonl", "return new Uint8Array(300 * 2 ** 20)")

    def check_hostile_link(self):
        for state in ("", "x" * 40_000_000, "[" * 1_000_000, "null", "[1, 2]", '{"job": {"model": 7}}', '{"job": {"model": {"preset": 5}}, "set": {"target.gpu": [1]}}',
                      '{"job": {"model": {"preset": "gpt2"}}, "set": {"__proto__.polluted": 1, "constructor.prototype.polluted": 1, "training.sequence_length": 64}}',
                      '{"job": {"__proto__": {"polluted": 1}, "model": {"preset": "<img src=x>"}}, "files": [{"name": "<img src=x onerror=alert(1)>", "text": "{}"}]}',
                      '{"job": {"model": {"preset": "gpt2"}}, "command": "rm -rf /", "files": 5, "set": 7}'):
            fragment = self.fragment(state)
            self.browser.open("about:blank")
            self.browser.open(self.url + fragment)
            self.browser.wait("document.getElementById('status')")
            assert self.browser.script(UNTOUCHED), state[:100]
            self.choose("model", "gpt2-medium")  # it still works
            self.set_control("sequence_length", 128)
            assert self.status() != "refused", state[:100]
        for fragment in ("#1hostile", "#1" + "A" * 100_000, "#2abc", "#%F0%9F", "#1____"):
            self.open(fragment)
            assert self.status() in ("does_not_fit", "fits", "tight")

    def check_giants(self):
        """10,000 layers are answered or refused; a job that comes meanwhile does not wait for them."""
        self.open()
        start = time.monotonic()
        before = self.browser.script("return document.body.dataset.shown")
        self.drop("config.json", layers(10_000))
        self.browser.wait("document.body.dataset.shown !== arguments[0] || !document.getElementById('drop-problem').hidden", before, seconds=170)
        print(f"  10,000 layers: {self.status()} after {time.monotonic() - start:.1f} s, {self.text('#device-peak') or self.text('#drop-problem')}")
        start = time.monotonic()
        self.choose("model", "gpt2-medium")
        print(f"  the next job after {time.monotonic() - start:.1f} s")
        assert time.monotonic() - start < 30
        # A job beyond 4 GiB: the sentence says so, or the answer is there; and the next one is answered by a fresh engine.
        self.drop("config.json", layers(2_000_000))
        self.browser.wait("!document.getElementById('drop-problem').hidden || document.getElementById('status').dataset.status === 'refused' || document.querySelector('#files li')", seconds=170)
        print(f"  2,000,000 layers: {self.status()}, {(self.text('#drop-problem') or self.text('#verdict'))[:160]}")
        self.open()
        self.set_control("batch_size", 2)
        assert self.status() != "refused"

    def check_restless(self):
        """Sliders that move 200 times in two seconds: what stands there at the end is the answer to the last position."""
        self.open()
        last = self.browser.script_async(
            "const done = arguments[0]; let n = 0; const sliders = ['batch_size', 'sequence_length', 'lora'].map((key) => document.getElementById('control-' + key));"
            "const tick = () => { const slider = sliders[n % 3]; slider.value = (n * 7) % 12; slider.dispatchEvent(new Event('input')); if (++n < 200) setTimeout(tick, 10); else done(true); }; tick();")
        assert last
        self.browser.wait("!document.getElementById('verdict').classList.contains('stale')")
        answer = self.native(self.command()[1:])
        assert self.peak() == answer["totals"]["device_peak_bytes"]

    def check_keyboard(self):
        """The whole way without a pointer: a model, a slider, the advice, the timeline; every stop has a name."""
        self.open()
        nameless = self.browser.script(
            "return [...document.querySelectorAll('button, input, select, textarea, a[href], summary, [tabindex=\"0\"]')].filter((e) => e.offsetParent !== null)"
            ".filter((e) => !(e.getAttribute('aria-label') || e.labels?.length || e.textContent.trim())).map((e) => e.outerHTML.slice(0, 120))")
        assert nameless == [], nameless
        self.tab_to("#model-input")
        self.settle(lambda: self.browser.keys("gpt2-medium\ue007"))
        assert self.browser.script("return document.getElementById('model-input').value") == "gpt2-medium"
        self.tab_to("#control-batch_size")
        before = self.peak()
        self.settle(lambda: self.browser.keys("\ue014"))  # arrow right
        assert self.peak() > before
        self.open()
        self.browser.wait("document.querySelector('#advice [data-patch=combination]')", seconds=120)
        self.tab_to("#advice [data-patch=combination]")
        self.settle(lambda: self.browser.keys("\ue007"))
        assert self.status() in ("fits", "tight")
        self.tab_to("#timeline svg")
        self.browser.keys("\ue014")
        assert "GiB" in self.text("#timeline .card")
        outline = self.browser.script("const style = getComputedStyle(document.activeElement); return style.outlineStyle + style.outlineWidth")
        assert outline == "solid2px", outline

    def tab_to(self, selector):
        for _ in range(120):
            if self.browser.script("return document.activeElement.matches(arguments[0])", selector):
                return
            self.browser.keys("\ue004")
        raise AssertionError(f"{selector} was not reached with Tab")
