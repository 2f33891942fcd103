# world: 4
"""DeepSpeed with its own fused optimizer, then the host's: ZeRO-2 with offloading, a configuration that leaves the optimizer to DeepSpeed."""
import argparse, deepspeed, torch, torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=-1)
parser.add_argument("--offload", action="store_true", default=True)
parser = deepspeed.add_config_arguments(parser)
args = parser.parse_args()

class Net(nn.Module):
    def __init__(self, d=1024, n=8):
        super().__init__()
        self.embed = nn.Embedding(4000, d)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(d, 16, 4 * d, dropout=0.0, batch_first=True, activation="gelu") for _ in range(n))
        self.head = nn.Linear(d, 4000)
    def forward(self, ids, labels):
        x = self.embed(ids)
        for layer in self.layers: x = deepspeed.checkpointing.checkpoint(layer, x)
        return nn.functional.cross_entropy(self.head(x).view(-1, 4000).float(), labels.view(-1))

def config(offload):
    zero = {"stage": 2, "contiguous_gradients": True, "overlap_comm": True, "reduce_bucket_size": 5e6, "allgather_bucket_size": 5e6}
    if offload: zero["offload_optimizer"] = {"device": "cpu", "pin_memory": True}
    return {"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2, "fp16": {"enabled": True, "initial_scale_power": 12}, "zero_optimization": zero, "gradient_clipping": 1.0,
            "optimizer": {"type": "AdamW", "params": {"lr": 3e-5, "betas": [0.9, 0.95], "weight_decay": 0.1}}, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 10}}, "steps_per_print": 1}

deepspeed.init_distributed()
model = Net()
engine, optimizer, _, scheduler = deepspeed.initialize(args=None, model=model, model_parameters=model.parameters(), config=config(args.offload))
for step in range(8):
    ids = torch.randint(0, 4000, (4, 128), device=engine.device)
    loss = engine(ids, ids)
    engine.backward(loss); engine.step()
    if engine.is_gradient_accumulation_boundary(): print(step, loss.item(), deepspeed.comm.get_world_size())
