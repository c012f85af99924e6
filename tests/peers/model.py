# SPDX-License-Identifier: MIT
"""A small residual network that is trained for three steps: what tests/peers/programs.py records."""
import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.conv1, self.bn1, self.relu = nn.Conv2d(n, n, 3, padding=1), nn.BatchNorm2d(n), nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(n, n, 3, padding=1)

    def forward(self, x):
        y = self.conv2(self.relu(self.bn1(self.conv1(x))))
        y += x
        return functional.relu(y)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.head = nn.Conv2d(3, 32, 3, padding=1), nn.Linear(32, 10)
        self.layer1, self.layer2 = nn.Sequential(Block(32), Block(32)), nn.Sequential(Block(32))

    def forward(self, x):
        return self.head(self.layer2(self.layer1(self.stem(x))).mean((2, 3)))


torch.manual_seed(0)
net, loss = Net(), nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
data = torch.utils.data.TensorDataset(torch.randn(48, 3, 64, 64), torch.randint(0, 10, (48,)))
for images, labels in torch.utils.data.DataLoader(data, batch_size=16):
    optimizer.zero_grad()
    error = loss(net(images), labels)
    error.backward()
    optimizer.step()
    print(f"{error.item():.3f}")
