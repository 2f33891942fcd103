import torch, torchvision

model = torchvision.models.detection.fasterrcnn_resnet50_fpn(weights=None, weights_backbone=None, num_classes=5).to("cuda")
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.005, momentum=0.9, weight_decay=5e-4)
model.train()
for i in range(3):
    images = [torch.rand(3, 300, 400) for _ in range(2)]
    targets = [{"boxes": torch.tensor([[10.0, 20.0, 110.0, 140.0], [50.0, 60.0, 210.0, 220.0]]), "labels": torch.tensor([1, 3])} for _ in images]
    images = [x.to("cuda") for x in images]
    targets = [{k: v.to("cuda") for k, v in t.items()} for t in targets]
    losses = model(images, targets)
    loss = sum(losses.values())
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    print(loss.item())
