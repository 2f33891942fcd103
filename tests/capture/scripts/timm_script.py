"""The pieces of timm's train.py: loaders with its prefetcher, mixup, its scaler, EMA, scheduler and saver."""
import logging, os, tempfile
from collections import OrderedDict
from contextlib import suppress
from functools import partial
import torch, torch.nn as nn
from timm import utils
from timm.data import AugMixDataset, FastCollateMixup, Mixup, create_dataset, create_loader, resolve_data_config
from timm.loss import BinaryCrossEntropy, SoftTargetCrossEntropy
from timm.models import create_model, model_parameters, resume_checkpoint
from timm.optim import create_optimizer_v2
from timm.scheduler import create_scheduler_v2
from timm.utils import ModelEmaV3, NativeScaler

_logger = logging.getLogger("train")
utils.setup_default_logging()
torch.backends.cuda.matmul.allow_tf32 = True
device = torch.device("cuda")
utils.random_seed(42, 0)
model = create_model("efficientnet_b0", pretrained=False, num_classes=100, drop_rate=0.2, drop_path_rate=0.1)
data_config = resolve_data_config({}, model=model, verbose=False)
model.to(device=device).to(memory_format=torch.channels_last)
optimizer = create_optimizer_v2(model, opt="lamb", lr=5e-3, weight_decay=0.02, filter_bias_and_bn=True)
amp_autocast, scaler = partial(torch.autocast, device_type=device.type, dtype=torch.float16), NativeScaler(device=device.type)
ema = ModelEmaV3(model, decay=0.9998, use_warmup=True)
dataset = torch.utils.data.TensorDataset(torch.zeros(1))
from torchvision.datasets import FakeData
dataset = FakeData(96, (3, 256, 256), 100)
collate = FastCollateMixup(mixup_alpha=0.2, cutmix_alpha=1.0, label_smoothing=0.1, num_classes=100)
loader = create_loader(dataset, input_size=data_config["input_size"], batch_size=16, is_training=True, use_prefetcher=True, no_aug=False, re_prob=0.25, re_mode="pixel", auto_augment="rand-m9-mstd0.5",
                       mean=data_config["mean"], std=data_config["std"], num_workers=1, collate_fn=collate, pin_memory=True, device=device)
evaluation = create_loader(dataset, input_size=data_config["input_size"], batch_size=32, is_training=False, use_prefetcher=True, num_workers=0, device=device)
loss_fn = SoftTargetCrossEntropy().to(device)
scheduler, epochs = create_scheduler_v2(optimizer, sched="cosine", num_epochs=2, warmup_epochs=1, updates_per_epoch=len(loader))
saver = utils.CheckpointSaver(model=model, optimizer=optimizer, model_ema=ema, amp_scaler=scaler, checkpoint_dir=tempfile.mkdtemp(), recovery_dir=tempfile.mkdtemp(), max_history=2)
updates = 0
for epoch in range(epochs):
    model.train(); losses = utils.AverageMeter()
    for batch_idx, (images, target) in enumerate(loader):
        images = images.contiguous(memory_format=torch.channels_last)
        with amp_autocast():
            loss = loss_fn(model(images), target)
        scaler(loss, optimizer, clip_grad=1.0, clip_mode="agc", parameters=model_parameters(model, exclude_head=True), create_graph=False, need_update=True)
        optimizer.zero_grad(); updates += 1
        ema.update(model, step=updates)
        torch.cuda.synchronize()
        losses.update(loss.item(), images.size(0)); scheduler.step_update(num_updates=updates, metric=losses.avg)
        _logger.info(f"Train: {epoch} [{batch_idx}/{len(loader)}] Loss: {losses.val:#.3g} LR: {optimizer.param_groups[0]['lr']:.3e}")
    ema.module.eval()
    with torch.inference_mode():
        for images, target in evaluation:
            with amp_autocast(): top1, top5 = utils.accuracy(ema.module(images), target, topk=(1, 5))
    saver.save_checkpoint(epoch, metric=top1.item())
    scheduler.step(epoch + 1, top1.item())
