import torch
model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(4096, 1024)).cuda()
loss_of, optimizer = torch.nn.MSELoss(), torch.optim.Adam(model.parameters(), 1e-4, capturable=True)
static_x, static_y = torch.randn(640, 1024, device="cuda"), torch.randn(640, 1024, device="cuda")
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for i in range(3):
        optimizer.zero_grad(set_to_none=True)
        loss_of(model(static_x), static_y).backward()
        optimizer.step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(graph):
    static_loss = loss_of(model(static_x), static_y)
    static_loss.backward()
    optimizer.step()
for i in range(5):
    static_x.copy_(torch.randn(640, 1024)); static_y.copy_(torch.randn(640, 1024))
    graph.replay()
    print(static_loss.item())
