"""Later: the script goes on for a while after the steps that were asked for, to see whether it needs more memory then.

A copy that starts late, a list that keeps graphs, longer sequences, another phase: the first steps do not show them. If
nothing changes, the trace ends with the steps that were asked for. While the script is watched it may not write, delete,
connect or start programs: the first attempt ends the recording.
"""
import os
import sys
import tempfile
import threading
import time

STEPS = 8            # watched before the epoch is cut short
MOST_STEPS = 40      # watched at all
SECONDS = 4.0        # of computing, or half of what the recording took so far
WAITING = 30.0       # seconds by the clock
BATCHES = 2          # of each loader once the epoch is cut short: a validation is seen by its first ones
TOLERANCE = 0.001    # of the peak
LEAST_GROWTH = 1024  # bytes per step that are called growth
LONG_RUN = 10_000    # steps over which growth is added to the upper end of the answer
FORBIDDEN = ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.truncate", "os.system", "subprocess.Popen", "os.posix_spawn", "os.exec")
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
OWN_MACHINE = ("127.0.0.1", "localhost", "::1")
_watched = []  # the recording that is being watched; audit hooks stay for the life of the process


def _is_of_the_system(path):
    path = os.fsdecode(path)
    return path.startswith(("/dev/", "/proc/", "/sys/", tempfile.gettempdir() + os.sep)) or "__pycache__" in path


def _hook(event, arguments):
    if not _watched or event == "sys._getframe":
        return
    later = _watched[0]
    if os.getpid() != later.process or threading.current_thread() is not threading.main_thread():
        return
    if event == "open":
        path, _, flags = arguments
        if isinstance(path, int) or not flags or not flags & WRITES or _is_of_the_system(path):
            return
    elif event == "socket.connect":
        address = arguments[1]
        if not isinstance(address, tuple) or address[0] in OWN_MACHINE:
            return
    elif event not in FORBIDDEN or arguments and isinstance(arguments[0], (str, bytes)) and _is_of_the_system(arguments[0]):
        return
    later.end()


def amount(size):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} bytes"


