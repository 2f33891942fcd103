"""Batches of text and images, and the parts of a model that training.freeze names."""
import torch

from .images import IMAGE_TOKEN, TWO_TOWERS


def reads_images(config):
    return "vision_config" in config


def tokens_of_image(config, size):
    if config["model_type"] == "gemma3":
        return config["mm_tokens_per_image"]
    patch = config["vision_config"]["patch_size"]
    return (size // patch) ** 2 // config["vision_config"].get("spatial_merge_size", 1) ** 2


def pixels_of(config, count, size, dtype):
    vision = config["vision_config"]
    if not config["model_type"].startswith("qwen"):
        return {"pixel_values": torch.zeros(count, 3, size, size, dtype=dtype).cuda()}
    side = size // vision["patch_size"]
    grid = torch.tensor([[1, side, side]] * count)
    return {"pixel_values": torch.zeros(count * side * side, 3 * vision["temporal_patch_size"] * vision["patch_size"] ** 2, dtype=dtype).cuda(), "image_grid_thw": grid.cuda()}


def batch_of(job, dtype):
    config, training = job["model"]["config"], job["training"]
    count, length, size = training["batch_size"], training["sequence_length"], training["image_size"]
    if config["model_type"] in TWO_TOWERS:
        return {"input_ids": torch.zeros(count, length, dtype=torch.int64).cuda(), **pixels_of(config, count, size, dtype), "return_loss": True}
    images = training["num_images"]
    tokens = torch.full((count, length), 10)
    each = tokens_of_image(config, size)
    for image in range(images):  # a token of text parts them: Qwen counts the images by it
        tokens[:, image * (each + 1):image * (each + 1) + each] = IMAGE_TOKEN
    batch = {"input_ids": tokens.cuda(), "labels": tokens.cuda(), **(pixels_of(config, count * images, size, dtype) if images else {})}
    kinds = {"paligemma": "token_type_ids", "gemma3": "token_type_ids", "qwen2_vl": "mm_token_type_ids"}.get(config["model_type"])
    if kinds:
        batch[kinds] = (tokens == IMAGE_TOKEN).to(torch.int64).cuda()
    return batch


def freeze(model, parts):
    """Parts by the words of training.freeze."""
    names = {"vision_tower": ("vision_tower", "visual"), "projector": ("multi_modal_projector",), "language_model": ("language_model", "lm_head")}
    for part in parts:
        for name, parameter in model.named_parameters():
            pieces = name.split(".")
            if any(piece in names[part] for piece in pieces) and not (part == "vision_tower" and "merger" in pieces):
                parameter.requires_grad_(False)
            elif part == "projector" and "merger" in pieces:
                parameter.requires_grad_(False)
