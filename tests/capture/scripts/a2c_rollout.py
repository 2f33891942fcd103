"""A2C with a recurrent policy and many environments on the GPU: rollout storage, generalised advantages, alternating collecting and several epochs of minibatches, returns normalised by running statistics."""
import collections
import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical

class Envs:
    def __init__(self, n, device):
        self.n, self.device = n, device
        self.state = torch.zeros(n, 4, 42, 42, device=device)
    def reset(self):
        self.state.uniform_(0, 1)
        return self.state
    def step(self, action):
        self.state = torch.roll(self.state, 1, 1)
        self.state[:, 0].uniform_(0, 1)
        reward = (action == 0).float() * 0.1
        done = torch.rand(self.n, device=self.device) < 0.02
        self.state[done] = 0
        infos = [{"episode": {"r": float(r)}} for r in reward[done].cpu().numpy()]
        return self.state, reward, done, infos

class Policy(nn.Module):
    def __init__(self, actions, hidden=256):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(4, 32, 4, 2), nn.ReLU(), nn.Conv2d(32, 64, 3, 2), nn.ReLU(), nn.Flatten())
        self.fc, self.gru = nn.Linear(64 * 9 * 9, hidden), nn.GRUCell(hidden, hidden)
        self.actor, self.critic = nn.Linear(hidden, actions), nn.Linear(hidden, 1)
        for m in (self.actor, self.critic):
            nn.init.orthogonal_(m.weight, 0.01)
    def forward(self, obs, h, mask):
        x = torch.relu(self.fc(self.conv(obs)))
        h = self.gru(x, h * mask)
        return Categorical(logits=self.actor(h)), self.critic(h).squeeze(-1), h

device = torch.device("cuda")
T, N = 16, 32
envs, policy = Envs(N, device), Policy(6).to(device)
optimizer = torch.optim.RMSprop(policy.parameters(), lr=7e-4, eps=1e-5, alpha=0.99)
obs = torch.zeros(T + 1, N, 4, 42, 42).to(device)
hs, masks = torch.zeros(T + 1, N, 256).to(device), torch.ones(T + 1, N, 1).to(device)
rewards, values, logps = (torch.zeros(T, N).to(device) for _ in range(3))
actions = torch.zeros(T, N, dtype=torch.long).to(device)
obs[0].copy_(envs.reset())
episode_rewards = collections.deque(maxlen=10)
for update in range(6):
    for t in range(T):
        with torch.no_grad():
            dist, value, h = policy(obs[t], hs[t], masks[t])
        action = dist.sample()
        o, r, done, infos = envs.step(action)
        for info in infos:
            if "episode" in info:
                episode_rewards.append(info["episode"]["r"])
        obs[t + 1].copy_(o); hs[t + 1].copy_(h); masks[t + 1].copy_((~done).float().unsqueeze(1))
        rewards[t], values[t], logps[t], actions[t] = r, value, dist.log_prob(action), action
    with torch.no_grad():
        last = policy(obs[-1], hs[-1], masks[-1])[1]
        adv, gae = torch.zeros_like(rewards), 0
        for t in reversed(range(T)):
            nxt = last if t == T - 1 else values[t + 1]
            delta = rewards[t] + 0.99 * nxt * masks[t + 1].squeeze(1) - values[t]
            gae = delta + 0.99 * 0.95 * masks[t + 1].squeeze(1) * gae
            adv[t] = gae
        returns = adv + values
    adv = (adv - adv.mean()) / (adv.std() + 1e-5)
    for epoch in range(2):
        for idx in torch.randperm(N).chunk(4):
            h, lp, vs, ent = hs[0, idx], [], [], 0
            for t in range(T):
                dist, v, h = policy(obs[t, idx], h, masks[t, idx])
                lp.append(dist.log_prob(actions[t, idx])); vs.append(v); ent = ent + dist.entropy().mean()
            lp, vs = torch.stack(lp), torch.stack(vs)
            loss = -(lp * adv[:, idx]).mean() + 0.5 * (returns[:, idx] - vs).pow(2).mean() - 0.01 * ent / T
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
            optimizer.step()
    obs[0].copy_(obs[-1]); hs[0].copy_(hs[-1]); masks[0].copy_(masks[-1])
    if len(episode_rewards) > 1:
        print(f"update {update} mean {np.mean(episode_rewards):.2f} loss {loss.item():.3f}")
