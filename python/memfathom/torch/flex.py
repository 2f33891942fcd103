"""flex_attention as its compiled kernel runs: the output and a logsumexp per row, no matrix of scores."""
import torch
from torch._subclasses.fake_tensor import FakeTensor


class _Flex(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        out = q.new_empty(*q.shape[:-1], v.shape[-1])
        logsumexp = q.new_empty(q.shape[:-1], dtype=torch.float32)
        ctx.save_for_backward(q, k, v, out, logsumexp)
        ctx.mark_non_differentiable(logsumexp)
        return out, logsumexp

    @staticmethod
    def backward(ctx, gradient, _):
        q, k, v, out, logsumexp = ctx.saved_tensors
        delta = torch.empty_like(logsumexp)  # rows of out times their gradients
        gradients = tuple(torch.empty_like(t) for t in (q, k, v))
        del delta
        return gradients


def flex_for(recorder, plain):
    """A stand-in for torch.nn.attention.flex_attention.flex_attention; `plain` is PyTorch's own."""
    def flex_attention(query, key, value, score_mod=None, block_mask=None, scale=None, enable_gqa=False, return_lse=False, kernel_options=None, *, return_aux=None, **options):
        if not isinstance(query, FakeTensor):
            return plain(query, key, value, score_mod, block_mask, scale, enable_gqa, return_lse, kernel_options, **options)
        recorder.guess("flex_attention: recorded as its compiled kernel, which keeps no scores; gradients of what a score_mod reads are left out")
        out, logsumexp = _Flex.apply(query, key, value)
        if return_aux is not None:
            kinds = torch.nn.attention.flex_attention
            return out, kinds.AuxOutput(lse=logsumexp if return_aux.lse else None, max_scores=torch.empty_like(logsumexp) if return_aux.max_scores else None)
        return (out, logsumexp) if return_lse else out

    return flex_attention
