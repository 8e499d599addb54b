"""A kernel compiled from text, called with lists, buffers and (where numpy is installed) numpy arrays."""
from array import array

import tiga as tg

m = tg.compile("""
kernel weighted_sum(src x: f32, edge w: f32) -> f32 {
    return reduce sum(edge.w * src.x)
}
""")
g = tg.Graph.from_csr([0, 2, 3, 5], [0, 2, 1, 0, 1])  # row 0 reads sources 0 and 2, row 1 source 1, row 2 sources 0 and 1

print(m.weighted_sum(g, x=[1, 2, 3], w=[2, 3, 4, 5, 6]))

y = m.weighted_sum(g, x=array("f", [1, 2, 3]), w=array("f", [2, 3, 4, 5, 6]))  # used where they lie
print(y.tolist())

try:
    import numpy as np
except ImportError:
    print("without numpy")
else:
    x, w = np.array([1, 2, 3], np.float32), np.array([2, 3, 4, 5, 6], np.float32)
    out = np.empty(3, np.float32)
    m.weighted_sum(g, x=x, w=w, out=out)
    print(out)
