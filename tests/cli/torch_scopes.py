# SPDX-License-Identifier: MIT
"""tidemark record --torch: how the Python file of ours comes into a program and leaves no mark on it, with a torch that is
none; and with the real one, where it is installed, that blocks of sizes which nothing else has lie in the scope of what
made them."""
import os
import pathlib
import re
import subprocess
import sys
import unittest

import tidemark
from tidemark import Case, ask, environment, run

HAS_LIBRARY = pathlib.Path(os.environ.get("TIDE_PRELOAD_DIR", "build/test/tests/preload"), "preload_program").exists()
tidemark.CLEAN.update(TIDEMARK_PRELOAD=None, TIDEMARK_PYTHON=None, PYTHONPATH=None) # what lies beside the program
PYTHON = sys.executable
SYSTEM = "/usr/bin/python3" # the one that Debian's torch is for
HAS_TORCH = os.path.exists(SYSTEM) and subprocess.run([SYSTEM, "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"],
                                                      env=environment()).returncode == 0
OFF = "warning: --torch: in 1 process modules have no names, or not all: torch 0.4: AttributeError"
NONE = "warning: --torch: no process told of modules"


@unittest.skipUnless(HAS_LIBRARY, "libtidemark-preload.so is not built (sanitizers bring a malloc of their own)")
class Recorded(Case):
    def setUp(self):
        super().setUp()
        self.path = self.dir / "t.db"

    def record(self, *command, code=0, options=("--torch",), **kw):
        done = run("record", "--force", "-o", self.path, *options, "--", *command, **kw)
        self.assertEqual(done.returncode, code, f"{command}\nstdout: {done.stdout[-1000:]}\nstderr: {done.stderr[-2000:]}")
        return done

    def chains(self):
        """By the number of a block the scopes that it lies in, the innermost first."""
        parents = {i: (parent, text) for i, parent, text in ask(self.path, "SELECT s.id, s.parent_id, n.text FROM scope s JOIN name n ON n.id = s.name_id")}
        found = {}
        for bytes_, scope in ask(self.path, "SELECT requested_bytes, scope_id FROM event WHERE op = 1 AND requested_bytes BETWEEN ? AND ? ORDER BY id",
                                 4 * MIB, 5 * MIB):
            chain = []
            while scope:
                scope, text = parents[scope]
                chain.append(text)
            if bytes_ % 4096 == 64 or bytes_ % 4096 == 0:
                found.setdefault(bytes_ % MIB // 4096, []).append(" < ".join(chain))
        return found

    def write(self, name, text):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


CALLS = """import ctypes, os, sys, threading
of = ctypes.PyDLL(None)
of.tidemark_preload_name.restype = of.malloc.restype = ctypes.c_void_p
of.malloc.argtypes, of.tidemark_preload_enter.argtypes = [ctypes.c_size_t], [ctypes.c_void_p, ctypes.c_int]
of.tidemark_preload_leave.argtypes, of.tidemark_preload_mark.argtypes = [ctypes.c_uint32], [ctypes.c_void_p]
def name(text): return of.tidemark_preload_name(text.encode())
def enter(text, kind=0): return of.tidemark_preload_enter(name(text), kind)
def leave(depth): of.tidemark_preload_leave(depth)
def take(k): of.malloc(4 * (1 << 20) + k * 4096)
"""


class Told(Recorded):
    """The functions that the Python file calls (preload/scopes.c), without it."""

    def told(self, text, **kw):
        self.record(PYTHON, self.write("told.py", CALLS + text), **{"options": [], **kw})
        self.ok("trace", self.path, "--check")
        return self.chains()

    def test_scopes_in_each_other(self):
        found = self.told("leave(0); take(1); a = enter('a'); take(2); b = enter('b'); take(3); c = enter('op', 2); take(4); leave(b); take(5); "
                          "leave(b); leave(7); take(6); leave(a); take(7); of.tidemark_preload_mark(name('here')); "
                          "x = enter(''); y = enter('a' * 5000); take(8); of.tidemark_preload_enter(None, 0); take(9)")
        long = "a" * 5000 + " < "
        self.assertEqual(found, {1: [""], 2: ["a"], 3: ["b < a"], 4: ["op < b < a"], 5: ["a"], 6: ["a"], 7: [""], 8: [long], 9: [long]})
        self.assertEqual(ask(self.path, "SELECT kind, count(*) FROM scope GROUP BY kind"), [("operator", 1), ("region", 4)])
        self.assertEqual(ask(self.path, "SELECT n.text FROM event e JOIN name n ON n.id = e.tag_id WHERE e.op = 8"), [("here",)])
        # Each is entered and left in the trace as well; those that the end of the program found are not left.
        self.assertEqual(ask(self.path, "SELECT op, count(*) FROM event WHERE op IN (16, 17) GROUP BY op"), [(16, 5), (17, 3)])

    def test_more_than_are_kept(self):
        found = self.told("for i in range(1000): enter(str(i))\ntake(1); leave(999); take(2); leave(200); take(3); leave(0); take(4)")
        self.assertEqual([found[1][0].count(" < "), found[2], found[3][0].count(" < "), found[4]], [255, found[1], 199, [""]])

    def test_threads_and_children_begin_outside(self):
        found = self.told("enter('main'); t = threading.Thread(target=lambda: (take(1), enter('t'), take(2))); t.start(); t.join(); take(3)\n"
                          "if os.fork() == 0:\n    take(4); leave(1); d = enter('child'); take(5); leave(d); take(6); os._exit(0)\n"
                          "os.wait(); take(7)")
        self.assertEqual(found, {1: [""], 2: ["t"], 3: ["main"], 4: [""], 5: ["child"], 6: [""], 7: ["main"]})

    def test_a_program_that_is_killed_inside(self):
        self.record(PYTHON, self.write("told.py", CALLS + "enter('a'); enter('b'); take(1); os.kill(os.getpid(), 9)"), options=[], code=137)
        self.assertEqual(self.chains(), {1: ["b < a"]})
        self.ok("trace", self.path, "--check")

    def test_call_stacks_below_them(self):
        if os.environ.get("TIDE_HAS_STACKS") != "1":
            self.skipTest("call stacks want x86-64 and glibc 2.35")
        found = self.told("take(1)\nfor k in ('a', 'b', 'a'):\n    d = enter(k); take(2); leave(d)", options=["--stacks", "4", "--no-symbols"])
        self.assertEqual([(chain.count("+0x"), chain.rpartition(" < ")[2]) for chain in found[2]], [(4, k) for k in "aba"])
        self.assertEqual((found[1][0].count("+0x"), found[1][0].rpartition(" < ")[2]), (4, "[deeper]"))
        self.assertEqual({chain.rpartition(" < ")[0] for chain in found[2]}, {found[1][0]})

    def test_many_threads_at_once(self):
        found = self.told("def work(i):\n    for k in range(200):\n        d = enter(f't{i}'); take(i); leave(d)\n"
                          "ts = [threading.Thread(target=work, args=(i,)) for i in range(16)]\nfor t in ts: t.start()\nfor t in ts: t.join()")
        self.assertEqual(found, {i: [f"t{i}"] * 200 for i in range(16)})


class Way(Recorded):
    """With a torch that is a file of ours."""

    def fake(self, text="__version__ = '0.4'\n"):
        return self.write("packages/torch.py", text).parent

    def is_as_without(self, *command, path="", warning=NONE, code=0):
        plain = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=environment({"PYTHONPATH": path or None}), cwd=self.dir)
        done = self.record(*command, code=code, env={"PYTHONPATH": path or None}, options=["--torch", "--quiet"], cwd=self.dir)
        self.assertEqual((plain.returncode, done.stdout), (code, plain.stdout))
        said, _, rest = done.stderr.rpartition(warning)
        self.assertEqual(said, plain.stderr)
        self.assertTrue(warning and rest.endswith("\n") and rest.count("\n") == 1, done.stderr)
        return done

    def test_a_torch_without_the_hooks(self):
        self.is_as_without(PYTHON, "-c", "import torch; print(type(torch.__spec__.loader), torch.__loader__ is torch.__spec__.loader, torch.__version__)", path=str(self.fake()),
                           warning=OFF)

    def test_a_torch_that_cannot_be_imported(self):
        for text in ("1/0", "raise ImportError('not here')"):
            self.is_as_without(PYTHON, "-c", "import torch", path=str(self.fake(text)), code=1)
        self.is_as_without(PYTHON, "-S", "-c", "import torch", code=1)

    def test_a_program_that_traces_back(self):
        self.is_as_without(PYTHON, self.write("raises.py", "def f(): raise ValueError('x')\nf()\n"), code=1)

    def test_the_path_is_the_programs_own(self):
        script = self.write("say.py", "import sys; print(sys.path, 'sitecustomize' in sys.modules, sys.flags)")
        for path in ("", f"{self.dir}/a:{self.dir}/b", ":"):
            self.is_as_without(PYTHON, script, path=path)

    def test_a_sitecustomize_of_the_users(self):
        say = "import sitecustomize; print('main', sitecustomize.__file__)"
        for text, statement in (("print('mine')", say), ("raise RuntimeError('mine fails')", "print(1)"), ("import nothing_of_that_name", "print(1)")):
            folder = self.write("mine/sitecustomize.py", text).parent
            self.is_as_without(PYTHON, "-c", statement, path=str(folder))

    def test_modes_in_which_python_reads_no_path(self):
        for mode in ("-I", "-E"):
            self.is_as_without(PYTHON, mode, "-c", "print(1)")

    def test_a_child_process_too(self):
        code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import torch'])"
        self.is_as_without(PYTHON, "-c", code, path=str(self.fake()), warning=OFF)

    def test_a_recording_inside_that_did_not_ask(self):
        inner = [tidemark.PROGRAM, "record", "--force", "-o", self.dir / "in.db", "--", PYTHON, "-c", "import torch"]
        self.record(*inner, env={"PYTHONPATH": str(self.fake())})
        for path in (self.path, self.dir / "in.db"):
            self.assertEqual(ask(path, "SELECT count(*) FROM meta WHERE key GLOB 'torch.*'"), [(0,)])

    def test_words_that_cannot_be(self):
        for options, code, words in ((["--torch=layers"], 2, "none of modules and operators"), (["--torch", "--malloc", "off"], 2, "one of them")):
            self.assertIn(words, self.record("true", options=options, code=code).stderr)
        self.assertIn("--torch: ", self.record("true", env={"TIDEMARK_PYTHON": str(self.dir / "no" / "such.py")}, code=3).stderr)
        self.assertFalse(self.path.exists())


