"""A loss that is spilled keeps its history; a snapshot is a value that outlives the process.

    PYTHONPATH=python python3 examples/hierarchical_memory.py
"""
from pathlib import Path
import tempfile

import tiga as tg

with tempfile.TemporaryDirectory(prefix="tiga-memory-example-") as directory:
    with tg.execution(memory={"host": "1MiB", "nvme": "1MiB"},
                      spill_dir=directory) as run:
        values = tg.tensor([float(i) for i in range(8)], requires_grad=True)
        loss = (values * values).sum()
        loss.spill()  # for now on disk; the gradient still knows how it came about
        gradients = tg.autograd.grad(loss, values)
        assert gradients.tolist() == [float(2 * i) for i in range(8)]
        back = values.cpu()
        path = Path(directory) / "activations.tiga"
        tg.save(values, path)  # a value in a file; nothing leaves memory
        restored = tg.load(path)  # the header only, until somebody looks
        assert restored.tolist() == back.tolist()
        print(gradients.tolist())
        print(run.memory_report())
