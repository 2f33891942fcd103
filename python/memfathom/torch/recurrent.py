"""Recurrent layers as cuDNN runs them: one call, whose reserve lives until backward.

cuDNN does not publish the reserve's size. Taken here: per layer, direction and step the gates and two states of every
hidden unit, and a byte per unit for dropout between layers. Each recording that uses it says so.
"""
import torch

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


class _CudnnRnn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, plan, x, weights_count, *tensors):
        ctx.plan, ctx.weights_count = plan, weights_count
        out = x.new_empty(plan["out"])
        states = tuple(x.new_empty(plan["state"]) for _ in range(plan["states"]))
        reserve = plan["recorder"].empty((plan["reserve"],), torch.uint8, "cudnn_rnn", call={"rnn": plan["call"]}) if plan["train"] else None
        ctx.save_for_backward(x, out, *tensors, *([reserve] if reserve is not None else []))
        return (out, *states)

    @staticmethod
    def backward(ctx, *_):
        x, _, *tensors = ctx.saved_tensors
        tensors = tensors[: ctx.weights_count + ctx.plan["states"]]
        return (None, torch.empty_like(x), None, *(torch.empty_like(t) if t.requires_grad else None for t in tensors))


def recurrent_for(recorder, kind, plain):
    """A stand-in for torch._VF.KIND; `plain` is PyTorch's own."""
    def run(*args):
        if not isinstance(args[3], bool):  # packed: (data, batch_sizes, hx, weights, ...)
            packed, (data, sizes, state, weights), (bias, layers, dropout, train, both) = True, args[:4], args[4:9]
            batch_first, steps, batch = False, int(data.shape[0]), 1
        else:
            packed, (data, state, weights), (bias, layers, dropout, train, both, batch_first) = False, args[:3], args[3:9]
            steps, batch = data.shape[0], data.shape[1]
        if data.device.type != "cuda" or data.dim() != (2 if packed else 3):
            return plain(*args)
        states = list(state) if isinstance(state, (tuple, list)) else [state]
        directions, hidden, width = 2 if both else 1, states[0].shape[-1], states[0].shape[-1]
        units = layers * directions * steps * batch * hidden
        reserve = units * (GATES[kind] + 2) * data.element_size()
        if dropout and layers > 1:
            reserve += (layers - 1) * directions * steps * batch * hidden
        recorder.guess(f"{kind}: the size of cuDNN's reserve is an approximation", reserve if train else 0)
        call = {"kind": kind, "layers": layers, "directions": directions, "units": hidden, "steps": steps * batch}
        plan = {"recorder": recorder, "out": (*data.shape[:-1], width * directions), "state": tuple(states[0].shape), "states": len(states), "reserve": reserve,
                "train": bool(train) and torch.is_grad_enabled(), "call": call}
        out = _CudnnRnn.apply(plan, data, len(weights), *weights, *states)
        return out

    return run
