import torch, torch.nn as nn

class LM(nn.Module):
    def __init__(self, vocab=10000, d=512):
        super().__init__()
        self.embed, self.rnn, self.drop, self.head = nn.Embedding(vocab, d), nn.LSTM(d, d, 2, dropout=0.2, batch_first=True), nn.Dropout(0.2), nn.Linear(d, vocab)
    def forward(self, x, state=None):
        out, state = self.rnn(self.embed(x), state)
        return self.head(self.drop(out)), state

model = LM().cuda()
optimizer, state = torch.optim.SGD(model.parameters(), lr=1.0), None
for i in range(4):
    x = torch.randint(0, 10000, (32, 36), device="cuda")
    if state is not None:
        state = tuple(s.detach() for s in state)
    logits, state = model(x[:, :-1], state)
    loss = nn.functional.cross_entropy(logits.transpose(1, 2), x[:, 1:])
    optimizer.zero_grad(); loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    optimizer.step(); print(loss.item())
