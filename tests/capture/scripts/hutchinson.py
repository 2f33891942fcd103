"""Second order: a Hessian's diagonal by Hutchinson's estimate every other step (Sophia), curvature by torch.func on a small head."""
import torch
from torch import nn
from torch.func import functional_call, hessian, jvp, vjp, grad

class Sophia(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.96, 0.99), rho=0.04):
        super().__init__(params, dict(lr=lr, betas=betas, rho=rho))
    @torch.no_grad()
    def update_hessian(self, diagonals):
        for group in self.param_groups:
            for p, d in zip(group["params"], diagonals):
                state = self.state[p]
                if "hessian" not in state:
                    state["hessian"] = torch.zeros_like(p)
                state["hessian"].mul_(group["betas"][1]).add_(d.abs(), alpha=1 - group["betas"][1])
    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None: continue
                state = self.state[p]
                m = state.setdefault("exp_avg", torch.zeros_like(p))
                h = state.setdefault("hessian", torch.zeros_like(p))
                m.mul_(group["betas"][0]).add_(p.grad, alpha=1 - group["betas"][0])
                ratio = (m.abs() / (group["rho"] * h + 1e-15)).clamp(None, 1)
                p.addcmul_(m.sign(), ratio, value=-group["lr"])

torch.manual_seed(0)
body = nn.Sequential(nn.Conv1d(8, 64, 5, padding=2), nn.SiLU(), nn.Conv1d(64, 64, 5, padding=2), nn.SiLU(), nn.AdaptiveAvgPool1d(16), nn.Flatten()).cuda()
head = nn.Linear(1024, 4).cuda()
params = [*body.parameters(), *head.parameters()]
opt = Sophia(params)
for step in range(6):
    x, y = torch.randn(128, 8, 256, device="cuda"), torch.randint(0, 4, (128,), device="cuda")
    loss = nn.functional.cross_entropy(head(body(x)), y)
    grads = torch.autograd.grad(loss, params, create_graph=step % 2 == 0)
    if step % 2 == 0:
        noise = [torch.randint_like(p, 0, 2) * 2 - 1 for p in params]
        products = torch.autograd.grad(sum((g * n).sum() for g, n in zip(grads, noise)), params)
        opt.update_hessian([n * h for n, h in zip(noise, products)])
    for p, g in zip(params, grads): p.grad = g.detach()
    opt.step(); opt.zero_grad()
    features = body(x[:4]).detach()
    f = lambda b: nn.functional.cross_entropy(functional_call(head, {"weight": head.weight, "bias": b}, features), y[:4])
    curvature = hessian(f)(head.bias.detach())
    out, tangent = jvp(f, (head.bias.detach(),), (torch.ones_like(head.bias),))
    _, pull = vjp(f, head.bias.detach())
    print(step, loss.item(), curvature.shape, tangent.item(), pull(torch.ones_like(out))[0].shape, grad(f)(head.bias.detach()).norm().item())
