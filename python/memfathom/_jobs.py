"""Jobs, in whatever form people have them, as requests of the C interface.

Nothing is interpreted here: objects of other libraries become the text of the file that the library
would have written, and libmemfathom reads it as it reads that file (docs/your-files.md).
"""

from __future__ import annotations

import dataclasses
import difflib
import enum
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Union

from ._errors import JobError
from ._results import Gpu, Model

# Keys of a job by section (docs/contract.md, section 3), so that `batch_size=4` needs no section.
# tests/python/test_jobs.py compares them with that page.
_SECTIONS: dict[str, tuple[str, ...]] = {
    "training": (
        "mode",
        "batch_size",
        "sequence_length",
        "target_sequence_length",
        "image_size",
        "num_frames",
        "num_images",
        "new_tokens",
        "freeze",
        "precision",
        "autocast",
        "optimizer",
        "gradient_checkpointing",
        "checkpoint_reentrant",
        "gradient_accumulation_steps",
        "attention",
        "lora",
        "quantization",
        "preference",
        "fused_loss",
        "drop_last",
        "warmup_forward",
        "cudnn_benchmark",
        "grad_scaler",
        "hold_output",
        "padding_mask",
        "channels_last",
        "retain_graph",
        "use_cache",
        "compile",
        "dropout",
        "label_smoothing",
        "loss",
        "samples_per_epoch",
        "evaluation",
        "gradient_clipping",
        "zero_grad",
        "kv_cache",
        "lengths",
        "logits_to_keep",
    ),
    "parallel": (
        "num_gpus",
        "tensor",
        "pipeline",
        "gpus_per_node",
        "zero_stage",
        "fsdp",
        "fsdp_version",
        "limit_all_gathers",
        "reduce_precision",
        "offload",
        "zero",
        "gradient_as_bucket_view",
        "sequence_parallel",
    ),
    "target": (
        "gpu",
        "memory",
        "device",
        "architecture",
        "used_by_others",
        "margin",
        "calibration",
        "stack",
    ),
}
_SECTION_OF = {key: section for section, keys in _SECTIONS.items() for key in keys}

#: What the functions of this package take as a job, or several of these in a list: a later one wins.
Job = Union[Mapping[str, Any], str, "os.PathLike[str]", Iterable[Any], object]


def _plain(value: Any) -> object:
    """What json.dumps cannot write by itself: enums, sets, paths and torch's types."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    to_dict = getattr(value, "to_dict", None)
    if callable(to_dict):
        return to_dict()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _fields_of(value)
    # Numbers of numpy and torch, which are no int and no float.
    for as_number in ("__index__", "__float__"):
        if hasattr(type(value), as_number) and not isinstance(value, type):
            return int(value) if as_number == "__index__" else float(value)
    return str(value).replace("torch.", "")


def _written(what: str, content: object, *, allow_nan: bool = True) -> str:
    try:
        return json.dumps(content, default=_plain, allow_nan=allow_nan)
    except (RecursionError, ValueError) as error:
        if "float" in str(error):
            raise JobError(f"{what} has a number that is infinite or not a number") from None
        raise JobError(f"{what} contains itself, or is nested too deeply to be a job") from None
    except TypeError as error:
        raise JobError(f"{what} cannot be written as JSON: {error}") from None


def _path(path: str) -> str:
    if not path.strip():
        raise JobError("a job is an empty text; give a path, YAML text, or the keys of a job (model=...)")
    if "\0" in path:
        raise JobError(f"{path!r} is no path: it has a zero byte")
    return path


def _fields_of(value: Any) -> dict[str, object]:
    # None is a key that was not given.
    fields = {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
    return {key: field for key, field in fields.items() if field is not None}


@dataclasses.dataclass(frozen=True)
class Document:
    """The contents of a file; ``name`` stands for it in messages."""

    name: str
    text: str


def _document(name: str, content: object) -> dict[str, str]:
    return {"name": name, "text": _written(f"the {name}" if name == "job" else name, content)}


# Deeper lists than that are a mistake.
_MAX_DEPTH = 20


def _entries(job: Any, depth: int = 0) -> list[Union[str, dict[str, str]]]:
    """The entries of a request's `files`: paths, and documents by their contents."""
    if isinstance(job, str):
        # A path has no line breaks, and no colon before a blank.
        is_text = "\n" in job or ": " in job or job.lstrip().startswith("{")
        return [{"name": "job", "text": job} if is_text else _path(job)]
    if isinstance(job, os.PathLike):
        return [_path(os.fsdecode(job))]
    if isinstance(job, Document):
        return [{"name": job.name, "text": job.text}]
    if isinstance(job, Mapping):
        for section in {"training", "parallel", "target"} & job.keys():
            _written(f"the job's {section}", job[section], allow_nan=False)
        return [_document("job", dict(job))]
    if isinstance(job, (list, tuple, Iterator)):
        if depth == _MAX_DEPTH:
            raise JobError("the list of files contains itself, or is nested too deeply")
        return [entry for one in job for entry in _entries(one, depth + 1)]
    name = type(job).__name__
    to_dict = getattr(job, "to_dict", None)
    if callable(to_dict):  # TrainingArguments, PretrainedConfig, LoraConfig
        return [_document(name, to_dict())]
    if dataclasses.is_dataclass(job) and not isinstance(job, type):
        return [_document(name, _fields_of(job))]
    config = getattr(job, "config", None)
    if callable(getattr(config, "to_dict", None)):  # a PreTrainedModel
        return _entries(config)
    raise JobError(
        f"a job cannot be a {name}; give a dict, a path, YAML text, a TrainingArguments, a model's config, a LoraConfig, "
        "or a list of these"
    )


def _dotted(key: str, value: Any) -> tuple[str, Any]:
    if isinstance(value, (Gpu, Model)):  # of gpus() and models()
        value = value.name
    if key == "model":
        return ("model.preset", value) if isinstance(value, str) else ("model", value)
    if key in ("id", "allocator", "training", "parallel", "target") or "." in key:
        return key, value
    if key in _SECTION_OF:
        return f"{_SECTION_OF[key]}.{key}", value
    near = difflib.get_close_matches(key, [*_SECTION_OF, "model"], n=1)
    hint = f"; did you mean {near[0]}?" if near else "; docs/contract.md section 3 lists the keys"
    raise JobError(f"{key} is no key of a job{hint}")


def request(job: Any, keys: Mapping[str, Any], options: Mapping[str, Any]) -> str:
    """The request of include/memfathom/memfathom.h for a job, keys that win over it, and options."""
    entries = [] if job is None else _entries(job)
    # A model that is given as an object (a PretrainedConfig, a PreTrainedModel) is read as its file.
    model = keys.get("model")
    if model is not None and not isinstance(model, (str, Mapping, Model)):
        entries += _entries(model)
        keys = {key: value for key, value in keys.items() if key != "model"}
    set_ = dict(_dotted(key, value) for key, value in keys.items() if value is not None)
    body: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
    if entries:
        body["files"] = entries
    else:
        body["job"] = {}
    if set_:
        body["set"] = set_
    # A file may have an infinite limit, which is read as one that was not given; a key that is given here may not.
    return _written("the request", body, allow_nan=False)
