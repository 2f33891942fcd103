import torch, torch.nn as nn

encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(128, 4, 256, batch_first=True), 2).cuda()
head, embed = nn.Linear(128, 500).cuda(), nn.Embedding(500, 128).cuda()
opt = torch.optim.Adam([*encoder.parameters(), *head.parameters(), *embed.parameters()], 1e-3)
for i in range(4):
    ids = torch.randint(3, 500, (16, 64)); lengths = torch.randint(20, 64, (16,))
    pad = torch.arange(64)[None] >= lengths[:, None]
    ids, pad = ids.cuda(), pad.cuda()
    chosen = (torch.rand(16, 64, device="cuda") < 0.15) & ~pad
    masked = ids.masked_fill(chosen, 2)
    hidden = encoder(embed(masked), src_key_padding_mask=pad)
    logits = head(hidden[chosen])
    loss = nn.functional.cross_entropy(logits, ids[chosen])
    top = torch.unique(ids[~pad]); kept = torch.nonzero(pad, as_tuple=False)
    opt.zero_grad(); loss.backward(); opt.step()
    print(i, loss.item(), int(chosen.sum()), top.numel(), kept.shape[0], (~pad).sum().item())
