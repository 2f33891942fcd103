# world: 8
"""FSDP2 as torchtitan has it: activation checkpointing wrappers, meta initialisation, CPU offload of parameters, a sharded checkpoint."""
import os, tempfile
import torch, torch.distributed as dist, torch.nn as nn
import torch.distributed.checkpoint as dcp
from torch.distributed._composable.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointImpl, apply_activation_checkpointing, checkpoint_wrapper
from torch.distributed.checkpoint.state_dict import get_model_state_dict, get_optimizer_state_dict, StateDictOptions
from torch.distributed.device_mesh import init_device_mesh

class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.n1, self.n2 = nn.RMSNorm(d), nn.RMSNorm(d)
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(d, d, bias=False) for _ in range(4))
        self.w1, self.w2, self.w3 = nn.Linear(d, 3 * d, bias=False), nn.Linear(3 * d, d, bias=False), nn.Linear(d, 3 * d, bias=False)
    def forward(self, x):
        b, t, d = x.shape; h = self.n1(x)
        q, k, v = (w(h).view(b, t, 8, -1).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        x = x + self.wo(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d))
        h = self.n2(x)
        return x + self.w2(nn.functional.silu(self.w1(h)) * self.w3(h))

class Model(nn.Module):
    def __init__(self, d=1024, n=4, v=16000):
        super().__init__()
        self.tok, self.layers, self.norm, self.output = nn.Embedding(v, d), nn.ModuleDict({str(i): Block(d) for i in range(n)}), nn.RMSNorm(d), nn.Linear(d, v, bias=False)
    def forward(self, ids):
        x = self.tok(ids)
        for layer in self.layers.values(): x = layer(x)
        return self.output(self.norm(x))
    def init_weights(self):
        for m in self.modules():
            if isinstance(m, (nn.Linear, nn.Embedding)): nn.init.trunc_normal_(m.weight, std=0.02)
            elif isinstance(m, nn.RMSNorm): m.reset_parameters()

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(rank % 8)
dist.init_process_group("cpu:gloo,cuda:nccl", device_id=torch.device("cuda", rank % 8))
mesh = init_device_mesh("cuda", (2, world // 2), mesh_dim_names=("replicate", "shard"))
with torch.device("meta"):
    model = Model()
apply_activation_checkpointing(model, checkpoint_wrapper_fn=lambda m: checkpoint_wrapper(m, CheckpointImpl.NO_REENTRANT, preserve_rng_state=False), check_fn=lambda m: isinstance(m, Block))
options = {"mesh": mesh, "mp_policy": MixedPrecisionPolicy(torch.bfloat16, torch.float32, output_dtype=torch.float32), "offload_policy": CPUOffloadPolicy(pin_memory=False)}
for i, layer in enumerate(model.layers.values()):
    fully_shard(layer, **options, reshard_after_forward=i < 3)
fully_shard(model, **options)
model.to_empty(device="cpu")
model.init_weights()
opt = torch.optim.AdamW(model.parameters(), 3e-4, foreach=True)
for step in range(4):
    ids = torch.randint(0, 16000, (4, 513)).cuda()
    logits = model(ids[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    del logits
    loss.backward()
    opt.step(); opt.zero_grad()
    mean = loss.detach().clone(); dist.all_reduce(mean, op=dist.ReduceOp.AVG)
    if rank == 0: print(step, mean.item())
state = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
dist.barrier(); dist.destroy_process_group()
