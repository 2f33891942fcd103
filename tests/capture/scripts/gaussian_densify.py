"""Fitting Gaussians as splatting does: every third step those with large gradients are cloned, the optimizer's state is cut and grown with them, and transparent ones are pruned."""
# later: grows
import torch
from torch import nn
import torch.nn.functional as F

class Gaussians:
    def __init__(self, n):
        make = lambda *s: nn.Parameter(torch.rand(*s, device="cuda").requires_grad_(True))
        self.p = {"xyz": make(n, 2), "color": make(n, 3), "opacity": make(n, 1), "scaling": make(n, 2)}
        self.accum, self.denom = torch.zeros((n, 1), device="cuda"), torch.zeros((n, 1), device="cuda")
        self.optimizer = torch.optim.Adam([{"params": [v], "lr": 1e-3, "name": k} for k, v in self.p.items()], lr=0.0, eps=1e-15)
    def replace(self, edit):
        for group in self.optimizer.param_groups:
            old = group["params"][0]
            state = self.optimizer.state.pop(old, None)
            new = nn.Parameter(edit(old.data, group["name"], False).requires_grad_(True))
            if state is not None:
                state["exp_avg"], state["exp_avg_sq"] = edit(state["exp_avg"], group["name"], True), edit(state["exp_avg_sq"], group["name"], True)
                self.optimizer.state[new] = state
            group["params"][0] = new
            self.p[group["name"]] = new
    def densify(self, limit):
        grads = self.accum / self.denom
        grads[grads.isnan()] = 0.0
        chosen = torch.where(torch.norm(grads, dim=-1) >= limit, True, False)
        print("cloning", int(chosen.sum()), "of", len(chosen))
        self.replace(lambda t, name, state: torch.cat((t, torch.zeros_like(t[chosen]) if state else t[chosen]), dim=0))
        keep = torch.sigmoid(self.p["opacity"]).squeeze() > 0.005
        self.replace(lambda t, name, state: t[keep])
        n = len(self.p["xyz"])
        self.accum, self.denom = torch.zeros((n, 1), device="cuda"), torch.zeros((n, 1), device="cuda")
        torch.cuda.empty_cache()

def render(p, size=48):
    grid = torch.stack(torch.meshgrid(*(torch.linspace(0, 1, size, device="cuda"),) * 2, indexing="ij"), -1).view(-1, 1, 2)
    d = (grid - p["xyz"][None]) / torch.exp(p["scaling"] - 3)[None]
    w = torch.exp(-.5 * d.pow(2).sum(-1)) * torch.sigmoid(p["opacity"]).T
    return (w @ torch.sigmoid(p["color"])).view(size, size, 3)

scene = Gaussians(800)
target = torch.rand(48, 48, 3).cuda()
bg = torch.tensor([0, 0, 0], dtype=torch.float32, device="cuda")
ema = 0.0
for iteration in range(1, 13):
    image = render(scene.p) + bg
    l1 = torch.abs(image - target).mean()
    loss = 0.8 * l1 + 0.2 * F.mse_loss(image, target)
    loss.backward()
    with torch.no_grad():
        ema = 0.4 * loss.item() + 0.6 * ema
        visible = scene.p["opacity"].squeeze() > 0
        scene.accum[visible] += torch.norm(scene.p["xyz"].grad[visible], dim=-1, keepdim=True)
        scene.denom[visible] += 1
        if iteration % 3 == 0 and iteration < 10:
            scene.densify(0.0)
        scene.optimizer.step()
        scene.optimizer.zero_grad(set_to_none=True)
    print(iteration, f"{ema:.7f}")
