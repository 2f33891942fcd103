"""Stage 1 of a LLaVA-like model: a frozen vision tower, a trained projector, a frozen language model that takes embeddings."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from transformers import AutoModelForCausalLM, CLIPVisionConfig, CLIPVisionModel
from toy import llama

IMAGE_TOKEN, IGNORE = 999, -100


class Llava(nn.Module):
    def __init__(self):
        super().__init__()
        self.vision = CLIPVisionModel(CLIPVisionConfig(hidden_size=256, intermediate_size=1024, num_hidden_layers=4, num_attention_heads=4, image_size=224, patch_size=16))
        self.language = AutoModelForCausalLM.from_config(llama(), dtype=torch.bfloat16, attn_implementation="sdpa")
        self.projector = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 512))
        self.vision.requires_grad_(False)
        self.language.requires_grad_(False)

    def forward(self, input_ids, attention_mask, labels, pixel_values):
        with torch.no_grad():
            seen = self.vision(pixel_values, output_hidden_states=True).hidden_states[-2][:, 1:]
        images = self.projector(seen.to(self.projector[0].weight.dtype))
        embeds = self.language.get_input_embeddings()(input_ids)
        places = (input_ids == IMAGE_TOKEN).unsqueeze(-1).expand_as(embeds)
        embeds = embeds.masked_scatter(places, images.to(embeds.dtype))
        return self.language(inputs_embeds=embeds, attention_mask=attention_mask, labels=labels)


class Pairs(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        words = 20 + 3 * (i % 7)
        ids = torch.cat([torch.full((196,), IMAGE_TOKEN), torch.randint(2, 900, (words,))])
        return {"input_ids": ids, "pixel_values": torch.rand(3, 224, 224)}


def collate(rows):
    ids = nn.utils.rnn.pad_sequence([r["input_ids"] for r in rows], batch_first=True, padding_value=0)
    labels = ids.clone()
    labels[(ids == 0) | (ids == IMAGE_TOKEN)] = IGNORE
    return {"input_ids": ids, "attention_mask": ids.ne(0), "labels": labels, "pixel_values": torch.stack([r["pixel_values"] for r in rows])}


def main():
    torch.manual_seed(42)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    model = Llava().to(device)
    trainable = [p for n, p in model.named_parameters() if p.requires_grad]
    print(f"{sum(p.numel() for p in trainable):,} of {sum(p.numel() for p in model.parameters()):,} parameters are trained")
    optimizer = torch.optim.AdamW(trainable, lr=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=100)
    for step, batch in enumerate(DataLoader(Pairs(), batch_size=4, shuffle=True, collate_fn=collate)):
        batch = {k: v.to(device, non_blocking=True) for k, v in batch.items()}
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
        print(step, round(loss.item(), 3))


if __name__ == "__main__":
    main()
