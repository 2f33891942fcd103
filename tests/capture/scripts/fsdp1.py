# world: 4
import functools, os, torch, torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, MixedPrecision, ShardingStrategy
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy
from transformers import AutoModelForCausalLM
from transformers.models.llama.modeling_llama import LlamaDecoderLayer
from toy import llama

dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
config = llama(vocab_size=8000)
config.use_cache = False
model = AutoModelForCausalLM.from_config(config)
policy = functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={LlamaDecoderLayer})
bf16 = MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16, buffer_dtype=torch.bfloat16)
model = FSDP(model, auto_wrap_policy=policy, mixed_precision=bf16, sharding_strategy=ShardingStrategy.FULL_SHARD, device_id=torch.cuda.current_device(), use_orig_params=True)
optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
for i in range(4):
    ids = torch.randint(0, 8000, (2, 256), device="cuda")
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    model.clip_grad_norm_(1.0)
    optimizer.step(); optimizer.zero_grad()
    if dist.get_rank() == 0:
        print(i, loss.item())
