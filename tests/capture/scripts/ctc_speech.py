import torch, torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
device = "cuda" if torch.cuda.is_available() else "cpu"

class Listener(nn.Module):
    def __init__(self, symbols=29):
        super().__init__()
        self.front = nn.Sequential(nn.Conv2d(1, 32, (41, 11), (2, 2), (20, 5)), nn.BatchNorm2d(32), nn.Hardtanh(0, 20, inplace=True), nn.Conv2d(32, 32, (21, 11), (2, 1), (10, 5)), nn.BatchNorm2d(32), nn.Hardtanh(0, 20, inplace=True))
        self.rnn = nn.GRU(32 * 21, 256, 2, bidirectional=True, batch_first=True)
        self.out = nn.Linear(512, symbols)
    def forward(self, wave, lengths):
        window = torch.hann_window(320, device=wave.device)
        spectrum = torch.stft(wave, 320, 160, window=window, return_complex=True).abs()[:, :81].clamp(min=1e-5).log()
        h = self.front(spectrum.unsqueeze(1))
        frames = torch.div(lengths, 320, rounding_mode="floor") + 1
        h = h.flatten(1, 2).transpose(1, 2)
        packed = pack_padded_sequence(h, frames.cpu().clamp(max=h.shape[1]), batch_first=True, enforce_sorted=False)
        h, frames = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return self.out(h).log_softmax(-1), frames

net = Listener().to(device)
optimizer = torch.optim.Adagrad(net.parameters(), 1e-3)
loss_of = nn.CTCLoss(blank=0, zero_infinity=True)
for i in range(3):
    waves = [torch.randn(n) for n in (16000 * 2, 16000, 24000, 30000)]
    lengths = torch.tensor([len(w) for w in waves])
    wave = pad_sequence(waves, batch_first=True).to(device)
    text = torch.randint(1, 29, (4, 20)).to(device)
    logp, frames = net(wave, lengths)
    loss = loss_of(logp.transpose(0, 1), text, frames, torch.full((4,), 20))
    optimizer.zero_grad(); loss.backward(); optimizer.step(); print(i, loss.item())
