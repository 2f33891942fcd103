"""Models from a configuration alone, by the installed transformers, diffusers or timm: the user's versions, no weights, no download."""
from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
from typing import Any, Optional

import torch
import torch.nn as nn

from .job_keys import NotAnswered


class Described:
    """A model, the library that made it, and what a batch must know."""

    def __init__(self, model: nn.Module, library: str, config: Any):
        self.model, self.library, self.config = model, library, config


def library_of(config: dict[str, Any]) -> str:
    if "_class_name" in config:
        return "diffusers"
    if "model_type" in config:
        return "transformers"
    if "architecture" in config:
        return "timm"
    raise NotAnswered("the configuration has no model_type (transformers), _class_name (diffusers) or architecture (timm), so no library can make its model")


def imported(library: str) -> Any:
    try:
        return importlib.import_module(library)
    except ImportError as error:
        raise NotAnswered(f"{library}, whose model this is, cannot be imported ({error}); install it in the Python that --python names") from None


def versions(library: str, also: tuple[str, ...] = ()) -> str:
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in (library, *also, "torch"))


def prepare(config: dict[str, Any]) -> None:
    """Imports the model's code. Errors are those of make()."""
    library = imported(library_of(config))
    if library.__name__ == "transformers" and config["model_type"] in library.CONFIG_MAPPING:
        _class(library, library.CONFIG_MAPPING[config["model_type"]].from_dict(config))
    elif library.__name__ == "diffusers":
        getattr(library, config["_class_name"], None)


def make(config: dict[str, Any], folder: str, settings: dict[str, Any], dtype: torch.dtype) -> Described:
    library = library_of(config)
    return {"transformers": _transformers, "diffusers": _diffusers, "timm": _timm}[library](config, folder, settings, dtype)


def _transformers(config: dict[str, Any], folder: str, settings: dict[str, Any], dtype: torch.dtype) -> Described:
    transformers = imported("transformers")
    name = config["model_type"]
    if name not in transformers.CONFIG_MAPPING:
        own = config.get("auto_map") is not None
        raise NotAnswered(f"transformers {transformers.__version__} has no model_type {name}" +
                          ("; its code comes with the checkpoint and is not run: record a script that loads it, with memfathom capture train.py" if own else
                           "; install the release that has it, or record your script with memfathom capture train.py"))
    made = transformers.CONFIG_MAPPING[name].from_dict(config)
    kind = _class(transformers, made)
    options = {"dtype" if int(transformers.__version__.split(".")[0]) >= 5 else "torch_dtype": dtype}
    if settings.get("attention"):
        options["attn_implementation"] = settings["attention"]
    return Described(kind(made, **options), "transformers", made)


def _class(transformers: Any, config: Any) -> Any:
    """The class that the configuration names, else the one that trains: a language model, a classifier."""
    for name in config.architectures or ():
        if hasattr(transformers, name):
            return getattr(transformers, name)._from_config
    for auto in ("AutoModelForCausalLM", "AutoModelForImageTextToText", "AutoModelForSeq2SeqLM", "AutoModelForImageClassification", "AutoModelForSemanticSegmentation", "AutoModelForAudioClassification"):
        found = getattr(transformers, auto, None)
        if found is not None and type(config) in found._model_mapping:
            return found.from_config
    return transformers.AutoModel.from_config


def _diffusers(config: dict[str, Any], folder: str, settings: dict[str, Any], dtype: torch.dtype) -> Described:
    diffusers = imported("diffusers")
    kind = getattr(diffusers, config["_class_name"], None)
    if kind is None or not hasattr(kind, "from_config"):
        raise NotAnswered(f"diffusers {diffusers.__version__} has no class {config['_class_name']}; install the release that has it")
    model = kind.from_config({key: value for key, value in config.items() if key != "_name_or_path"}).to(dtype)
    return Described(model, "diffusers", model.config)


def _timm(config: dict[str, Any], folder: str, settings: dict[str, Any], dtype: torch.dtype) -> Described:
    timm = imported("timm")
    options = dict(config.get("model_args", {}))
    if "num_classes" in config:
        options["num_classes"] = config["num_classes"]
    try:
        model = timm.create_model(config["architecture"], pretrained=False, **options)
    except RuntimeError as error:
        raise NotAnswered(f"timm {timm.__version__}: {error}") from None
    return Described(model.to(dtype), "timm", config)


def read_config(given: Any, folder: Optional[str]) -> tuple[dict[str, Any], str]:
    """The configuration and the folder it lies in."""
    if isinstance(given, dict):
        return given, folder or ""
    path = os.path.join(given, "config.json") if os.path.isdir(given) else given
    if not os.path.exists(path):
        raise NotAnswered(f"{given}: there is no such file; name a config.json or its folder")
    with open(path, encoding="utf-8") as file:
        return json.load(file), os.path.dirname(os.path.abspath(path))
