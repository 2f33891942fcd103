"""The web page in a browser, as a test uses it: open it, change the job, read what it shows, ask the program the same."""
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import tempfile

from webdriver import Browser


AXE = pathlib.Path(__file__).resolve().parents[2] / "build/web/axe/axe.min.js"  # web/fetch-axe


class Page:
    def __init__(self, url, program, pictures, jobs=0):
        self.url = url
        self.program = program
        self.pictures = pictures
        self.jobs = jobs
        self.home = tempfile.mkdtemp(prefix="memfathom-page-")
        self.environment = {"PATH": os.environ["PATH"], "HOME": self.home, "MEMFATHOM_CUDNN_PLANNER": "/nonexistent"}
        self.browser = Browser()
        self.done = []

    def native(self, words, stdin=None):
        """The program's JSON, in an empty home without cuDNN: no database, no cache, fitted workspaces, as in the page."""
        ran = subprocess.run([self.program, *words, "--format", "json"], input=stdin, capture_output=True, text=True, cwd=self.home, check=False,
                             env=self.environment)
        assert ran.returncode in (0, 1), ran.stderr
        return json.loads(ran.stdout)

    def peak(self):
        return int(self.browser.script("return document.getElementById('device-peak').dataset.bytes"))

    def status(self):
        return self.browser.script("return document.getElementById('status').dataset.status")

    def settle(self, action):
        """Does something that changes the job, and waits for its answer."""
        before = self.browser.script("return document.body.dataset.shown ?? ''")
        action()
        self.browser.wait("(document.body.dataset.shown ?? '') !== arguments[0] && !document.getElementById('verdict').classList.contains('stale')", before)

    def set_control(self, key, value):
        self.settle(lambda: self.browser.script(
            "const field = document.getElementById('control-' + arguments[0]);"
            "if (field.tagName === 'SELECT') { field.value = arguments[1]; field.dispatchEvent(new Event('change')); }"
            "else { const number = field.parentElement.querySelector('[type=number]'); number.value = arguments[1]; number.dispatchEvent(new Event('change')); }",
            key, value))

    def choose(self, box, name):
        self.browser.click(f"#{box}-input")
        self.browser.script(f"document.getElementById('{box}-input').value = ''")
        self.settle(lambda: self.browser.type(f"#{box}-input", name + "\ue007"))

    def open(self, fragment=""):
        self.browser.open("about:blank")
        self.browser.open(self.url + fragment)
        self.browser.wait("document.getElementById('device-peak')")

    def drop(self, name, text):
        """A real drop event with a file."""
        self.browser.script("const transfer = new DataTransfer(); transfer.items.add(new File([arguments[1]], arguments[0]));"
                            "document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: transfer, bubbles: true, cancelable: true}));", name, text)

    def fragment(self, state):
        """The link of a state, as the page writes it; of a text, whatever it is."""
        return self.browser.script_async(
            "const done = arguments[1]; const text = typeof arguments[0] === 'string' ? arguments[0] : JSON.stringify(arguments[0]);"
            "const stream = new Blob([text]).stream().pipeThrough(new CompressionStream('deflate-raw'));"
            "new Response(stream).arrayBuffer().then((b) => { let s = ''; for (const c of new Uint8Array(b)) s += String.fromCharCode(c);"
            "done('#1' + btoa(s).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')); });", state)

    def text(self, selector):
        return self.browser.script("return document.querySelector(arguments[0])?.textContent ?? ''", selector)

    def settled(self, seconds=180):
        self.browser.wait("document.body.dataset.settled === document.body.dataset.shown", seconds=seconds)

    def speak(self, language):
        self.browser.script("const field = document.getElementById('language'); field.value = arguments[0]; field.dispatchEvent(new Event('change'));", language)

    def command(self):
        self.browser.click("#export-command")
        self.browser.wait("document.getElementById('export-text').textContent.startsWith('memfathom')")
        return shlex.split(self.browser.script("return document.getElementById('export-text').textContent"))

    def accessible(self):
        """No rule of WCAG 2.1 A and AA that axe-core knows is violated, in the state that the page is in."""
        axe = os.environ.get("MEMFATHOM_AXE") or AXE
        if not pathlib.Path(axe).exists():
            return
        self.browser.script(pathlib.Path(axe).read_text())
        found = self.browser.script_async("const done = arguments[arguments.length - 1]; axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']}).then((r) => done(r.violations.map((v) => [v.id, v.nodes.map((n) => n.html.slice(0, 160) + ' | ' + n.any.map((a) => a.message).join(';'))])));")
        assert found == [], json.dumps(found, indent=1)

    def quiet(self):
        """Nothing was written to the console since the last look."""
        complaints = [entry["message"] for entry in self.browser.log("browser") if entry["level"] in ("SEVERE", "WARNING")]
        assert complaints == [], complaints

    def close(self):
        self.browser.close()
        shutil.rmtree(self.home)
