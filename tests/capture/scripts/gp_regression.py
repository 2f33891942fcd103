"""gpytorch: an exact Gaussian process with a deep kernel: Cholesky or conjugate gradients on the GPU, no batches at all."""
import gpytorch
import torch

class GP(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.features = torch.nn.Sequential(torch.nn.Linear(16, 256), torch.nn.ReLU(), torch.nn.Linear(256, 2))
        self.mean, self.cov = gpytorch.means.ConstantMean(), gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=2))
    def forward(self, x):
        h = self.features(x)
        h = h - h.min(0)[0]
        h = 2 * (h / h.max(0)[0]) - 1
        return gpytorch.distributions.MultivariateNormal(self.mean(h), self.cov(h))

x, y = torch.randn(600, 16).cuda(), torch.randn(600).cuda()
likelihood = gpytorch.likelihoods.GaussianLikelihood().cuda()
model = GP(x, y, likelihood).cuda()
model.train(); likelihood.train()
opt = torch.optim.Adam(model.parameters(), lr=0.1)
mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
for i in range(6):
    opt.zero_grad()
    loss = -mll(model(x), y)
    loss.backward()
    print(i, loss.item(), model.cov.base_kernel.lengthscale.detach().cpu().numpy().tolist())
    opt.step()
