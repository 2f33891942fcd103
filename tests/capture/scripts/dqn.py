import copy, random, collections
import torch, torch.nn as nn
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
Transition = collections.namedtuple("Transition", "state action next_state reward done")

class Dueling(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten())
        self.value, self.advantage = nn.Linear(3136, 1), nn.Linear(3136, 6)
    def forward(self, x):
        h = self.body(x.float() / 255)
        a = self.advantage(h)
        return self.value(h) + a - a.mean(1, keepdim=True)

policy = Dueling().to(device)
target = copy.deepcopy(policy).requires_grad_(False).eval()
optimizer = torch.optim.RMSprop(policy.parameters(), lr=2.5e-4, alpha=0.95, eps=0.01, centered=True)
memory, state = collections.deque(maxlen=200), torch.zeros(4, 84, 84, dtype=torch.uint8)
for step in range(40):
    if random.random() < 0.5:
        action = random.randrange(6)
    else:
        with torch.no_grad():
            action = policy(state.unsqueeze(0).to(device)).max(1)[1].item()
    following = torch.randint(0, 255, (4, 84, 84), dtype=torch.uint8)
    memory.append(Transition(state, torch.tensor([action]), following, torch.tensor([1.0 if action % 2 else -1.0]), torch.tensor([step % 10 == 9])))
    state = following
    if len(memory) < 32: continue
    batch = Transition(*map(lambda t: torch.stack(t).to(device, non_blocking=True), zip(*random.sample(memory, 32))))
    alive = ~batch.done.squeeze(1)
    q = policy(batch.state).gather(1, batch.action)
    best = torch.zeros(32, device=device)
    with torch.no_grad():
        choice = policy(batch.next_state[alive]).argmax(1, keepdim=True)
        best[alive] = target(batch.next_state[alive]).gather(1, choice).squeeze(1)
    loss = nn.SmoothL1Loss()(q, (batch.reward.squeeze(1) + 0.99 * best).unsqueeze(1))
    optimizer.zero_grad(); loss.backward()
    torch.nn.utils.clip_grad_value_(policy.parameters(), 1)
    optimizer.step()
    if step % 5 == 0: target.load_state_dict(policy.state_dict())
    for t, p in zip(target.parameters(), policy.parameters()): t.data.copy_(0.995 * t.data + 0.005 * p.data)
