"""Pretrained weights that are not on this machine and cannot be fetched: a recording needs shapes only, the model keeps its own."""
import urllib.error

import torch

from .libraries import on_import


class Unfetched(dict):
    """Stands for a checkpoint that could not be fetched."""


def do_without_weights(recorder, patches):
    fetch, load = torch.hub.load_state_dict_from_url, torch.nn.Module.load_state_dict

    def say(name):
        recorder.guess(f"the weights {name} are not here and could not be fetched: the model keeps its own, whose shapes are the same")

    def fetched(url, *args, **kwargs):
        try:
            return fetch(url, *args, **kwargs)
        except urllib.error.URLError:
            say(url.split("/")[-1])
            return Unfetched()

    def loaded(module, state_dict, *args, **kwargs):
        if isinstance(state_dict, Unfetched):
            return torch.nn.modules.module._IncompatibleKeys([], [])
        return load(module, state_dict, *args, **kwargs)

    def of_timm(builder):
        plain = builder.load_pretrained

        def load_pretrained(model, pretrained_cfg=None, *args, **kwargs):
            try:
                plain(model, pretrained_cfg, *args, **kwargs)
            except (OSError, RuntimeError) as error:
                if not any(word in f"{type(error).__name__} {error}" for word in ("LocalEntryNotFound", "Connect", "resolve", "Name or service", "Offline")):
                    raise
                say(f"of {type(model).__name__} (timm)")

        patches.set(builder, "load_pretrained", load_pretrained)

    patches.set(torch.hub, "load_state_dict_from_url", fetched)
    patches.set(torch.nn.Module, "load_state_dict", loaded)
    on_import("torchvision.models._api", lambda api: patches.set(api, "load_state_dict_from_url", fetched), patches)
    on_import("timm.models._builder", of_timm, patches)
