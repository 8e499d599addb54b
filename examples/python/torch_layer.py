"""A layer of a graph neural network in PyTorch: its gradients are compiled as well."""
import torch

import tiga as tg

m = tg.compile("""
kernel attend[F](src h: f32[F], src a: f32, dst b: f32) -> f32[F] {
    return reduce softmax(leaky_relu(src.a + dst.b, 0.2), src.h)
}
export vjp attend(h, a, b)
""")


class Attention(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = torch.nn.Linear(inputs, outputs)
        self.source, self.target = torch.nn.Linear(outputs, 1), torch.nn.Linear(outputs, 1)
        self.attend = tg.torch.function(m.attend)

    def forward(self, g, x):
        h = self.linear(x)
        return self.attend(g, h=h, a=self.source(h).squeeze(1), b=self.target(h).squeeze(1))


torch.manual_seed(0)
g = tg.graph.generate("uniform", nodes=200, degree=8)
x, want = torch.randn(200, 16), torch.randint(0, 4, (200,))
model = Attention(16, 4)
optimizer = torch.optim.Adam(model.parameters(), 0.05)
for step in range(201):
    loss = torch.nn.functional.cross_entropy(model(g, x), want)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(f"step {step}: loss {loss.item():.3f}")
