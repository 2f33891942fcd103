"""PPO: actions are sampled on the GPU and go through numpy to an environment; minibatches by a random permutation."""
import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical, Normal


class Environments:
    def __init__(self, count):
        self.count, self.random = count, np.random.default_rng(0)

    def step(self, actions):
        assert actions.shape == (self.count,) and actions.dtype.kind == "i"
        return self.random.standard_normal((self.count, 4, 84, 84), dtype=np.float32), self.random.standard_normal(self.count), self.random.random(self.count) < 0.01


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU())
        self.actor, self.critic = nn.Linear(512, 6), nn.Linear(512, 1)
        for m in self.modules():
            if isinstance(m, (nn.Linear, nn.Conv2d)):
                nn.init.orthogonal_(m.weight, np.sqrt(2))

    def forward(self, x, action=None):
        h = self.body(x)
        d = Categorical(logits=self.actor(h))
        action = d.sample() if action is None else action
        return action, d.log_prob(action), d.entropy(), self.critic(h).squeeze(-1)


device = torch.device("cuda")
count, horizon = 8, 16
environments, agent = Environments(count), Agent().to(device)
optimizer = torch.optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
obs = torch.zeros((horizon, count, 4, 84, 84), device=device)
actions, logs, rewards, dones, values = (torch.zeros((horizon, count), device=device) for _ in range(5))
seen = torch.randn(count, 4, 84, 84).to(device)
for update in range(3):
    for t in range(horizon):
        obs[t] = seen
        with torch.no_grad():
            a, l, _, v = agent(seen)
        actions[t], logs[t], values[t] = a, l, v
        o, r, d = environments.step(a.cpu().numpy())
        seen, rewards[t], dones[t] = torch.from_numpy(o).to(device), torch.tensor(r, dtype=torch.float32).to(device), torch.Tensor(d).to(device)
    advantages, last = torch.zeros_like(rewards), 0
    for t in reversed(range(horizon - 1)):
        delta = rewards[t] + 0.99 * values[t + 1] * (1 - dones[t]) - values[t]
        advantages[t] = last = delta + 0.95 * 0.99 * (1 - dones[t]) * last
    flat = lambda x: x.reshape((-1,) + x.shape[2:])
    order = np.arange(count * horizon)
    np.random.shuffle(order)
    for start in range(0, count * horizon, 32):
        part = order[start:start + 32]
        _, l, entropy, v = agent(flat(obs)[part], flat(actions).long()[part])
        ratio = (l - flat(logs)[part]).exp()
        adv = flat(advantages)[part]
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        loss = torch.max(-adv * ratio, -adv * ratio.clamp(0.9, 1.1)).mean() - 0.01 * entropy.mean() + 0.5 * ((v - (flat(advantages) + flat(values))[part]) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
        optimizer.step()
