"""REINFORCE on a language model by hand: its own sampling loop with a cache, a frozen reference, GAE, ragged completions, gradient accumulation over micro-batches."""
import copy
import torch, torch.nn.functional as F
from transformers import AutoModelForCausalLM, DynamicCache
from toy import llama, tokenizer, text

torch.manual_seed(1)
tok = tokenizer(); tok.padding_side = "left"
policy = AutoModelForCausalLM.from_config(llama(), dtype=torch.bfloat16).to("cuda")
reference = copy.deepcopy(policy).eval()
for p in reference.parameters(): p.requires_grad = False
value = torch.nn.Linear(512, 1, dtype=torch.bfloat16).cuda()
opt = torch.optim.AdamW([*policy.parameters(), *value.parameters()], lr=1e-6, betas=(0.9, 0.95))

@torch.inference_mode()
def sample(ids, mask, new=16, temperature=1.0, top_p=0.9):
    cache, out, finished = DynamicCache(), ids, torch.zeros(len(ids), dtype=torch.bool, device=ids.device)
    step_ids = ids
    for _ in range(new):
        logits = policy(input_ids=step_ids, attention_mask=mask, past_key_values=cache, use_cache=True).logits[:, -1].float() / temperature
        ordered, order = logits.sort(descending=True)
        drop = ordered.softmax(-1).cumsum(-1) > top_p
        drop[:, 1:] = drop[:, :-1].clone(); drop[:, 0] = False
        logits = logits.masked_fill(torch.zeros_like(drop).scatter(1, order, drop), -torch.inf)
        step_ids = torch.multinomial(logits.softmax(-1), 1)
        step_ids[finished] = tok.pad_token_id
        out, mask = torch.cat([out, step_ids], 1), torch.cat([mask, torch.ones_like(step_ids)], 1)
        finished |= step_ids.squeeze(1) == tok.eos_token_id
        if finished.all(): break
    return out.clone(), mask.clone()

def log_probs(model, ids, mask, start):
    out = model(input_ids=ids, attention_mask=mask, output_hidden_states=True)
    lp = torch.gather(out.logits[:, start - 1 : -1].float().log_softmax(-1), 2, ids[:, start:, None]).squeeze(-1)
    return lp, out.hidden_states[-1][:, start - 1 : -1]

for update in range(3):
    batch = tok([text(20 + 3 * i, i + update + 1) for i in range(8)], return_tensors="pt", padding=True).to("cuda")
    start = batch["input_ids"].shape[1]
    ids, mask = sample(batch["input_ids"], batch["attention_mask"])
    texts = tok.batch_decode(ids[:, start:], skip_special_tokens=True)
    rewards = torch.tensor([len(set(t.split())) / 16 for t in texts], device="cuda")
    rewards = (rewards - rewards.mean()) / (rewards.std() + 1e-4)
    with torch.no_grad():
        old, hidden = log_probs(policy, ids, mask, start); ref, _ = log_probs(reference, ids, mask, start)
        values = value(hidden).squeeze(-1).float()
    reward = -0.05 * (old - ref); reward[:, -1] += rewards
    advantages, last = torch.zeros_like(reward), 0
    for t in reversed(range(reward.shape[1])):
        nxt = values[:, t + 1] if t + 1 < reward.shape[1] else 0
        last = reward[:, t] + nxt - values[:, t] + 0.95 * last
        advantages[:, t] = last
    returns = advantages + values
    for micro in torch.arange(8).split(4):
        lp, hidden = log_probs(policy, ids[micro], mask[micro], start)
        ratio = (lp - old[micro]).exp(); a = advantages[micro]
        pg = torch.max(-a * ratio, -a * ratio.clamp(0.8, 1.2)).mean()
        vf = (value(hidden).squeeze(-1).float() - returns[micro]).square().mean()
        ((pg + 0.1 * vf) / 2).backward()
    torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
    opt.step(); opt.zero_grad(set_to_none=True); print(update, pg.item(), vf.item(), texts[0][:30])
