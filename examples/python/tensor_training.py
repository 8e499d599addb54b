"""Trains two layers of message passing with tensors alone: gradients go through the kernel to the weights around it.

    PYTHONPATH=python python3 examples/python/tensor_training.py

Who of Zachary's karate club joined which of the two clubs that it broke into, learned from the two leaders only.
"""
from pathlib import Path

import tiga as tg

data = Path(__file__).resolve().parents[1] / "data"
g = tg.Graph.open(data / "karate.txt")
club = tg.tensor([int(line) for line in (data / "karate-club.txt").read_text().split()])
known = tg.tensor([i in (0, 33) for i in range(g.n_dst)]).astype("f32")  # the leaders

m = tg.compile("""
kernel around[F](node h: f32[F]) -> f32[F] { return dst.h + reduce mean(src.h, empty = 0) }
export vjp around(h)
""")


def scores(w1, w2):
    h = tg.tanh(m.around(g, h=w1))  # the first layer's input is one-hot: its weights are the features
    return m.around(g, h=h) @ w2


def loss(w1, w2):
    p = tg.softmax(scores(w1, w2), axis=-1)
    right = (p * tg.one_hot(club, 2)).sum(axis=-1)
    return -(known * tg.log(right)).sum() / known.sum()


w1, w2 = tg.rand((g.n_dst, 8), seed=1) - 0.5, tg.rand((8, 2), seed=2) - 0.5
step = tg.autograd.value_and_grad(loss, (0, 1))
for i in range(100):
    value, (d1, d2) = step(w1, w2)
    w1, w2 = w1 - 0.5 * d1, w2 - 0.5 * d2
    if i % 33 == 0:
        print(f"step {i:3}  loss {value.item():.4f}")
right = (tg.argmax(scores(w1, w2), axis=-1) == club).sum().item()
print(f"{right} of {g.n_dst} on the right side")
