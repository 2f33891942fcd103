import torch
from accelerate import Accelerator
from transformers import AutoConfig, AutoModelForSequenceClassification, get_linear_schedule_with_warmup

accelerator = Accelerator(mixed_precision="fp16", gradient_accumulation_steps=2)
model = AutoModelForSequenceClassification.from_config(AutoConfig.for_model("bert", num_hidden_layers=4, num_labels=3))
def collate(rows):
    length = max(len(r) for r in rows)
    ids, mask = torch.zeros(len(rows), length, dtype=torch.long), torch.zeros(len(rows), length, dtype=torch.long)
    for i, r in enumerate(rows):
        ids[i, : len(r)], mask[i, : len(r)] = r, 1
    return {"input_ids": ids, "attention_mask": mask, "labels": torch.randint(0, 3, (len(rows),))}
torch.manual_seed(0)
rows = [torch.randint(5, 30000, (int(n),)) for n in torch.randint(32, 128, (160,))]
loader = torch.utils.data.DataLoader(rows, 16, shuffle=True, collate_fn=collate)
optimizer = torch.optim.AdamW(model.parameters(), 2e-5)
schedule = get_linear_schedule_with_warmup(optimizer, 2, 10)
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
model.train()
for batch in loader:
    with accelerator.accumulate(model):
        out = model(**batch)
        accelerator.backward(out.loss)
        if accelerator.sync_gradients:
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step(); schedule.step(); optimizer.zero_grad()
    accelerator.print(accelerator.gather(out.loss.detach()).mean().item())
