# SPDX-License-Identifier: MIT
"""Names for the memory of a PyTorch program under `tidemark record --torch`: what it is at becomes scopes of its trace.

    layer1.0.conv1, forward      a module is called: torch's hooks for all modules
    layer1.0.conv1, backward     from when the gradient of what the module gave out is there, until that of another's is
    optimizer step, data loading, ...   torch's own labels for its profiler (record_function), and the program's
    aten::convolution            with --torch=operators: each operator, by a dispatch mode, in threads that call modules

Only torch's hooks are used, so that no frame of this file stands in a traceback of the program's. A hook is not called
when forward raises: what was left so is left at the next module that is called, or label that begins (settle).

The functions that are called are those of preload/scopes.c; names are given to them once. Where anything here fails, it
is put out of use, the trace says why, and the program goes on."""
import ctypes
import os
import sys
import threading
import weakref

import torch

REGION, OPERATOR = 0, 2 # tide_scope_kind
MAX_NAMES = 100000      # kept for good in the process: a label of a program may have a number in it
MAX_TENSORS = 64        # looked at in what a module takes or gives
MARK = "tidemark"       # in the metadata of a node of autograd: it has a name


class Library:
    """libtidemark-preload.so, which is in the process already."""

    def __init__(self):
        found = ctypes.PyDLL(None)
        self.name, self.enter, self.leave = found.tidemark_preload_name, found.tidemark_preload_enter, found.tidemark_preload_leave
        self.mark, self.fact = found.tidemark_preload_mark, found.tidemark_preload_fact
        self.name.argtypes, self.name.restype = [ctypes.c_char_p], ctypes.c_void_p
        self.enter.argtypes, self.enter.restype = [ctypes.c_void_p, ctypes.c_int], ctypes.c_uint32
        self.leave.argtypes, self.leave.restype = [ctypes.c_uint32], None
        self.mark.argtypes, self.mark.restype = [ctypes.c_void_p], None
        self.fact.argtypes, self.fact.restype = [ctypes.c_char_p, ctypes.c_char_p], None


library = Library()
names = {}


def name_of(text):
    """What the library knows the text by."""
    known = names.get(text)
    if known is None:
        if len(names) >= MAX_NAMES:
            text = "(more names than are kept)"
        known = names.get(text)
    if known is None:
        known = names[text] = library.name(text.encode("utf-8", "replace").replace(b"\0", b"?"))
    return known


class State(threading.local):
    """Of each thread: calls and labels that it is in, by the depth before them."""

    def __init__(self):
        self.calls = []      # (id of the module, its name, depth)
        self.labels = []     # (id of the label, depth)
        self.backward = None # depth below which the scopes of a backward pass lie
        self.thread = threading.get_ident()
        self.mode = None     # that names operators


state = State()
is_off = False


def put_off(why):
    """Nothing is named from here on, and the trace says why."""
    global is_off
    if not is_off:
        is_off = True
        library.fact(b"torch", f"off torch {getattr(torch, '__version__', '?')}: {type(why).__name__}: {why}".encode("utf-8", "replace")[:300])


def guarded(function):
    """A hook that must not fail: the program's results are not its business."""
    def hook(*args):
        if is_off:
            return None
        try:
            return function(*args)
        except Exception as why: # see above
            put_off(why)
            return None
    return hook


# ---- names of modules ----

known = {}    # id of a module -> (weak reference to it, its name)
numbers = {}  # class of an outermost module -> numbers that are in use; the first one with modules inside has bare names
first = None  # weak reference to that one


def remember(module, text):
    key = id(module)
    known[key] = (weakref.ref(module, lambda gone: known.pop(key, None)), text)
    return text


def root_name(root):
    """ResNet; a second one that is alive is ResNet#2. Copies for devices have the name of what they are copies of."""
    text = type(root).__name__
    if getattr(root, "_is_replica", False):
        return text
    used = numbers.setdefault(text, set())
    number = 1
    while number in used:
        number += 1
    used.add(number)
    weakref.finalize(root, used.discard, number).atexit = False
    return text if number == 1 else f"{text}#{number}"


def name_tree(root):
    """Names for the outermost module that is called, and all in it."""
    global first
    text = root_name(root)
    is_bare = getattr(root, "_is_replica", False) or first is None or first() is None or first() is root
    if is_bare and next(root.children(), None) is not None and not getattr(root, "_is_replica", False):
        first = weakref.ref(root)
    for path, module in root.named_modules():
        if module is not root:
            remember(module, path if is_bare else f"{text}.{path}")
    return remember(root, text)


def module_name(module, is_outermost):
    found = known.get(id(module))
    if found is not None and found[0]() is module:
        return found[1]
    if is_outermost:
        return name_tree(module)
    return remember(module, type(module).__name__) # one that no module has registered as its own


# ---- what the thread is in ----

CALL, BACKWARD = None, set() # code of a call of a module, and of what begins a backward pass: set by watch


def settle(n_own):
    """Leave calls that ended by an exception, and a backward pass that did. n_own: calls of modules that begin just now.
    The calls that go on are those on Python's stack."""
    calls = state.calls
    if not calls and state.backward is None:
        return
    n, is_backward, frame = -n_own, False, sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code is CALL:
            n += 1
        elif code in BACKWARD:
            is_backward = True
        frame = frame.f_back
    while len(calls) > max(n, 0):
        library.leave(calls.pop()[2])
    if state.backward is not None and not is_backward:
        end_backward(state.backward)


