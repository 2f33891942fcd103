"""Library calls that an allocation belongs to. The replay sizes their work areas for the GPU that is asked about."""
import torch

DTYPES = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16", torch.float64: "fp64", torch.complex64: "fp32",
          torch.complex128: "fp64", torch.complex32: "fp16"}
LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


def _convolution(name, args):
    backward = name == "convolution_backward"
    x, weight = (args[1], args[2]) if backward else (args[0], args[1])
    stride, padding, dilation, transposed, output_padding, groups = args[4:10] if backward else args[3:9]
    wanted = zip(("data_gradient", "weight_gradient"), args[10]) if backward else (("forward", True),)
    last = LAST.get(x.ndim)
    return {"conv": {"kinds": [kind for kind, asked in wanted if asked], "dtype": DTYPES.get(x.dtype, "fp32"), "input": list(x.shape),
                     "weight": list(weight.shape), "stride": list(stride), "padding": list(padding), "output_padding": list(output_padding),
                     "dilation": list(dilation), "groups": int(groups), "transposed": bool(transposed),
                     "channels_last": bool(last and x.is_contiguous(memory_format=last) and not x.is_contiguous())}}


def _fourier(name, args):
    x, dims = args[0], list(args[1])
    kind = {"_fft_r2c": "real_to_complex", "_fft_c2r": "complex_to_real", "_fft_c2c": "complex_to_complex"}[name]
    sizes = list(x.shape)
    if name == "_fft_c2r":
        sizes[dims[-1]] = int(args[3])
    extents = [sizes[d] for d in dims]
    transformed = 1
    for extent in extents:
        transformed *= extent
    everything = 1
    for size in sizes:
        everything *= size
    if not 1 <= len(extents) <= 3 or not transformed:
        return None
    return {"fft": {"kind": kind, "extents": extents, "batch": max(1, everything // transformed), "dtype": DTYPES.get(x.dtype, "fp32")}}


def _attention(name, args, kwargs):
    backward = name.endswith("_backward")
    q, k = (args[1], args[2]) if backward else (args[0], args[1])
    if q.dim() != 4:
        return None
    kernel = "flash" if "flash" in name else "efficient"
    position = 11 if backward and kernel == "flash" else 4
    causal = kwargs.get("is_causal", args[position] if len(args) > position and isinstance(args[position], bool) else False)
    return {"attention": {"kernel": kernel, "backward": backward, "causal": bool(causal), "dtype": DTYPES.get(q.dtype, "fp16"), "q": list(q.shape), "k": list(k.shape)}}


def call_of(name, args, kwargs):
    """The call as keys of its first alloc event, or None for operations without a work area of their own."""
    if name in ("convolution", "convolution_backward"):
        return _convolution(name, args)
    if name in ("_fft_r2c", "_fft_c2r", "_fft_c2c"):
        return _fourier(name, args)
    if name.startswith(("_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention")) and "for_cpu" not in name:
        return _attention(name, args, kwargs)
    return None


# Factorisations by cuSOLVER or MAGMA.
FACTORISATIONS = ("linalg_cholesky_ex", "linalg_ldl_factor_ex", "linalg_lu_factor_ex", "_linalg_svd", "_linalg_eigh", "linalg_eig", "linalg_qr", "geqrf", "linalg_inv_ex", "_linalg_solve_ex",
                  "cholesky_inverse", "linalg_lstsq")


def work_bytes(name, args):
    """What a kernel allocates in C++ and releases before it returns, where no dispatcher sees it. Approximate: long rows are sorted
    by a library that needs keys and indices a second time, a factorisation works in a matrix of its own."""
    if name in FACTORISATIONS:
        return args[0].numel() * args[0].element_size()
    if name in ("sort", "argsort") and args[0].numel() > 4096:
        return args[0].numel() * (args[0].element_size() + 8)
    return 0
