# job: {"model": {"preset": "resnet50"}, "training": {"batch_size": 16, "image_size": 224, "optimizer": "sgd-momentum", "zero_grad": "before_backward"}}
import torch, torchvision
import torch.nn as nn

model = torchvision.models.resnet50().cuda()
criterion = nn.CrossEntropyLoss().cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
data = torch.utils.data.TensorDataset(torch.randn(64, 3, 224, 224), torch.randint(0, 1000, (64,)))
for epoch in range(3):
    for i, (images, target) in enumerate(torch.utils.data.DataLoader(data, 16, shuffle=True, pin_memory=True)):
        images, target = images.cuda(non_blocking=True), target.cuda(non_blocking=True)
        output = model(images)
        loss = criterion(output, target)
        _, predicted = output.topk(5, 1, True, True)
        correct = predicted.t().eq(target.view(1, -1)).reshape(-1).float().sum(0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 10 == 0:
            print(epoch, i, loss.item(), correct.item())
