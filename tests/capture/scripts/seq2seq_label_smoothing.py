"""T5 by a loop of accelerate's: accumulation inside accumulate(), clip by sync_gradients, gather_for_metrics, checkpoints, trackers off, an Adafactor with relative steps."""
import torch
from accelerate import Accelerator
from accelerate.utils import ProjectConfiguration, set_seed
from torch.utils.data import DataLoader
from tqdm.auto import tqdm
from transformers import Adafactor, T5Config, T5ForConditionalGeneration

def main():
    accelerator = Accelerator(gradient_accumulation_steps=3, mixed_precision="bf16", project_config=ProjectConfiguration(project_dir="out", automatic_checkpoint_naming=True, total_limit=1))
    set_seed(3)
    model = T5ForConditionalGeneration(T5Config(vocab_size=4000, d_model=256, d_kv=32, d_ff=1024, num_layers=3, num_heads=8, decoder_start_token_id=0))
    model.gradient_checkpointing_enable()
    rows = [{"input_ids": torch.randint(1, 4000, (96,)), "labels": torch.randint(1, 4000, (48,))} for _ in range(96)]
    loader, val = DataLoader(rows, 8, shuffle=True), DataLoader(rows[:16], 8)
    optimizer = Adafactor(model.parameters(), scale_parameter=True, relative_step=True, warmup_init=True, lr=None)
    model, optimizer, loader, val = accelerator.prepare(model, optimizer, loader, val)
    accelerator.print(accelerator.state, len(loader))
    bar = tqdm(range(12), disable=not accelerator.is_local_main_process)
    for epoch in range(2):
        model.train()
        total = 0
        for batch in loader:
            with accelerator.accumulate(model):
                out = model(**batch)
                loss = torch.nn.functional.cross_entropy(out.logits.flatten(0, 1).float(), batch["labels"].flatten(), label_smoothing=0.1)
                total += loss.detach().float()
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step(); optimizer.zero_grad()
            if accelerator.sync_gradients:
                bar.update(1)
                bar.set_postfix(loss=accelerator.gather(loss.repeat(8)).mean().item())
        model.eval()
        for batch in val:
            with torch.no_grad():
                tokens = accelerator.unwrap_model(model).generate(batch["input_ids"], max_new_tokens=8)
            tokens = accelerator.pad_across_processes(tokens, dim=1, pad_index=0)
            accelerator.gather_for_metrics((tokens, batch["labels"]))
        accelerator.wait_for_everyone()
        accelerator.save_state()

if __name__ == "__main__":
    main()
