"""Neural style transfer by LBFGS: the image is the parameter, the losses are modules in the network, and the optimizer's history grows by two images each step up to 100."""
# later: grows
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.set_default_device(device)
imsize = 192 if torch.cuda.is_available() else 128

class ContentLoss(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.target = target.detach()
    def forward(self, input):
        self.loss = F.mse_loss(input, self.target)
        return input

def gram_matrix(input):
    a, b, c, d = input.size()
    features = input.view(a * b, c * d)
    return torch.mm(features, features.t()).div(a * b * c * d)

class StyleLoss(nn.Module):
    def __init__(self, target_feature):
        super().__init__()
        self.target = gram_matrix(target_feature).detach()
    def forward(self, input):
        self.loss = F.mse_loss(gram_matrix(input), self.target)
        return input

class Normalization(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.mean, self.std = torch.tensor(mean).view(-1, 1, 1), torch.tensor(std).view(-1, 1, 1)
    def forward(self, img):
        return (img - self.mean) / self.std

style_img, content_img = torch.rand(1, 3, imsize, imsize), torch.rand(1, 3, imsize, imsize)
cnn = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2),
                    nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(inplace=True)).eval()
model, losses, i = nn.Sequential(Normalization([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])), [], 0
for layer in cnn.children():
    if isinstance(layer, nn.ReLU):
        layer = nn.ReLU(inplace=False)
    model.add_module(str(i), layer)
    i += 1
    if isinstance(layer, nn.Conv2d):
        content, style = ContentLoss(model(content_img).detach()), StyleLoss(model(style_img).detach())
        model.add_module(f"content_{i}", content)
        model.add_module(f"style_{i}", style)
        losses.append((style, content))
input_img = content_img.clone().requires_grad_(True)
model.eval()
model.requires_grad_(False)
optimizer = optim.LBFGS([input_img], max_iter=5)
run = [0]
while run[0] <= 60:
    def closure():
        with torch.no_grad():
            input_img.clamp_(0, 1)
        optimizer.zero_grad()
        model(input_img)
        style_score = sum(s.loss for s, _ in losses) * 1e6
        content_score = sum(c.loss for _, c in losses)
        loss = style_score + content_score
        loss.backward()
        run[0] += 1
        if run[0] % 10 == 0:
            print("run {}: Style Loss : {:4f} Content Loss: {:4f}".format(run[0], style_score.item(), content_score.item()))
        return loss
    optimizer.step(closure)
