"""A job's model and its training iterations."""
from .layers import make_layers

PRECISIONS = {"fp32": None, "amp-bf16": "bfloat16"}  # autocast type; parameters are fp32


class Loop:
    """A job's model, and its training iterations as in typical scripts."""

    def __init__(self, torch, job, device):
        self.torch, self.device = torch, device
        model, training = job["model"], job.get("training", {})
        precision = training.get("precision", "fp32")
        if precision not in PRECISIONS:
            raise ValueError("the probe has no precision %s" % precision)
        self.autocast = getattr(torch, PRECISIONS[precision]) if PRECISIONS[precision] else None
        self.input, self.loss_name = model["input"], model["loss"]
        self.shape = (training.get("batch_size", 1), *self.input["shape"])
        self.keeps_input = self.input.get("requires_grad", False)
        with torch.device(device):
            self.model = torch.nn.Sequential(*make_layers(torch)(model["layers"]))
        self.target_shape = self.shape_of_target(model)
        self.optimizer = self.make_optimizer(training.get("optimizer", "adamw"))
        self.x = self.target = self.output = self.loss = None

    def shape_of_target(self, model):
        if self.loss_name == "mean":
            return None
        if self.loss_name == "cross_entropy":
            return self.shape[:1]
        if self.loss_name != "mse":
            raise ValueError("the probe has no loss %s" % self.loss_name)
        torch = self.torch
        with torch.no_grad(), torch.device("meta"):
            return torch.nn.Sequential(*make_layers(torch)(model["layers"]))(torch.zeros(self.shape)).shape

    def make_optimizer(self, name):
        optim, parameters = self.torch.optim, list(self.model.parameters())
        makers = {"none": lambda p: None, "sgd": lambda p: optim.SGD(p, lr=1e-3),
                  "sgd-momentum": lambda p: optim.SGD(p, lr=1e-3, momentum=0.9),
                  "adam": lambda p: optim.Adam(p), "adamw": lambda p: optim.AdamW(p)}
        if name not in makers:
            raise ValueError("the probe has no optimizer %s" % name)
        return makers[name](parameters)

    def load(self):
        """Frees the old batch, then creates a new one, as data loaders do; an input with a gradient is kept."""
        torch = self.torch
        if self.x is not None and self.keeps_input:
            return
        self.x = self.target = None
        dtype = torch.int64 if self.input.get("dtype") == "int64" else torch.float32
        self.x = torch.zeros(self.shape, dtype=dtype, device=self.device, requires_grad=self.keeps_input)
        if self.target_shape is not None:
            dtype = torch.int64 if self.loss_name == "cross_entropy" else torch.float32
            self.target = torch.zeros(self.target_shape, dtype=dtype, device=self.device)

    def criterion(self, output):
        functional = self.torch.nn.functional
        if self.loss_name == "mean":
            return output.mean()
        return (functional.mse_loss if self.loss_name == "mse" else functional.cross_entropy)(output, self.target)

    def clear_gradients(self):
        self.model.zero_grad(set_to_none=True)
        if self.keeps_input:
            self.x.grad = None

    def iterate(self):
        self.load()
        self.clear_gradients()
        with self.torch.autocast(self.device.split(":")[0], self.autocast or self.torch.bfloat16,
                                 enabled=self.autocast is not None):
            if self.keeps_input:
                self.loss = self.criterion(self.model(self.x))
            else:
                self.output = self.model(self.x)
                self.loss = self.criterion(self.output)
        self.loss.backward()
        if self.optimizer is not None:
            self.optimizer.step()
