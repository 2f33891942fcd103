import torch, torch.nn as nn, torch.nn.functional as F, torchvision
from scipy.optimize import linear_sum_assignment
from torchvision.ops import generalized_box_iou, box_convert
device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")

class Detr(nn.Module):
    def __init__(self, classes=91, dim=256, queries=100):
        super().__init__()
        net = torchvision.models.resnet50(weights=None, norm_layer=torchvision.ops.FrozenBatchNorm2d)
        self.backbone = torchvision.models._utils.IntermediateLayerGetter(net, {"layer4": "0"})
        self.reduce = nn.Conv2d(2048, dim, 1)
        self.transformer = nn.Transformer(dim, 8, 3, 3, 1024, batch_first=True)
        self.queries = nn.Parameter(torch.rand(queries, dim))
        self.row, self.column = nn.Parameter(torch.rand(50, dim // 2)), nn.Parameter(torch.rand(50, dim // 2))
        self.classes, self.boxes = nn.Linear(dim, classes + 1), nn.Linear(dim, 4)
    def forward(self, x):
        h = self.reduce(self.backbone(x)["0"])
        H, W = h.shape[-2:]
        where = torch.cat([self.column[:W].unsqueeze(0).repeat(H, 1, 1), self.row[:H].unsqueeze(1).repeat(1, W, 1)], -1).flatten(0, 1)
        out = self.transformer(where + h.flatten(2).transpose(1, 2), self.queries.expand(x.shape[0], -1, -1))
        return self.classes(out), self.boxes(out).sigmoid()

@torch.no_grad()
def match(logits, boxes, targets):
    p, flat = logits.flatten(0, 1).softmax(-1), boxes.flatten(0, 1)
    labels, gold = torch.cat([t["labels"] for t in targets]), torch.cat([t["boxes"] for t in targets])
    cost = -p[:, labels] + 5 * torch.cdist(flat, gold, p=1) - 2 * generalized_box_iou(box_convert(flat, "cxcywh", "xyxy"), box_convert(gold, "cxcywh", "xyxy"))
    cost = cost.view(*logits.shape[:2], -1).cpu()
    pairs = [linear_sum_assignment(c[i]) for i, c in enumerate(cost.split([len(t["boxes"]) for t in targets], -1))]
    return [(torch.as_tensor(a, dtype=torch.int64), torch.as_tensor(b, dtype=torch.int64)) for a, b in pairs]

model = Detr().to(device)
slow = [p for n, p in model.named_parameters() if "backbone" in n and p.requires_grad]
fast = [p for n, p in model.named_parameters() if "backbone" not in n]
optimizer = torch.optim.AdamW([{"params": fast}, {"params": slow, "lr": 1e-5}], 1e-4, weight_decay=1e-4)
for i in range(3):
    images = torch.rand(2, 3, 384, 512).to(device)
    targets = [{"labels": torch.randint(0, 91, (n,)).to(device), "boxes": (torch.rand(n, 4) * 0.5 + 0.1).to(device)} for n in (3, 7)]
    logits, boxes = model(images)
    pairs = match(logits, boxes, targets)
    batch = torch.cat([torch.full_like(a, i) for i, (a, _) in enumerate(pairs)])
    source = torch.cat([a for a, _ in pairs])
    gold_labels = torch.cat([t["labels"][b] for t, (_, b) in zip(targets, pairs)])
    wanted = torch.full(logits.shape[:2], 91, dtype=torch.int64, device=device)
    wanted[batch, source] = gold_labels
    weights = torch.ones(92, device=device); weights[-1] = 0.1
    gold = torch.cat([t["boxes"][b] for t, (_, b) in zip(targets, pairs)])
    found = boxes[batch, source]
    loss = F.cross_entropy(logits.transpose(1, 2), wanted, weights) + 5 * F.l1_loss(found, gold) + (1 - torch.diag(generalized_box_iou(box_convert(found, "cxcywh", "xyxy"), box_convert(gold, "cxcywh", "xyxy")))).mean()
    optimizer.zero_grad(); loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
    print(i, float(loss), float(norm))
