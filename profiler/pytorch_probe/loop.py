"""A job's model and its training iterations."""
from .adapters import attach
from .layers import make_layers

PRECISIONS = {"fp32": ("float32", None), "amp-bf16": ("float32", "bfloat16"), "amp-fp16": ("float32", "float16"),
              "bf16": ("bfloat16", None), "fp16": ("float16", None)}  # parameters and autocast


def adamw_8bit(parameters):
    try:
        import bitsandbytes
    except ImportError as error:
        raise RuntimeError("the optimizer adamw-8bit is bitsandbytes', which is not installed (%s)" % error)
    return bitsandbytes.optim.AdamW8bit(parameters)


class Loop:
    """A job's model, and its training iterations as in typical scripts."""

    def __init__(self, torch, job, device):
        self.torch, self.device = torch, device
        model, training = job["model"], job.get("training", {})
        precision = training.get("precision", "fp32")
        if precision not in PRECISIONS:
            raise ValueError("the probe has no precision %s" % precision)
        parameters, autocast = PRECISIONS[precision]
        self.dtype, self.autocast = getattr(torch, parameters), getattr(torch, autocast) if autocast else None
        self.input, self.loss_name = model["input"], model["loss"]
        self.shape = (training.get("batch_size", 1), *self.input["shape"])
        self.keeps_input = self.input.get("requires_grad", False)
        self.model = self.build(model, device)
        if "lora" in training:
            attach(torch, self.model, training["lora"], self.dtype)
        self.target_shape = self.shape_of_target(model)
        self.optimizer = self.make_optimizer(training.get("optimizer", "adamw"))
        self.x = self.target = self.output = self.loss = None
        self.forward = torch.compile(self.model) if training.get("compile") else self.model

    def build(self, model, device):
        """Made in its type: a copy in another one would be memory that no script takes."""
        before = self.torch.get_default_dtype()
        self.torch.set_default_dtype(self.dtype)
        try:
            with self.torch.device(device):
                return self.torch.nn.Sequential(*make_layers(self.torch)(model["layers"]))
        finally:
            self.torch.set_default_dtype(before)

    def shape_of_target(self, model):
        if self.loss_name == "mean":
            return None
        if self.loss_name not in ("cross_entropy", "mse"):
            raise ValueError("the probe has no loss %s" % self.loss_name)
        with self.torch.no_grad():
            network = self.build(model, "meta")
            output = network(self.torch.zeros(self.shape, dtype=self.input_dtype(), device="meta")).shape
        # cross_entropy takes the second dimension as that of the classes, whatever a script means by it.
        return output[:1] + output[2:] if self.loss_name == "cross_entropy" else output

    def input_dtype(self):
        return self.torch.int64 if self.input.get("dtype") == "int64" else self.dtype

    def make_optimizer(self, name):
        optim, parameters = self.torch.optim, [p for p in self.model.parameters() if p.requires_grad]
        makers = {"none": lambda p: None, "sgd": lambda p: optim.SGD(p, lr=1e-3),
                  "sgd-momentum": lambda p: optim.SGD(p, lr=1e-3, momentum=0.9),
                  "adam": lambda p: optim.Adam(p), "adamw": lambda p: optim.AdamW(p), "adamw-8bit": adamw_8bit}
        if name not in makers:
            raise ValueError("the probe has no optimizer %s" % name)
        return makers[name](parameters)

    def load(self):
        """Frees the old batch, then creates a new one, as data loaders do; an input with a gradient is kept."""
        torch = self.torch
        if self.x is not None and self.keeps_input:
            return
        self.x = self.target = None
        self.x = torch.zeros(self.shape, dtype=self.input_dtype(), device=self.device, requires_grad=self.keeps_input)
        if self.target_shape is not None:
            dtype = torch.int64 if self.loss_name == "cross_entropy" else self.dtype
            self.target = torch.zeros(self.target_shape, dtype=dtype, device=self.device)

    def criterion(self, output):
        functional = self.torch.nn.functional
        if self.loss_name == "mean":
            return output.mean()
        if self.loss_name == "mse":
            return functional.mse_loss(output, self.target)
        return functional.cross_entropy(output, self.target)

    def clear_gradients(self):
        self.model.zero_grad(set_to_none=True)
        if self.keeps_input:
            self.x.grad = None

    def iterate(self):
        self.load()
        self.clear_gradients()
        self.train()

    def train(self):
        with self.torch.autocast(self.device.split(":")[0], self.autocast or self.torch.bfloat16,
                                 enabled=self.autocast is not None):
            if self.keeps_input:
                self.loss = self.criterion(self.forward(self.x))
            else:
                self.output = self.forward(self.x)
                self.loss = self.criterion(self.output)
        self.loss.backward()
        if self.optimizer is not None:
            self.optimizer.step()
