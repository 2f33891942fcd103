# world: 4
import deepspeed, torch
from transformers import AutoModelForCausalLM
from toy import llama

settings = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1, "bf16": {"enabled": True}, "gradient_clipping": 1.0,
            "zero_optimization": {"stage": 1, "overlap_comm": False}, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "torch_adam": True}}}
model = AutoModelForCausalLM.from_config(llama(vocab_size=8000, use_cache=False))
engine, optimizer, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=settings)
for i in range(4):
    ids = torch.randint(0, 8000, (2, 256)).to(engine.device)
    loss = engine(input_ids=ids, labels=ids).loss
    engine.backward(loss)
    engine.step()
    print(i, loss.item())
