"""The direction of imports in the driver. This file is the one place that declares it.

``LAYERS`` lists layers from the ground up, each of them groups of modules and packages. A module
imports modules of lower layers, and of its own group where that makes no circle; the groups of one
layer know nothing of each other. A new module beside the packages has to be given its place here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from lint.findings import Finding

PACKAGE = "counterfoil"

Layers = tuple[Mapping[str, tuple[str, ...]], ...]

LAYERS: Layers = (
    {"words": ("errors", "json_text", "names", "values", "settings", "logs")},
    {
        "embedded": ("embedded", "server"),
        "schema": ("migrations", "schema"),
        "pgtap": ("pgtap",),
        "database": ("database", "blocking"),
    },
    {"functions": ("functions", "calls")},
    {
        "wakeups": ("wakeups",),
        "secrets": ("kept_secrets",),
        "launching": ("launching",),
        "cron": ("cron",),
        "receiver": ("addresses", "append", "authority", "tokens", "upstream"),
    },
    {
        "worker": ("worker", "playing"),
        "dispatcher": ("dispatcher", "delivering"),
        "gateway": ("gateway", "receiving"),
    },
    {"services": ("services",), "testing": ("testing",)},
    {"stack": ("stack",)},
    {"demo": ("demo", "demonstration")},
    {"cli": ("cli", "commands", "__main__")},
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
    modules: Mapping[str, tuple[Path, Mapping[str, int]]], layers: Layers
) -> Iterator[Finding]:
    """Findings for ``modules`` under ``layers``, the lowest first."""
    places = {
        name: (height, group)
        for height, layer in enumerate(layers)
        for group, names in layer.items()
        for name in names
    }
    for name, (path, imports) in modules.items():
        if name == "":
            continue  # the package itself offers what is public, from every layer
        if _top(name) not in places:
            yield Finding(path, 1, "imports", f"{name} has no layer: declare it in lint/imports.py")
            continue
        for imported, line in imports.items():
            message = _judge(modules, places, name, imported)
            if message is not None:
                yield Finding(path, line, "imports", message)
    for name in sorted(places.keys() - modules.keys()):
        yield Finding(Path(__file__), 1, "imports", f"{name} is declared but does not exist")


def _judge(
    modules: Mapping[str, tuple[Path, Mapping[str, int]]],
    places: Mapping[str, tuple[int, str]],
    name: str,
    imported: str,
) -> str | None:
    if imported == "" or ("." not in imported and imported not in modules):
        if _reaches(modules, "", name):
            return f"{name} imports the package itself, which imports {name}"
        return None
    if _top(imported) not in places or imported not in modules:
        return None  # a name within a module, or a module that is complained of already
    height, group = places[_top(name)]
    other_height, other_group = places[_top(imported)]
    if other_height > height:
        return f"{name} imports {imported}, which lies above it"
    if other_height == height and other_group != group:
        return f"{name} imports {imported}, which belongs to {other_group} beside it"
    if _reaches(modules, imported, name):
        return f"{name} and {imported} import each other"
    return None


def _top(name: str) -> str:
    """The module or package beside the others that ``name`` is or lies in."""
    return name.partition(".")[0]


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
