"""A training iteration captured as a CUDA graph, as PyTorch's notes on CUDA semantics do it for a whole network."""

WARMUP_ITERATIONS = 3  # before a capture, on a stream of their own


class GraphLoop:
    """A loop whose iterations replay one captured iteration. The graph's tensors live in a private pool of the allocator."""

    def __init__(self, loop):
        if not loop.device.startswith("cuda"):
            raise ValueError("CUDA graphs are measured on cuda:N, not on %s" % loop.device)
        self.loop, self.torch, self.graph = loop, loop.torch, None

    def capture(self):
        cuda, loop = self.torch.cuda, self.loop
        stream = cuda.Stream()
        stream.wait_stream(cuda.current_stream())
        loop.load()
        with cuda.stream(stream):
            for _ in range(WARMUP_ITERATIONS):
                loop.clear_gradients()
                loop.train()
        cuda.current_stream().wait_stream(stream)
        loop.clear_gradients()
        self.graph = cuda.CUDAGraph()
        with cuda.graph(self.graph):
            loop.train()

    def iterate(self):
        if self.graph is None:
            self.capture()
        self.graph.replay()