MIB = 1 << 20
# take(k): a block of a size that nothing else has.
HEAD = """import threading, torch, torch.nn as nn
kept = []
def take(k): kept.append(torch.empty(4 * (1 << 20) + k * 4096, dtype=torch.uint8))
class Inner(nn.Module):
    def __init__(self, k): super().__init__(); self.k = k
    def forward(self, x): take(self.k); return x * 2
"""
CASES = HEAD + """
class Thrower(nn.Module):
    def forward(self, x): take(1); raise ValueError("x")
class Outer(nn.Module):
    def __init__(self): super().__init__(); self.bad = Thrower(); self.ok = Inner(2); self.loose = [Inner(36)]
    def forward(self, x):
        try: self.bad(x)
        except ValueError: pass
        x = self.loose[0](self.ok(x)); take(3); return x
class Again(nn.Module):
    def forward(self, n): take(10 + n); return self(n - 1) if n else n
class Fails(torch.autograd.Function):
    @staticmethod
    def forward(c, x): return x.clone()
    @staticmethod
    def backward(c, g): take(33); raise RuntimeError("no")
class Pass(torch.autograd.Function):
    def __init__(self): pass
    @staticmethod
    def forward(c, x, k): c.k = k; return x.clone()
    @staticmethod
    def backward(c, g): take(c.k); return g, None
class Backward(nn.Module):
    def __init__(self, k): super().__init__(); self.k = k
    def forward(self, x): return (Fails.apply(x) if self.k < 0 else Pass.apply(x, self.k))
outer = Outer(); outer(torch.ones(1)); take(4)
try: Thrower()(1)
except ValueError: pass
Inner(5)(torch.ones(1)); take(6)
Again()(2)
pair = nn.Sequential(Inner(20), Inner(21))
threads = [threading.Thread(target=lambda: pair(torch.ones(1))) for _ in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
torch.jit.script(nn.Linear(3, 3))(torch.ones(1, 3)); take(7)
torch.jit.trace(nn.Sequential(nn.Linear(3, 3)), torch.ones(1, 3))(torch.ones(1, 3)); take(8)
@torch.jit.script
def scripted(x):
    with torch.autograd.profiler.record_function("in script"):
        return x + 1
scripted(torch.ones(2)); take(9)
x = torch.ones(8, requires_grad=True)
class Mixed(nn.Module):
    def __init__(self): super().__init__(); self.a, self.b = Backward(43), Backward(45)
    def forward(self, x): return self.b(Pass.apply(self.a(x), 44))
Mixed()(x).sum().backward()
net = nn.Sequential(Backward(40), nn.Sequential(Backward(41)), nn.ReLU(inplace=True))
net(x).sum().backward(); take(42)
from torch.utils.checkpoint import checkpoint
checkpoint(Inner(31), x).sum().backward(); take(32)
try: Backward(-1)(x).sum().backward()
except RuntimeError: pass
Inner(34)(x); take(35)
with torch.autograd.profiler.record_function("## mine ##"): take(30)
weight = nn.Parameter(torch.ones(8)); weight.grad = torch.ones(8)
class Step(torch.optim.Optimizer):
    def __init__(self): super().__init__([weight], {})
    def step(self): take(50)
Step().step(); take(51)
print("done")
"""
FOUND = {1: ["bad, forward < Outer, forward", "Thrower, forward"], 2: ["ok, forward < Outer, forward"], 3: ["Outer, forward"],
         36: ["Inner, forward < Outer, forward"], 4: [""], 5: ["Inner, forward"], 6: [""],
         12: ["Again, forward"], 11: ["Again, forward < Again, forward"], 10: ["Again, forward < Again, forward < Again, forward"],
         20: ["Sequential.0, forward < Sequential, forward"] * 4, 21: ["Sequential.1, forward < Sequential, forward"] * 4,
         7: [""], 8: [""], 9: [""], 40: ["Sequential#2.0, backward"], 41: ["Sequential#2.1.0, backward"], 42: [""],
         43: ["Mixed.a, backward"], 44: ["Mixed, backward"], 45: ["Mixed.b, backward"],
         31: ["Inner, forward"] * 2, 32: [""], 33: ["Backward, backward"], 34: ["Inner, forward"], 35: [""], 30: ["## mine ##"],
         50: ["optimizer step"], 51: [""]}
