# SPDX-License-Identifier: MIT
"""The way into a Python program that `tidemark record --torch` started: its folder stands first in $PYTHONPATH, so Python
runs this file at its start. Nothing is done until the program imports torch; then tidemark_torch.py, beside this file, is
run. A sitecustomize of the user's own is run as if this one were not there. Python 2 must be able to read this file."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


class Finder(object):
    """Stands before all finders until torch has been found by another one."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        import importlib.util
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = Loader(spec.loader)
        return spec


class Loader(object):
    """The loader of torch, and behind it what names its modules."""

    def __init__(self, real):
        self.real = real

    def __getattr__(self, name):
        return getattr(self.real, name)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self.real
        self.real.exec_module(module)
        try:
            with open(os.path.join(HERE, "tidemark_torch.py")) as file:
                code = compile(file.read(), file.name, "exec") # not imported: it is in no list of modules, nor leaves a compiled file
            exec(code, {"__name__": "tidemark_torch", "__file__": file.name})
        except Exception: # whatever it is, the program is not to notice
            pass


def as_importlib(function):
    """The function with the file name of Python's own importlib, whose frames Python leaves out of the traceback of a
    module that raises: a torch that cannot be imported says what it says without this file."""
    function.__code__ = function.__code__.replace(co_filename="<frozen importlib._bootstrap_external>")
    return function


def run_the_users():
    """Another file of this name further along the path, in place of this one. As without this file, it need not be there."""
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or ".") != HERE]
    sys.modules.pop("sitecustomize", None)
    __import__("sitecustomize")


if sys.version_info >= (3, 8) and os.environ.get("TIDEMARK_TORCH"):
    as_importlib(Loader.exec_module)
    sys.meta_path.insert(0, Finder())
run_the_users()
