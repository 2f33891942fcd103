"""Checkpoints of a recorded script: tensors without memory are kept in mind and not written, so no file of the user is replaced.

What was saved under a name, or into an object like io.BytesIO, is what torch.load gives back. Files of earlier runs are read
as ever, to the host, and then moved to the device that the script asked for.
"""
import os
import weakref

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_leaves, tree_map_only

from .libraries import on_import

NOT_WRITTEN = "a checkpoint is not written, its tensors have no memory"


def _key(file):
    return os.path.realpath(file) if isinstance(file, (str, os.PathLike)) else None


def _destination(map_location):
    """The device of a map_location, or None if it is a function or a table, which torch.load follows by itself."""
    return torch.device(map_location) if isinstance(map_location, (str, int)) or isinstance(map_location, torch.device) else None


def remember(recorder, patches):
    save, load = torch.save, torch.load
    by_name, by_object = {}, weakref.WeakKeyDictionary()

    def saved(obj, f, *args, **kwargs):
        if not any(isinstance(leaf, FakeTensor) for leaf in tree_leaves(obj)):
            return save(obj, f, *args, **kwargs)
        recorder.guess(f"torch.save: {NOT_WRITTEN}")
        key, kept = _key(f), tree_map_only(torch.Tensor, lambda t: t.detach().to("cpu"), obj)
        if key is not None:
            by_name[key] = kept
        else:
            by_object[f] = kept

    def loaded(f, map_location=None, *args, **kwargs):
        key, where = _key(f), _destination(map_location)
        known = by_name.get(key) if key is not None else by_object.get(f)
        places = set()

        def on_host(storage, place):
            places.add(place.split(":")[0])
            return storage

        if known is None and (where is not None or map_location is None):
            known = load(f, on_host, *args, **kwargs)
            if where is None and places == {"cuda"}:
                where = torch.device("cuda")
        elif known is None:
            return load(f, map_location, *args, **kwargs)
        elif where is None:
            where = torch.device("cuda")
        return known if where is None or where.type == "cpu" else tree_map_only(torch.Tensor, lambda t: t.to(where), known)

    for owner in (torch, torch.serialization):
        patches.set(owner, "save", saved)
        patches.set(owner, "load", loaded)

    def of_safetensors(module):
        write = module.save_file

        def save_file(tensors, filename, *args, **kwargs):
            if not any(isinstance(leaf, FakeTensor) for leaf in tree_leaves(dict(tensors))):
                return write(tensors, filename, *args, **kwargs)
            recorder.guess(f"safetensors: {NOT_WRITTEN}")
            return None

        patches.set(module, "save_file", save_file)

    on_import("safetensors.torch", of_safetensors, patches)
