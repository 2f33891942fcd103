import timm, torch
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import AverageMeter, ModelEmaV3, NativeScaler, accuracy

model = timm.create_model("vit_small_patch16_224", num_classes=1000, drop_path_rate=0.1).cuda()
ema = ModelEmaV3(model, decay=0.999)
optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
schedule, scaler, mixup, criterion, losses = CosineLRScheduler(optimizer, 10), NativeScaler(), Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, num_classes=1000), SoftTargetCrossEntropy(), AverageMeter()
loader = torch.utils.data.DataLoader([(torch.randn(3, 224, 224), i % 1000) for i in range(48)], 16)
for i, (x, y) in enumerate(loader):
    x, y = mixup(x.cuda(), y.cuda())
    with torch.autocast("cuda", torch.float16):
        out = model(x)
        loss = criterion(out, y)
    optimizer.zero_grad()
    scaler(loss, optimizer, clip_grad=1.0, parameters=model.parameters())
    ema.update(model, step=i)
    torch.cuda.synchronize()
    losses.update(loss.item(), x.size(0)); schedule.step_update(i); print(losses.avg)
