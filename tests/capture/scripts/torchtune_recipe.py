"""A recipe as torchtune writes them: a class with setup and train, packed data, chunked cross-entropy, token-weighted accumulation, checkpoint wrappers."""
import contextlib
import sys
import time
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing, checkpoint_wrapper
from torch.utils.data import DataLoader, Dataset

CONFIG = {"batch_size": 2, "gradient_accumulation_steps": 4, "max_seq_len": 512, "dtype": "bf16", "device": "cuda", "lr": 2e-5, "max_steps_per_epoch": None,
          "clip_grad_norm": 1.0, "log_peak_memory_stats": True, "num_output_chunks": 8}

class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps, self.scale = eps, nn.Parameter(torch.ones(dim))
    def forward(self, x):
        x_fp32 = x.float()
        return (x_fp32 * torch.rsqrt(x_fp32.pow(2).mean(-1, keepdim=True) + self.eps)).type_as(x) * self.scale

class RotaryPositionalEmbeddings(nn.Module):
    def __init__(self, dim, max_seq_len, base=10000):
        super().__init__()
        theta = 1.0 / (base ** (torch.arange(0, dim, 2)[: dim // 2].float() / dim))
        idx_theta = torch.einsum("i, j -> ij", torch.arange(max_seq_len, dtype=theta.dtype), theta).float()
        self.register_buffer("cache", torch.stack([torch.cos(idx_theta), torch.sin(idx_theta)], dim=-1), persistent=False)
    def forward(self, x, input_pos):
        rope_cache = self.cache[input_pos]
        xshaped = x.float().reshape(*x.shape[:-1], -1, 2)
        rope_cache = rope_cache.view(-1, xshaped.size(1), 1, xshaped.size(3), 2)
        out = torch.stack([xshaped[..., 0] * rope_cache[..., 0] - xshaped[..., 1] * rope_cache[..., 1],
                           xshaped[..., 1] * rope_cache[..., 0] + xshaped[..., 0] * rope_cache[..., 1]], -1)
        return out.flatten(3).type_as(x)

class TransformerSelfAttentionLayer(nn.Module):
    def __init__(self, dim, heads, kv_heads, hidden, max_seq_len):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = heads, kv_heads, dim // heads
        self.q_proj = nn.Linear(dim, dim, bias=False)
        self.k_proj, self.v_proj = (nn.Linear(dim, kv_heads * self.head_dim, bias=False) for _ in range(2))
        self.output_proj = nn.Linear(dim, dim, bias=False)
        self.w1, self.w2, self.w3 = nn.Linear(dim, hidden, bias=False), nn.Linear(hidden, dim, bias=False), nn.Linear(dim, hidden, bias=False)
        self.sa_norm, self.mlp_norm = RMSNorm(dim), RMSNorm(dim)
        self.pos = RotaryPositionalEmbeddings(self.head_dim, max_seq_len)
    def forward(self, x, *, mask, input_pos):
        b, s, _ = x.shape
        h = self.sa_norm(x)
        q = self.pos(self.q_proj(h).view(b, s, self.heads, -1), input_pos).transpose(1, 2)
        k = self.pos(self.k_proj(h).view(b, s, self.kv_heads, -1), input_pos)
        v = self.v_proj(h).view(b, s, self.kv_heads, -1)
        k, v = (t.unsqueeze(3).expand(-1, -1, -1, self.heads // self.kv_heads, -1).flatten(2, 3).transpose(1, 2) for t in (k, v))
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None])
        x = x + self.output_proj(out.transpose(1, 2).reshape(b, s, -1))
        h = self.mlp_norm(x)
        return x + self.w2(F.silu(self.w1(h)) * self.w3(h))

class Decoder(nn.Module):
    def __init__(self, vocab, dim, depth, max_seq_len):
        super().__init__()
        self.tok_embeddings = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(TransformerSelfAttentionLayer(dim, 8, 2, 3 * dim, max_seq_len) for _ in range(depth))
        self.norm, self.output = RMSNorm(dim), nn.Linear(dim, vocab, bias=False)
        self.num_output_chunks = 0
    def set_num_output_chunks(self, n):
        self.num_output_chunks = n
    def forward(self, tokens, mask, input_pos):
        h = self.tok_embeddings(tokens)
        for layer in self.layers:
            h = layer(h, mask=mask, input_pos=input_pos)
        return [self.output(chunk) for chunk in self.norm(h).chunk(self.num_output_chunks, dim=1)]

class CEWithChunkedOutputLoss(nn.Module):
    def __init__(self, num_output_chunks, ignore_index=-100):
        super().__init__()
        self.num_output_chunks, self.ignore_index = num_output_chunks, ignore_index
    def compute_cross_entropy(self, logits, labels):
        return F.cross_entropy(logits.float(), labels, ignore_index=self.ignore_index, reduction="sum")
    def forward(self, logits, labels):
        total_elements = (labels != self.ignore_index).sum()
        labels = [t.reshape(-1) for t in labels.chunk(self.num_output_chunks, dim=1)]
        logits = [l.reshape(-1, l.size(-1)) for l in logits]
        return sum(self.compute_cross_entropy(a, b) for a, b in zip(logits, labels)) / total_elements

class PackedDataset(Dataset):
    def __init__(self, count, length, vocab):
        generator = torch.Generator().manual_seed(0)
        self.packs = []
        for _ in range(count):
            seq_lens = [length // 4, length // 2, length - length // 4 - length // 2]
            tokens = torch.randint(0, vocab, (length,), generator=generator)
            labels = torch.where(torch.rand(length, generator=generator) < 0.3, -100, tokens)
            self.packs.append({"tokens": tokens, "labels": labels, "input_pos": torch.cat([torch.arange(n) for n in seq_lens]), "seq_lens": torch.tensor(seq_lens)})
    def __len__(self):
        return len(self.packs)
    def __getitem__(self, i):
        return self.packs[i]

def padded_collate_packed(batch):
    masks = [torch.block_diag(*[torch.tril(torch.ones(n, n, dtype=torch.bool)) for n in x["seq_lens"]]) for x in batch]
    return {"tokens": torch.stack([x["tokens"] for x in batch]), "labels": torch.stack([x["labels"] for x in batch]),
            "input_pos": torch.stack([x["input_pos"] for x in batch]), "mask": torch.stack(masks)}

@contextlib.contextmanager
def set_default_dtype(dtype):
    old = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(old)

class FullFinetuneRecipeSingleDevice:
    def __init__(self, cfg):
        self.cfg = cfg
        self._device = torch.device(cfg["device"])
        self._dtype = {"bf16": torch.bfloat16, "fp32": torch.float32}[cfg["dtype"]]
        if self._device.type == "cuda" and self._dtype is torch.bfloat16 and not torch.cuda.is_bf16_supported():
            raise RuntimeError("Full bf16 training is not supported on this hardware.")
    def setup(self):
        with set_default_dtype(self._dtype), self._device:
            self._model = Decoder(8192, 512, 4, self.cfg["max_seq_len"])
        apply_activation_checkpointing(self._model, checkpoint_wrapper_fn=partial(checkpoint_wrapper), check_fn=lambda m: isinstance(m, TransformerSelfAttentionLayer))
        self._loss_fn = CEWithChunkedOutputLoss(self.cfg["num_output_chunks"])
        self._model.set_num_output_chunks(self._loss_fn.num_output_chunks)
        self._optimizer = torch.optim.AdamW(self._model.parameters(), lr=self.cfg["lr"], fused=True)
        self._dataloader = DataLoader(PackedDataset(64, self.cfg["max_seq_len"], 8192), batch_size=self.cfg["batch_size"], shuffle=True, drop_last=True, collate_fn=padded_collate_packed)
        self.ignore_labels_cache = torch.full((self.cfg["batch_size"], 1), -100, device=self._device)
    def _loss_step(self, batch):
        labels = batch.pop("labels")
        logits = self._model(**batch)
        labels = torch.hstack((labels[..., 1:], self.ignore_labels_cache[: labels.shape[0]]))
        loss = self._loss_fn(logits, labels)
        del logits
        return loss
    def train(self):
        t0, running_loss, num_tokens, global_step = time.perf_counter(), 0, 0, 0
        self._optimizer.zero_grad()
        for epoch in range(3):
            for idx, batch in enumerate(self._dataloader):
                batch = {k: v.to(self._device) for k, v in batch.items()}
                current = (batch["labels"] != -100).sum()
                num_tokens += current
                loss = self._loss_step(batch) * current
                running_loss += loss.detach()
                loss.backward()
                if (idx + 1) % self.cfg["gradient_accumulation_steps"] == 0:
                    for p in self._model.parameters():
                        if p.grad is not None:
                            p.grad *= 1 / num_tokens
                    grad_norm = torch.nn.utils.clip_grad_norm_(self._model.parameters(), max_norm=float(self.cfg["clip_grad_norm"]))
                    self._optimizer.step()
                    self._optimizer.zero_grad(set_to_none=True)
                    global_step += 1
                    log = {"loss": (running_loss / num_tokens).item(), "grad_norm": grad_norm, "tokens_per_second": num_tokens / (time.perf_counter() - t0),
                           "peak_memory_active": torch.cuda.max_memory_allocated(self._device) / 2**30}
                    print(global_step, log)
                    running_loss, num_tokens, t0 = 0, 0, time.perf_counter()

def recipe_main():
    recipe = FullFinetuneRecipeSingleDevice(CONFIG)
    recipe.setup()
    recipe.train()

if __name__ == "__main__":
    sys.exit(recipe_main())
