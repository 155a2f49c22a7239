"""Loading a program for its worker: `plays.py`, `package.plays`, either with `:attribute`."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from counterfoil.worker import Worker, loading


class LoadError(Exception):
    """The program has no worker, or cannot be loaded; the message says which and why."""


def load_worker(target: str) -> Worker:
    """The `Worker` of a file or module. Its own call of ``worker.run()`` does nothing here.

    Raises LoadError; what the program itself raises while it is loaded is raised as it is.
    """
    name, _, attribute = target.partition(":")
    module = _load(name)
    if attribute:
        found = getattr(module, attribute, None)
        if not isinstance(found, Worker):
            raise LoadError(f"{target}: there is no Worker of that name")
        return found
    workers = {id(value): value for value in vars(module).values() if isinstance(value, Worker)}
    if len(workers) != 1:
        count = "no Worker" if not workers else f"{len(workers)} Workers"
        raise LoadError(f"{name} has {count}; name one as {name}:attribute")
    return next(iter(workers.values()))


def _load(name: str) -> ModuleType:
    token = loading.set(True)
    try:
        if name.endswith(".py"):
            return _load_file(Path(name))
        # As `python -m` does, so that a module of the working folder is found.
        sys.path.insert(0, str(Path.cwd()))
        if importlib.util.find_spec(name) is None:
            raise LoadError(f"{name}: no such module; a file's name ends in .py")
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise LoadError(f"{name}: no such module; a file's name ends in .py") from None
        raise
    finally:
        loading.reset(token)


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise LoadError(f"{path}: no such file")
    # As `python plays.py` does, so that the file's neighbours can be imported.
    sys.path.insert(0, str(path.resolve().parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise LoadError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
