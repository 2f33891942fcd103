import torch, torchvision

device = "cuda" if torch.cuda.is_available() else "cpu"
net = torchvision.models.segmentation.deeplabv3_resnet50(weights=None, weights_backbone=None, num_classes=21, aux_loss=True)
net = torch.nn.DataParallel(net).to(device)
params = [{"params": net.module.backbone.parameters(), "lr": 1e-3}, {"params": net.module.classifier.parameters()}, {"params": net.module.aux_classifier.parameters(), "lr": 1e-2}]
opt = torch.optim.SGD(params, lr=1e-2, momentum=0.9)
torch.backends.cudnn.benchmark = True
for i in range(3):
    x, y = torch.randn(4, 3, 256, 256, device=device), torch.randint(0, 21, (4, 256, 256), device=device)
    y[:, :8] = 255
    out = net(x)
    loss = torch.nn.functional.cross_entropy(out["out"], y, ignore_index=255) + 0.5 * torch.nn.functional.cross_entropy(out["aux"], y, ignore_index=255)
    opt.zero_grad(); loss.backward(); opt.step()
    confusion = torch.bincount(21 * y[y != 255] + out["out"].argmax(1)[y != 255], minlength=441).reshape(21, 21)
    print(loss.item(), (confusion.diag().sum() / confusion.sum()).item())
