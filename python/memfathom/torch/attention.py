"""Which kernel scaled_dot_product_attention takes on a GPU of a given compute capability: flash, then efficient, then math."""
import torch
import torch.nn.functional as F

aten = torch.ops.aten
TORCH = tuple(int(n) for n in torch.__version__.split(".")[:2])
MAX_FLASH_WIDTH = 256
HALF = (torch.float16, torch.bfloat16)


def _kernel(q, k, v, mask, gqa, capability):
    enabled = torch.backends.cuda
    if q.dim() != 4 or k.dim() != 4:
        return "math"
    equal_widths = q.shape[-1] == k.shape[-1] == v.shape[-1]
    equal_heads = q.shape[-3] == k.shape[-3] == v.shape[-3]
    if (enabled.flash_sdp_enabled() and q.dtype in HALF and mask is None and equal_widths and q.shape[-1] <= MAX_FLASH_WIDTH and capability >= (8, 0)
            and (equal_heads or gqa)):
        return "flash"
    if (enabled.mem_efficient_sdp_enabled() and q.dtype in HALF + (torch.float32,) and (equal_heads or gqa and TORCH >= (2, 14))
            and q.shape[-1] * q.element_size() % 16 == 0 and v.shape[-1] * v.element_size() % 16 == 0):
        return "efficient"
    return "math"


def _flash(q, k, v, dropout, causal, scale):
    width = q.shape[-1]
    scale = scale if scale is not None else width**-0.5
    if width % 8:
        q, k, v = (F.pad(t, (0, 8 - width % 8)) for t in (q, k, v))
    return aten._scaled_dot_product_flash_attention(q, k, v, dropout, causal, False, scale=scale)[0][..., :width]


def _prepared(mask, q, k):
    length = mask.shape[-1]
    if length % 8:  # rows must begin at multiples of 16 bytes
        mask = F.pad(mask, (0, 8 - length % 8))[..., :length]
    return mask.expand(q.shape[0], q.shape[1], q.shape[2], k.shape[2])


def _efficient(q, k, v, mask, dropout, causal, scale):
    needs_gradient = torch.is_grad_enabled() and any(t.requires_grad for t in (q, k, v))
    return aten._scaled_dot_product_efficient_attention(q, k, v, mask, needs_gradient, dropout, causal, scale=scale)[0]


def attention_for(capability):
    def attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        kernel = _kernel(q, k, v, attn_mask, enable_gqa, capability)
        if attn_mask is not None and attn_mask.dtype == torch.bool:  # for the math fallback, too
            attn_mask = torch.zeros_like(attn_mask, dtype=q.dtype).masked_fill_(attn_mask.logical_not(), float("-inf"))
        if kernel == "flash":
            return _flash(q, k, v, dropout_p, is_causal, scale)
        if kernel == "efficient":
            if attn_mask is not None:
                attn_mask = _prepared(attn_mask, q, k)  # under the same name: the mask before is gone when the kernel runs
            return _efficient(q, k, v, attn_mask, dropout_p, is_causal, scale)
        return aten._scaled_dot_product_attention_math(q, k, v, attn_mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa)[0]

    return attention
