"""Phases: where forward, backward and step begin, told by PyTorch's own hooks; and when enough has been recorded."""
import torch
from torch.optim import optimizer as optimizers
from torch.utils._pytree import tree_leaves

from .later import Later
from .recorder import on_gpu

MAX_LOOK_BACK = 2000  # events before a forward pass in which its inputs are looked for
PATIENCE = 5          # times more steps than asked for, if an optimizer does not step at all


OTHER_OPTIMIZER = "no optimizer of torch.optim was made: the recording counts backward passes instead of steps, and does not see which of them belong to one step"


class Enough(BaseException):
    """As many steps as were asked for are recorded."""


class Phases:
    def __init__(self, recorder, iterations, stop):
        self.recorder, self.iterations, self.stop = recorder, iterations, stop
        self.steps = {}  # of each optimizer, by its id
        self.names, self.outer, self.in_engine, self.in_step = {}, [], 0, 0
        self.passes = 0  # backward ones
        self.later = Later(recorder, self, Enough)

    def enter(self, phase, inputs=()):
        """A forward pass begins where the first of its inputs came to the GPU."""
        recorder = self.recorder
        if recorder.phase == phase:
            return
        events, at = recorder.events, len(recorder.events)
        mine = {id(known[3]) for t in inputs if on_gpu(t) for known in recorder.known(t)}
        for i in range(len(events) - 1, max(-1, len(events) - MAX_LOOK_BACK), -1):
            if events[i]["op"] == "phase":
                break
            if id(events[i]) in mine and events[i].get("tag") == "inputs":
                at = i
        for event in events[at:]:
            event["phase"] = phase
        events.insert(at, {"op": "phase", "name": phase, "steps": dict(self.steps)})
        recorder.phase = phase

    def is_enough(self):
        counts = self.steps.values()
        if not counts and self.passes >= PATIENCE * self.iterations:
            self.recorder.guesses.setdefault(OTHER_OPTIMIZER, (1, 0))
            return True
        if not counts or max(counts) < self.iterations:
            return False
        return min(counts) >= self.iterations or max(counts) >= PATIENCE * self.iterations

    def stop_if_enough(self):
        if self.stop and not self.in_step and self.is_enough():
            self.later.go_on()

    def iteration_of(self, event):
        """Complete once every optimizer that steps at all has stepped once more."""
        if event["name"] == "load":
            return 0
        if "call" in event:
            return event["call"]
        stepping = [key for key, count in self.steps.items() if count]
        return min((event.get("steps", {}).get(key, 0) for key in stepping), default=0) + 1

    # Hooks

    def before_forward(self, module, args, kwargs):
        recorder = self.recorder
        if not self.in_engine and not self.outer:
            self.before_outermost(module, args, kwargs)
        self.outer.append(recorder.module)
        recorder.module = self.names.get(module, recorder.module)

    def before_outermost(self, module, args, kwargs):
        recorder = self.recorder
        self.stop_if_enough()
        if module not in self.names:
            for name, part in module.named_modules():
                self.names.setdefault(part, name or type(module).__name__)
            recorder.tag(module.buffers(), "buffers")
            recorder.tag(module.parameters(), "parameters")
        if recorder.phase == "forward" and torch.is_grad_enabled():
            return
        self.enter("forward" if torch.is_grad_enabled() else "evaluate", tree_leaves((args, kwargs)))

    def after_forward(self, module, args, output):
        self.recorder.module = self.outer.pop() if self.outer else ""

    def made_optimizer(self, optimizer):
        self.steps.setdefault(id(optimizer), 0)

    def before_step(self, optimizer, args, kwargs):
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        self.recorder.tag((p.grad for p in parameters if p.grad is not None), "gradients")
        self.recorder.tag((p for p in parameters if on_gpu(p) and not self.is_tagged(p)), "parameters")
        self.enter("step")
        self.in_step += 1
        self.steps.setdefault(id(optimizer), 0)

    def is_tagged(self, tensor):
        return any("tag" in known[3] for known in self.recorder.known(tensor))

    def after_step(self, optimizer, args, kwargs):
        self.in_step -= 1
        self.steps[id(optimizer)] += 1
        self.recorder.asked.clear()
        self.later.after_optimizer(optimizer)
        states = (t for state in optimizer.state.values() if isinstance(state, dict) for t in state.values() if isinstance(t, torch.Tensor))
        self.recorder.tag((t for t in states if not self.is_tagged(t)), "optimizer_state")

    def _after_backward(self):
        self.passes += 1
        if not self.steps:
            self.later.after_optimizer(self)

    def install(self, patches):
        call, engine, make = torch.nn.Module._call_impl, torch.autograd.graph._engine_run_backward, torch.optim.Optimizer.__init__

        def called(module, *args, **kwargs):
            self.before_forward(module, args, kwargs)
            return call(module, *args, **kwargs)

        def backward(*args, **kwargs):
            if not self.in_engine:
                self.stop_if_enough()
                self.enter("backward")
            self.in_engine += 1
            try:
                return engine(*args, **kwargs)
            finally:
                self.in_engine -= 1
                if not self.in_engine:
                    self._after_backward()

        def made(optimizer, *args, **kwargs):
            make(optimizer, *args, **kwargs)
            if type(optimizer).__module__.startswith("torch.") or torch.optim.Optimizer in type(optimizer).__bases__:
                self.made_optimizer(optimizer)

        self.later.install(patches)
        patches.set(torch.nn.Module, "_call_impl", called)
        patches.set(torch.optim.Optimizer, "__init__", made)
        patches.set(torch.autograd, "_engine_run_backward", backward)
        patches.set(torch.autograd.graph, "_engine_run_backward", backward)
        for handle in (torch.nn.modules.module.register_module_forward_hook(self.after_forward, always_call=True),
                       optimizers.register_optimizer_step_pre_hook(self.before_step), optimizers.register_optimizer_step_post_hook(self.after_step)):
            patches.call_at_end(handle.remove)
