"""Sequence tagging: packed sequences through a bidirectional LSTM, a CRF by hand with a Viterbi decode, character convolutions, teacher forcing decided by random.random()."""
import random
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

random.seed(7); torch.manual_seed(7)
VOCAB, CHARS, TAGS = 5000, 80, 9

class CRF(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.start, self.end, self.trans = (nn.Parameter(torch.empty(*s).uniform_(-.1, .1)) for s in ((n,), (n,), (n, n)))
    def forward(self, emissions, tags, mask):
        return -(self._score(emissions, tags, mask) - self._norm(emissions, mask)).mean()
    def _score(self, e, tags, mask):
        length, b = tags.shape
        score = self.start[tags[0]] + e[0, torch.arange(b), tags[0]]
        for i in range(1, length):
            score = score + (self.trans[tags[i - 1], tags[i]] + e[i, torch.arange(b), tags[i]]) * mask[i]
        last = mask.long().sum(0) - 1
        return score + self.end[tags[last, torch.arange(b)]]
    def _norm(self, e, mask):
        score = self.start + e[0]
        for i in range(1, e.size(0)):
            nxt = torch.logsumexp(score.unsqueeze(2) + self.trans + e[i].unsqueeze(1), dim=1)
            score = torch.where(mask[i].unsqueeze(1), nxt, score)
        return torch.logsumexp(score + self.end, dim=1)
    def decode(self, e, mask):
        history, score = [], self.start + e[0]
        for i in range(1, e.size(0)):
            nxt, index = (score.unsqueeze(2) + self.trans + e[i].unsqueeze(1)).max(dim=1)
            score = torch.where(mask[i].unsqueeze(1), nxt, score)
            history.append(index)
        ends, best = mask.long().sum(0) - 1, []
        for k in range(e.size(1)):
            tag = [(score[k] + self.end).argmax().item()]
            for h in reversed(history[: int(ends[k])]):
                tag.append(h[k][tag[-1]].item())
            best.append(tag[::-1])
        return best

class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.chars = nn.Embedding(VOCAB, 100, padding_idx=0), nn.Embedding(CHARS, 25, padding_idx=0)
        self.conv = nn.Conv1d(25, 50, 3, padding=1)
        self.lstm = nn.LSTM(150, 128, num_layers=2, bidirectional=True, dropout=.3, batch_first=True)
        self.out, self.crf, self.drop = nn.Linear(256, TAGS), CRF(TAGS), nn.Dropout(.5)
    def emissions(self, words, chars, lengths):
        b, t, c = chars.shape
        ch = self.conv(self.chars(chars).view(b * t, c, -1).transpose(1, 2)).max(2).values.view(b, t, -1)
        x = self.drop(torch.cat([self.words(words), ch], -1))
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        hidden, (h, c) = self.lstm(packed)
        hidden, _ = pad_packed_sequence(hidden, batch_first=True, total_length=t)
        return self.out(hidden).transpose(0, 1)

def batch(n=16):
    sents = [torch.randint(1, VOCAB, (random.randint(12, 30),)) for _ in range(n)]
    words = pad_sequence(sents, batch_first=True)
    lengths = torch.tensor([len(s) for s in sents])
    return words, torch.randint(1, CHARS, (*words.shape, 12)), torch.randint(TAGS, words.shape), lengths

model = Tagger().cuda()
print(model, sum(p.numel() for p in model.parameters()))
opt = torch.optim.SGD(model.parameters(), lr=0.015, momentum=0.9)
clip = 5.0
for step in range(6):
    words, chars, tags, lengths = batch()
    words, chars, tags = words.cuda(), chars.cuda(), tags.cuda()
    mask = (words != 0).transpose(0, 1)
    model.zero_grad()
    e = model.emissions(words, chars, lengths)
    loss = model.crf(e, tags.transpose(0, 1), mask)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), clip)
    opt.step()
    with torch.no_grad():
        right = sum(sum(int(a == b) for a, b in zip(p, t.tolist())) for p, t in zip(model.crf.decode(e, mask), tags))
    print(step, loss.item(), right / int(lengths.sum()))
