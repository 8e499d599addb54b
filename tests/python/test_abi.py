"""What the package says in ctypes is what the headers say in C: sizes and offsets, statuses, element types, roles."""
import ctypes
import re
import subprocess
import unittest

from support import SOURCE, folder, tg
from tiga import _dtypes, _jit, _lib, _memory, _tensors

HEADERS = ["tiga/tiga.h", "tiga/jit.h", "tiga/memory.h", "tiga/tensor.h"]


def structures():
    found = [s for m in (_lib, _jit, _memory, _tensors) for s in vars(m).values()
             if isinstance(s, type) and issubclass(s, ctypes.Structure) and hasattr(s, "c_name")]
    return [*found, _jit.tigac().Result]


class Layout(unittest.TestCase):
    def test_structures(self):
        lines, want = [], []
        for s in structures():
            lines.append(f'printf("%zu\\n", sizeof({s.c_name}));')
            want.append((s.c_name, ctypes.sizeof(s)))
            for name, *_ in s._fields_:
                lines.append(f'printf("%zu %zu\\n", offsetof({s.c_name}, {name}), sizeof((({s.c_name} *)0)->{name}));')
                field = getattr(s, name)
                want.append((f"{s.c_name}.{name}", f"{field.offset} {field.size}"))
        source = folder() / "layout.c"
        source.write_text("#include <stdio.h>\n#include <stddef.h>\n" + "".join(f'#include "{h}"\n' for h in HEADERS) +
                          "int main(void) {" + "\n".join(lines) + "return 0; }\n")
        subprocess.run(["cc", "-std=c11", "-I", SOURCE / "include", source, "-o", folder() / "layout"], check=True)
        have = subprocess.run([folder() / "layout"], capture_output=True, text=True, check=True).stdout.splitlines()
        for (name, want_text), have_text in zip(want, have, strict=True):
            self.assertEqual(f"{name} {have_text}", f"{name} {want_text}")

    def test_statuses(self):
        text = (SOURCE / "include/tiga/tiga_status.def").read_text()
        have = {int(n): name for name, n in re.findall(r"^TIGA_STATUS\((\w+), (\d+),", text, re.M)}
        self.assertEqual(have, dict(enumerate(_lib.STATUSES)))

    def test_element_types(self):
        text = (SOURCE / "include/tiga/abi.h").read_text()
        have = {name.lower(): int(n) for name, n in re.findall(r"\bTIGA_((?:BOOL|[IUFC]\d+|BF16)) = (\d+)", text)}
        self.assertEqual(have, {t.name: t.code for t in _dtypes.TABLE})

    def test_roles(self):
        text = (SOURCE / "include/tiga/abi.h").read_text()
        for name, n in re.findall(r"\bTIGA_(AT_\w+) = (\d+)", text):
            self.assertEqual(getattr(_lib, name), int(n))

    def test_version(self):
        text = (SOURCE / "CMakeLists.txt").read_text()
        self.assertEqual(re.search(r"project\(tiga VERSION ([\d.]+)", text)[1], _lib.VERSION)
        self.assertEqual(tg.__version__, _lib.VERSION)


if __name__ == "__main__":
    unittest.main()