# ---- forward ----

@guarded
def before_forward(module, inputs):
    if torch._C._get_tracing_state() is not None:
        return
    settle(1)
    calls = state.calls
    if calls:
        name_gradients(inputs, calls[-1][1])
    elif OPERATORS and state.mode is None:
        name_operators()
    text = module_name(module, not calls)
    calls.append((id(module), text, library.enter(name_of(f"{text}, forward"), REGION)))


@guarded
def after_forward(module, inputs, outputs):
    calls, key = state.calls, id(module)
    for i in range(len(calls) - 1, -1, -1):
        if calls[i][0] == key:
            name_gradients(outputs, calls[i][1])
            library.leave(calls[i][2])
            del calls[i:]
            return


# ---- backward ----

def tensors_in(value):
    """Tensors in lists, tuples and tables, the first MAX_TENSORS things in them."""
    waiting, n = [value], 0
    while waiting and n < MAX_TENSORS:
        one, n = waiting.pop(), n + 1
        if isinstance(one, torch.Tensor):
            yield one
        elif isinstance(one, (list, tuple)):
            waiting.extend(one[:MAX_TENSORS])
        elif isinstance(one, dict):
            waiting.extend(list(one.values())[:MAX_TENSORS])


def name_gradients(value, text):
    """The gradient of a tensor belongs to the module that made it: the first one that it is seen at."""
    if not torch.is_grad_enabled():
        return
    for tensor in tensors_in(value):
        if not tensor.requires_grad:
            continue
        node = tensor.grad_fn
        if node is None or not hasattr(node, "register_prehook") or MARK in node.metadata:
            continue
        node.metadata[MARK] = True
        node.register_prehook(Gradient(text))


class Gradient:
    """Called when the gradient of a tensor is there, before it is used for that of others."""
    __slots__ = ("text",)

    def __init__(self, text):
        self.text = text

    def __call__(self, gradients):
        begin_backward(self.text)


def end_backward(depth):
    state.backward = None
    library.leave(depth)


@guarded
def begin_backward(text):
    if state.backward is None:
        torch.autograd.Variable._execution_engine.queue_callback(after_backward(state.thread))
    else:
        library.leave(state.backward)
    state.backward = library.enter(name_of(f"{text}, backward"), REGION)


def after_backward(thread):
    @guarded
    def done():
        if state.thread == thread and state.backward is not None: # else of a device's thread: it does nothing until the next pass
            end_backward(state.backward)
    return done


# ---- labels ----

LABELS = (("Optimizer.step#", "optimizer step"), ("Optimizer.zero_grad#", "optimizer zero_grad"), ("enumerate(DataLoader)#", "data loading"))
n_steps = 0


def label_text(text):
    return next((plain for start, plain in LABELS if text.startswith(start)), text)


@guarded
def begin_label(label):
    settle(0)
    state.labels.append((id(label), library.enter(name_of(label_text(str(label.name))), REGION)))


@guarded
def end_label(label):
    global n_steps
    labels, key = state.labels, id(label)
    for i in range(len(labels) - 1, -1, -1):
        if labels[i][0] == key:
            library.leave(labels[i][1])
            del labels[i:]
            if str(label.name).startswith("Optimizer.step#"):
                n_steps += 1
                library.mark(name_of(f"step {n_steps}"))
            return


def watch_labels():
    import functools
    kind = torch.autograd.profiler.record_function
    real_enter, real_exit = kind.__enter__, kind.__exit__

    # wraps: torch.jit reads the source of what stands behind them.
    @functools.wraps(real_enter)
    def enter(self):
        begin_label(self)
        return real_enter(self)

    @functools.wraps(real_exit)
    def leave(self, *why):
        end_label(self)
        return real_exit(self, *why)

    kind.__enter__, kind.__exit__ = enter, leave


# ---- operators ----

OPERATORS = os.environ.get("TIDEMARK_TORCH") == "operators"


def name_operators():
    """Operators of this thread, for as long as it lives."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            depth = library.enter(name_of(str(function).replace(".default", "").replace(".", "::", 1)), OPERATOR)
            try:
                return function(*args, **(kwargs or {}))
            finally:
                library.leave(depth)

    state.mode = Mode()
    state.mode.__enter__()


# ---- begin ----

def forget():
    """In a child of fork: it is in none of what its parent was in, as the library knows too."""
    state.calls, state.labels, state.backward, state.thread = [], [], None, threading.get_ident()


def watch():
    global CALL
    import inspect
    modules = torch.nn.modules.module
    CALL = torch.nn.Module._call_impl.__code__
    BACKWARD.update({torch.autograd.backward.__code__, torch.autograd.grad.__code__})
    modules.register_module_forward_pre_hook(before_forward)
    more = {"always_call": True} if "always_call" in inspect.signature(modules.register_module_forward_hook).parameters else {}
    modules.register_module_forward_hook(after_forward, **more)
    watch_labels()
    os.register_at_fork(after_in_child=forget)
    if OPERATORS:
        name_operators()
    library.fact(b"torch", f"on torch {torch.__version__} {'operators' if OPERATORS else 'modules'}".encode())


try:
    watch()
except Exception as why: # a torch without one of these
    put_off(why)
