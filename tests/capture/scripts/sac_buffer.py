"""Soft actor-critic: a replay buffer on the GPU, a tanh policy, twin critics with target copies, a learned temperature, ensembles by torch.func."""
import copy
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
from torch.distributions import Independent, Normal, TanhTransform, TransformedDistribution
from torch.func import functional_call, stack_module_state, vmap

OBS, ACT, BATCH, CAPACITY = 376, 17, 1024, 100_000
class Buffer:
    def __init__(self, device):
        self.obs, self.act = torch.zeros(CAPACITY, OBS, device=device), torch.zeros(CAPACITY, ACT, device=device)
        self.next, self.rew, self.done = torch.zeros_like(self.obs), torch.zeros(CAPACITY, 1, device=device), torch.zeros(CAPACITY, 1, dtype=torch.bool, device=device)
        self.n = 0
    def add(self, o, a, r, o2, d):
        for store, value in ((self.obs, o), (self.act, a), (self.rew, r), (self.next, o2), (self.done, d)):
            store[self.n] = torch.as_tensor(value, device=store.device)
        self.n += 1
    def sample(self):
        i = torch.randint(0, self.n, (BATCH,), device=self.obs.device)
        return self.obs[i], self.act[i], self.rew[i], self.next[i], self.done[i].float()

def mlp(i, o): return nn.Sequential(nn.Linear(i, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, o))

class Actor(nn.Module):
    def __init__(self):
        super().__init__(); self.net = mlp(OBS, 2 * ACT)
    def forward(self, obs, deterministic=False):
        mean, log_std = self.net(obs).chunk(2, -1)
        base = Independent(Normal(mean, log_std.clamp(-20, 2).exp(), validate_args=False), 1)
        policy = TransformedDistribution(base, TanhTransform(cache_size=1))
        action = mean.tanh() if deterministic else policy.rsample()
        return action, policy.log_prob(action).unsqueeze(-1)

device = "cuda" if torch.cuda.is_available() else "cpu"
actor = Actor().to(device)
critics = [mlp(OBS + ACT, 1).to(device) for _ in range(2)]; targets = [copy.deepcopy(c).requires_grad_(False) for c in critics]
ensemble = [mlp(OBS + ACT, OBS).to(device) for _ in range(5)]; base = copy.deepcopy(ensemble[0]).to("meta")
world, buffers = stack_module_state(ensemble)
log_alpha = torch.zeros(1, requires_grad=True, device=device)
qo = torch.optim.Adam([p for c in critics for p in c.parameters()], 1e-3); ao = torch.optim.Adam(actor.parameters(), 3e-4); lo = torch.optim.Adam([log_alpha], 3e-4); wo = torch.optim.Adam(world.values(), 1e-3)
buffer, obs = Buffer(device), np.random.randn(OBS).astype("float32")
for t in range(40):
    with torch.no_grad():
        a = actor(torch.from_numpy(obs)[None].to(device))[0][0].cpu().numpy() if t > 8 else np.random.uniform(-1, 1, ACT).astype("float32")
    nxt = np.random.randn(OBS).astype("float32"); buffer.add(obs, a, float(nxt[0]), nxt, t % 10 == 9); obs = nxt
    if t < 20: continue
    o, a, r, o2, d = buffer.sample()
    predicted = vmap(lambda p, b, x: functional_call(base, (p, b), (x,)), in_dims=(0, 0, None), randomness="different")(world, buffers, torch.cat([o, a], -1))
    wl = (predicted - o2).square().mean((1, 2)).sum(); wo.zero_grad(); wl.backward(); wo.step()
    with torch.no_grad():
        a2, lp2 = actor(o2)
        y = r + 0.99 * (1 - d) * (torch.min(*[q(torch.cat([o2, a2], -1)) for q in targets]) - log_alpha.exp() * lp2)
    ql = sum(F.mse_loss(q(torch.cat([o, a], -1)), y) for q in critics); qo.zero_grad(); ql.backward(); qo.step()
    new, lp = actor(o); al = (log_alpha.exp().detach() * lp - torch.min(*[q(torch.cat([o, new], -1)) for q in critics])).mean()
    ao.zero_grad(); al.backward(); ao.step()
    tl = -(log_alpha.exp() * (lp + (-ACT)).detach()).mean(); lo.zero_grad(); tl.backward(); lo.step()
    for q, tq in zip(critics, targets):
        for p, tp in zip(q.parameters(), tq.parameters()): tp.data.mul_(0.995); tp.data.add_(0.005 * p.data)
    print(t, ql.item(), al.item(), log_alpha.exp().item())
