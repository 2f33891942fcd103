"""Takes one sample of one training job in PyTorch: the request is JSON on standard input, the reply on standard output.

`memfathom calibrate --framework pytorch` runs this package with the Python of --python, once per sample (boot.py says
how). It uses the same messages (profiler/probe_message.h) and stages as memfathom's own probe. It needs Python 3.8 and
torch, and writes no file but the one that a request names. A job is a stack of layers (docs/jobs.md); unsupported layers are rejected.
"""
