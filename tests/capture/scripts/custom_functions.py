"""Hand-written autograd.Functions: in-place activation, recomputing swish, a linear layer with its own backward, a straight-through sign, gradient reversal; setup_context style."""
import torch, torch.nn as nn, torch.nn.functional as F
from torch.autograd import Function
from torch.autograd.function import once_differentiable

class MemoryEfficientSwish(Function):
    @staticmethod
    def forward(ctx, i):
        ctx.save_for_backward(i)
        return i * torch.sigmoid(i)
    @staticmethod
    def backward(ctx, grad_output):
        i, = ctx.saved_tensors
        s = torch.sigmoid(i)
        return grad_output * (s * (1 + i * (1 - s)))

class InplaceLeaky(Function):
    @staticmethod
    def forward(ctx, x, slope):
        ctx.slope = slope
        F.leaky_relu_(x, slope)
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x
    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return torch.where(x >= 0, grad, grad * ctx.slope), None

class MyLinear(Function):
    @staticmethod
    def forward(x, weight, bias):
        return x.mm(weight.t()).add_(bias)
    @staticmethod
    def setup_context(ctx, inputs, output):
        x, weight, bias = inputs
        ctx.save_for_backward(x, weight)
        ctx.set_materialize_grads(False)
    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        gx = grad.mm(weight) if ctx.needs_input_grad[0] else None
        gw = grad.t().mm(x) if ctx.needs_input_grad[1] else None
        gb = grad.sum(0) if ctx.needs_input_grad[2] else None
        return gx, gw, gb

class SignSTE(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.abs() <= 1)
        return x.sign()
    @staticmethod
    def backward(ctx, g):
        inside, = ctx.saved_tensors
        return g * inside

class Reverse(Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x.view_as(x)
    @staticmethod
    def backward(ctx, g):
        return g.neg() * ctx.alpha, None

class Layer(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.empty(o, i)), nn.Parameter(torch.zeros(o))
        nn.init.kaiming_uniform_(self.weight, a=5 ** 0.5)
    def forward(self, x):
        return MyLinear.apply(x, self.weight, self.bias)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = Layer(784, 1024), Layer(1024, 1024), Layer(1024, 1024)
        self.bn = nn.BatchNorm1d(1024)
        self.cls, self.dom = Layer(1024, 10), nn.Sequential(nn.Linear(1024, 512), nn.ReLU(True), nn.Linear(512, 2))
    def forward(self, x, alpha):
        x = MemoryEfficientSwish.apply(self.a(x))
        x = InplaceLeaky.apply(self.bn(self.b(x)), 0.1)
        x = SignSTE.apply(self.c(x))
        return self.cls(x), self.dom(Reverse.apply(x, alpha))

device = 'cuda' if torch.cuda.is_available() else 'cpu'
net = Net().to(device)
opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, nesterov=True, weight_decay=5e-4)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=0.1, total_steps=100)
for it in range(100):
    p = it / 100
    alpha = 2. / (1. + torch.exp(torch.tensor(-10. * p))) - 1
    xs, xt = torch.rand(2048, 784, device=device), torch.rand(2048, 784, device=device)
    y = torch.randint(0, 10, (2048,), device=device)
    opt.zero_grad()
    cls, dom = net(xs, alpha.item())
    err = F.cross_entropy(cls, y) + F.cross_entropy(dom, torch.zeros(2048, dtype=torch.long, device=device))
    _, dom_t = net(xt, alpha.item())
    err = err + F.cross_entropy(dom_t, torch.ones(2048).long().to(device))
    err.backward()
    torch.nn.utils.clip_grad_value_(net.parameters(), 1.0)
    opt.step(); sched.step()
    acc = (cls.argmax(1) == y).float().mean().item()
    print('iter %d loss %.3f acc %.2f lr %.4f' % (it, err.item(), acc, sched.get_last_lr()[0]))