class Later:
    def __init__(self, recorder, phases, enough):
        self.recorder, self.phases, self.enough = recorder, phases, enough
        self.rounds = []      # of each step: the peak in it, what is left after it, what was fed to it, events so far
        self.stepped = set()  # optimizers that have stepped in this step
        self.begun = self.ended = False
        self.hurried = None   # the step after which epochs are cut short
        self.fetched = {}     # of each loader since then: what was alive at its batches
        self.process, self.start = os.getpid(), time.process_time()

    # Watching

    def after_optimizer(self, optimizer):
        """A step is complete when its first optimizer has stepped: a GAN has two, a new fold a new one."""
        if self.stepped and id(optimizer) not in self.stepped:
            self.stepped.add(id(optimizer))
            return
        recorder, self.stepped = self.recorder, {id(optimizer)}
        self.rounds.append((recorder.crest, recorder.live, recorder.fed, len(recorder.events)))
        recorder.crest, recorder.fed = recorder.live, 0

    def go_on(self):
        """Called before a pass of the script once enough is recorded. Ends the recording when enough was watched."""
        if not self.begun:
            self._begin()
        if self.is_over():
            self.end()

    def _begin(self):
        self.begun, recorder = True, self.recorder
        self.kept = {"events": [dict(e) for e in recorder.events], "guesses": dict(recorder.guesses), "steps": dict(self.phases.steps), "types": dict(recorder.convolution_types)}
        self.asked, self.peak = len(self.rounds), max(crest for crest, _, _, _ in self.rounds)
        now = time.process_time()
        self.deadline, self.limit = now + max(SECONDS, (now - self.start) / 2), time.monotonic() + WAITING
        if not _watched:
            sys.addaudithook(_hook)
        _watched[:] = [self]

    def is_over(self):
        seen = len(self.rounds) - self.asked
        after_epoch = self.hurried is not None and len(self.rounds) > self.hurried
        return self.ended or after_epoch or seen >= MOST_STEPS or time.process_time() > self.deadline or time.monotonic() > self.limit

    def end(self):
        """Ends the recording; should the script catch even this, its next pass ends it again."""
        self.ended = True
        raise self.enough

    def install(self, patches):
        from torch.utils.data.dataloader import _BaseDataLoaderIter

        following = _BaseDataLoaderIter.__next__

        def fetched(iterator):
            if self.begun and threading.current_thread() is threading.main_thread() and self._ends(iterator):
                raise StopIteration
            return following(iterator)

        patches.set(_BaseDataLoaderIter, "__next__", fetched)
        patches.call_at_end(_watched.clear)

    def _ends(self, iterator):
        """Whether a loader is cut short: the one of the epoch after some steps, those of a validation after some batches."""
        if len(self.rounds) - self.asked < STEPS and not self.is_over():
            return False
        if self.hurried is None:
            self.hurried, self.cut = len(self.rounds), iterator
            self.limit, self.deadline = time.monotonic() + WAITING, time.process_time() + max(SECONDS, (self.deadline - self.start) / 4)
        if self.is_over():
            self.end()
        alive = self.fetched.setdefault(id(iterator), (iterator, []))[1]
        alive.append(self.recorder.live)
        return iterator is self.cut or len(alive) > BATCHES

    # What was seen

    def failed(self, error):
        """Whether an error came after the recording proper; it is said, and does not fail the recording."""
        if self.begun and self.hurried is None:
            said = (str(error).strip().splitlines() or [""])[0][:120]
            self._add(f"the script ended with {type(error).__name__}{': ' if said else ''}{said} after {len(self.rounds)} steps; what would follow is not part of the answer")
        return self.begun

    def _add(self, what, size=0):
        self.recorder.guess(what, size)

    def conclude(self):
        """Keeps the largest of the steps that were seen, or those that were asked for if no other needs more."""
        _watched.clear()
        if not self.begun:
            return
        recorder = self.recorder
        recorder.storages.clear()  # their ends come after the trace's
        tail = (recorder.crest, recorder.live, recorder.fed, len(recorder.events))
        later = [*self.rounds[self.asked:], tail]
        largest = max(range(len(later)), key=lambda i: later[i][0])
        needs, end = later[largest][0], later[largest][3]
        if needs <= self.peak * (1 + TOLERANCE):
            said = {what: told for what, told in recorder.guesses.items() if what.startswith("the script ended with")}
            recorder.events, recorder.guesses, recorder.convolution_types = self.kept["events"], self.kept["guesses"] | said, self.kept["types"]
            self.phases.steps, recorder.peak = self.kept["steps"], self.peak
        else:
            recorder.events = list(recorder.events)[:end]
            recorder.peak = needs
            where = f"step {self.asked + largest + 1}" if largest < len(later) - 1 else f"what follows step {len(self.rounds)} (a validation, a new epoch)"
            self._add(f"the memory changes after the first steps: {where} peaks at {amount(needs)} of tensors, the first {self.asked} steps at {amount(self.peak)}; the answer is for the largest that was seen")
        self._say_growth()
        self._say_sizes()
        self._say_end()

    def _say_growth(self):
        alive = [live for _, live, _, _ in self.rounds[self.asked - 1:]]
        growth = [b - a for a, b in zip(alive, alive[1:])]
        last = growth[-max(3, len(growth) // 2):]
        fed = [size for _, _, size, _ in self.rounds[1:]]
        least = max(LEAST_GROWTH, max(fed, default=0) - min(fed, default=0))  # a larger batch is alive too
        if len(last) >= 3 and sum(g >= least for g in last) >= 0.75 * len(last) and sum(last) > 0:
            each = sum(last) // len(last)
            self._add(f"the memory grows with every step, by about {amount(each)}, and was still growing at step {len(self.rounds)}, the last that was recorded: a longer run needs more than this answer, "
                      f"{LONG_RUN} steps {amount(each * LONG_RUN)} more (something keeps tensors: a list of losses or outputs, a graph, a cache)", each * LONG_RUN)
        for loader, seen in self.fetched.values():
            grown = seen[-1] - seen[-2] if len(seen) > 2 else 0
            if grown < LEAST_GROWTH or loader is self.cut:
                continue
            try:
                rest = max(0, len(loader) - BATCHES)
            except TypeError:
                rest = 0
            self._add(f"a loop over a data loader keeps about {amount(grown)} of each batch on the GPU; {BATCHES} batches were recorded" + (f", {rest} more follow" if rest else ""), grown * rest)

    def _say_sizes(self):
        fed = [size for _, _, size, _ in self.rounds[1:] if size]  # the first includes the model
        if fed and max(fed) > 1.01 * min(fed):
            self._add(f"the steps' batches differ in size: from {amount(min(fed))} to {amount(max(fed))} among {len(fed)} steps; a larger one that comes later needs more")

    def _say_end(self):
        self._add(f"what comes after step {len(self.rounds)} of the script is taken to need no more" + (" (the epoch was cut short there)" if self.hurried is not None else ""))
