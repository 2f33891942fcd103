"""One optimizer per parameter that steps in the backward pass (a hook after each gradient); activations offloaded by saved_tensors_hooks."""
import torch
import torch.nn as nn


class Trainer:
    def __init__(self, width=1024, depth=6):
        layer = nn.TransformerEncoderLayer(width, 8, 4 * width, batch_first=True, norm_first=True, dropout=0.0)
        self.model = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False).to("cuda", torch.bfloat16)
        self.optimizers = {p: torch.optim.AdamW([p], lr=1e-4, foreach=False) for p in self.model.parameters()}
        for p in self.model.parameters():
            p.register_post_accumulate_grad_hook(self.update)
        self.history = []

    def update(self, parameter):
        self.optimizers[parameter].step()
        self.optimizers[parameter].zero_grad()

    def step(self):
        x = torch.randn(4, 256, 1024, device="cuda", dtype=torch.bfloat16)
        with torch.autograd.graph.save_on_cpu(pin_memory=True):
            y = self.model(x)
        loss = (y.float() - x.float()).pow(2).mean()
        loss.backward()
        self.history.append(loss.detach())


if __name__ == "__main__":
    trainer = Trainer()
    for _ in range(4):
        trainer.step()
    print(torch.stack(trainer.history).tolist())
