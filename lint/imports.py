"""The direction of imports in the driver. This file is the one place that declares it.

A module imports only modules of the layers before its own in ``LAYERS``, or of its own layer where
that makes no circle. A new module has to be given its layer here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from lint.findings import Finding

PACKAGE = "counterfoil"

LAYERS: tuple[tuple[str, ...], ...] = (
    # what everything speaks in
    ("errors", "values"),
    ("settings",),
)


def check(folder: Path) -> list[Finding]:
    """Imports in the modules of ``folder`` that go the wrong way."""
    return sorted(check_modules(read_modules(folder), LAYERS))


def read_modules(folder: Path) -> dict[str, tuple[Path, dict[str, int]]]:
    """Module name → its file, and the modules of the package that it imports, with the line."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        found[name] = (path, dict(_imports(ast.parse(path.read_text(encoding="utf-8")), name)))
    return found


def check_modules(
    modules: Mapping[str, tuple[Path, Mapping[str, int]]], layers: tuple[tuple[str, ...], ...]
) -> Iterator[Finding]:
    """Findings for ``modules`` under ``layers``, the lowest first."""
    layer_of = {name: place for place, layer in enumerate(layers) for name in layer}
    for name, (path, imports) in modules.items():
        if name == "":
            continue  # the package itself offers what is public, from every layer
        if name not in layer_of:
            yield Finding(path, 1, "imports", f"{name} has no layer: declare it in lint/imports.py")
            continue
        for imported, line in imports.items():
            if imported not in modules:
                continue
            if imported == "":
                message = f"{name} imports the package itself, which imports {name}"
                yield Finding(path, line, "imports", message)
            elif layer_of.get(imported, -1) > layer_of[name]:
                message = f"{name} imports {imported}, which lies above it"
                yield Finding(path, line, "imports", message)
            elif imported != name and _reaches(modules, imported, name):
                yield Finding(path, line, "imports", f"{name} and {imported} import each other")
    for name in layer_of.keys() - modules.keys():
        yield Finding(Path(__file__), 1, "imports", f"{name} is declared but does not exist")


def _reaches(modules: Mapping[str, tuple[Path, Mapping[str, int]]], start: str, goal: str) -> bool:
    seen, waiting = set(), [start]
    while waiting:
        name = waiting.pop()
        if name == goal:
            return True
        if name not in seen and name in modules:
            seen.add(name)
            waiting.extend(modules[name][1])
    return False


def _imports(tree: ast.Module, module: str) -> Iterator[tuple[str, int]]:
    """(module of the package, line) for every import, wherever in the module it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == PACKAGE:
                    yield alias.name.partition(".")[2], node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, module)
            if base is None:
                continue
            for alias in node.names:
                yield (f"{base}.{alias.name}" if base else alias.name), node.lineno
            if base:
                yield base, node.lineno


def _base(node: ast.ImportFrom, module: str) -> str | None:
    """What ``from X import`` names inside the package; None when X is another package."""
    if node.level == 0:
        package, _, rest = (node.module or "").partition(".")
        return rest if package == PACKAGE else None
    parts = module.split(".")[: -node.level]
    return ".".join([*parts, *(node.module or "").split(".")]).strip(".")