WORKERS = HEAD + """
class Data(torch.utils.data.Dataset):
    def __init__(self): self.inner = Inner(60)
    def __len__(self): return 4
    def __getitem__(self, i): return self.inner(torch.ones(1))
if __name__ == "__main__":
    for batch in torch.utils.data.DataLoader(Data(), num_workers=2): take(61)
"""


def own_lines(traceback):
    """Without torch's own lines: a module with hooks is called in another line of _call_impl."""
    return re.sub(r'  File ".*/torch/nn/modules/module.py".*\n.*\n( *\^+\n)?', "", traceback)


@unittest.skipUnless(HAS_TORCH, "torch is not installed for /usr/bin/python3: make peers")
class Torch(Recorded):
    def test_each_block_lies_in_what_made_it(self):
        self.maxDiff = None
        done = self.record(SYSTEM, self.write("cases.py", CASES))
        self.assertEqual(done.stdout, "done\n")
        self.assertRegex(done.stderr, r"torch: 1 process told what memory is for \(torch .* modules\)")
        self.assertNotIn("warning", done.stderr)
        self.assertEqual(self.chains(), FOUND)
        self.assertEqual(ask(self.path, "SELECT n.text FROM event e JOIN name n ON n.id = e.tag_id WHERE e.op = 8"), [("step 1",)])
        self.ok("trace", self.path, "--check")
        groups = {g["key"]: g for g in self.json("trace", self.path, "--whole", "--at", "peak", "--by", "module", "--json")["groups"]}
        inside = sum(4 * MIB + k * 4096 for k in (1, 2, 36, 3))
        self.assertGreaterEqual(groups["Outer, forward"]["with_callees_bytes"], inside)
        self.assertLess(groups["Outer, forward"]["with_callees_bytes"], inside + MIB)
        categories = {g["key"]: g["requested_bytes"] for g in self.json("trace", self.path, "--whole", "--at", "peak", "--by", "category", "--json")["groups"]}
        self.assertGreaterEqual(categories["gradients"], 3 * 4 * MIB)
        self.assertGreaterEqual(categories["optimizer"], 4 * MIB + 50 * 4096)

    def test_processes_of_a_data_loader(self):
        self.record(SYSTEM, self.write("workers.py", WORKERS))
        self.assertEqual(self.chains(), {60: ["Inner, forward"] * 4, 61: [""] * 4})
        self.assertEqual(ask(self.path, "SELECT count(*) FROM process"), [(3,)])

    def test_operators(self):
        text = HEAD + "x = torch.ones(1 << 18, requires_grad=True); nn.Sequential(nn.Linear(1 << 18, 1), nn.ReLU())(x).sum().backward()\n"
        done = self.record(SYSTEM, self.write("operators.py", text), options=["--torch=operators"])
        self.assertIn(" operators)", done.stderr)
        rows = ask(self.path, "SELECT DISTINCT o.text, r.text FROM event e JOIN scope s ON s.id = e.scope_id JOIN name o ON o.id = s.name_id "
                   "JOIN scope p ON p.id = s.parent_id JOIN name r ON r.id = p.name_id WHERE e.op = 1 AND s.kind = 'operator'")
        self.assertIn(("aten::mm", "0, forward"), rows)
        self.assertTrue(any(where == "0, backward" for _, where in rows), rows)

    def test_output_and_code_are_as_without_us(self):
        script = self.write("fails.py", HEAD + "class Bad(nn.Module):\n    def forward(self, x): return x @ torch.ones(3)\n"
                            "print(1); nn.Sequential(Inner(1), Bad())(torch.ones(2))\n")
        plain = subprocess.run([SYSTEM, script], capture_output=True, text=True, env=environment())
        for option in ("--torch", "--torch=modules"):
            done = self.record(SYSTEM, script, code=1, options=[option, "--quiet"])
            self.assertEqual((done.stdout, own_lines(done.stderr)), (plain.stdout, own_lines(plain.stderr)))
        self.assertIn("Traceback", plain.stderr)


if __name__ == "__main__":
    tidemark.main()
