import math, torch, torch.nn as nn

class Model(nn.Module):
    def __init__(self, vocab=5000, d=256):
        super().__init__()
        self.embed, self.head = nn.Embedding(vocab, d), nn.Linear(d, vocab)
        pe, pos = torch.zeros(512, d), torch.arange(512).unsqueeze(1)
        div = torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d))
        pe[:, 0::2], pe[:, 1::2] = torch.sin(pos * div), torch.cos(pos * div)
        self.register_buffer("pe", pe)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(d, 8, 1024, batch_first=True), 4)
    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1]).to(ids.device)
        return self.head(self.encoder(self.embed(ids) + self.pe[: ids.shape[1]], mask=mask, is_causal=True))

model = Model().to("cuda")
opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
accumulation = 4
for step in range(20):
    ids = torch.randint(0, 5000, (8, 129), device="cuda")
    loss = nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()) / accumulation
    loss.backward()
    if (step + 1) % accumulation == 0:
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if not math.isfinite(norm):
            raise RuntimeError("the gradient is not finite")
        opt.step()
        opt.zero_grad()
