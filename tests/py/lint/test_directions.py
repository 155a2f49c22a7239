"""Calls between rooms and imports between modules go one way."""

from __future__ import annotations

from pathlib import Path

import pytest

from lint import imports, rooms

SHOUT = "functions/attempts/shout.sql"
LAYERS = (
    {"words": ("errors", "values")},
    {"database": ("database",), "beside": ("beside",)},
    {"cli": ("cli",)},
)


def call(tree: Path, name: str) -> None:
    """Let shout() of the room attempts call another function."""
    path = tree / SHOUT
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("counterfoil.raise_invalid_argument(", f"counterfoil.{name}("))


def add(tree: Path, room: str, name: str, roles: str = "[]") -> None:
    """Put a function into a room."""
    path = tree / f"functions/{room}/{name}.sql"
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        f"create function counterfoil.{name}(p_a text, p_b text, p_c text) returns void "
        "language sql as $function$ select counterfoil.raise_invalid_argument('', '', '') "
        "$function$;"
    )
    grants = tree / "grants.toml"
    grants.write_text(f"{grants.read_text()}\n[{room}_2]\n{name} = {roles}\n")


def test_everyone_may_call_common(tree: Path) -> None:
    assert rooms.check(tree) == []


@pytest.mark.parametrize(
    ("room", "roles"),
    [("admission", '["worker"]'), ("admission", "[]"), ("attempts", "[]"), ("common", "[]")],
)
def test_a_call_may_go_back_or_to_a_private_helper(tree: Path, room: str, roles: str) -> None:
    add(tree, room, "other", roles)
    call(tree, "other")
    assert rooms.check(tree) == []


@pytest.mark.parametrize(
    ("room", "roles", "said"),
    [
        ("facts", "[]", "a room after it"),
        ("operations", '["operator"]', "a room after it"),
        ("attempts", '["worker"]', "public in its own room"),
    ],
)
def test_a_call_may_not_go_ahead_or_to_a_public_sibling(
    tree: Path, room: str, roles: str, said: str
) -> None:
    add(tree, room, "other", roles)
    call(tree, "other")
    (finding,) = rooms.check(tree)
    assert said in finding.message
    assert finding.path.name == "shout.sql"


def test_common_calls_no_room(tree: Path) -> None:
    add(tree, "common", "other")
    path = tree / "functions/common/other.sql"
    path.write_text(path.read_text().replace("raise_invalid_argument", "shout"))
    (finding,) = rooms.check(tree)
    assert "a room after it" in finding.message


def test_a_call_to_nothing_is_found(tree: Path) -> None:
    call(tree, "nowhere")
    (finding,) = rooms.check(tree)
    assert "no file creates" in finding.message


def package(folder: Path, **modules: str) -> list[str]:
    """Messages about a package of these modules."""
    (folder / "__init__.py").write_text("")
    for name in ("errors", "values", "database", "beside", "cli"):
        (folder / f"{name}.py").write_text(modules.pop(name, ""))
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    found = imports.check_modules(imports.read_modules(folder), LAYERS)
    return [finding.message for finding in found]


@pytest.mark.parametrize(
    "text",
    [
        "from counterfoil.errors import X",
        "from counterfoil import errors, values",
        "import counterfoil.errors",
        "from .errors import X",
        "def f():\n    from . import errors\n",
    ],
)
def test_imports_of_lower_layers_pass(tmp_path: Path, text: str) -> None:
    assert package(tmp_path, database=text) == []


@pytest.mark.parametrize(
    "text",
    [
        "from counterfoil.cli import main",
        "from counterfoil import errors, cli",
        "import counterfoil.cli",
        "from .cli import main",
        "def f():\n    from . import cli\n",
    ],
)
def test_imports_of_higher_layers_are_found(tmp_path: Path, text: str) -> None:
    (message,) = package(tmp_path, database=text)
    assert message == "database imports cli, which lies above it"


def test_groups_of_one_layer_know_nothing_of_each_other(tmp_path: Path) -> None:
    (message,) = package(tmp_path, database="from counterfoil import beside")
    assert message == "database imports beside, which belongs to beside beside it"


def test_a_circle_within_a_group_is_found(tmp_path: Path) -> None:
    found = package(
        tmp_path, errors="from counterfoil import values", values="from counterfoil import errors"
    )
    assert len(found) == 2
    assert "import each other" in found[0]


def test_a_module_without_a_layer_is_found(tmp_path: Path) -> None:
    (message,) = package(tmp_path, novelty="")
    assert message.startswith("novelty has no layer")


@pytest.mark.parametrize("text", ["import counterfoil", "from counterfoil import Worker"])
def test_a_module_may_not_import_the_package_that_imports_it(tmp_path: Path, text: str) -> None:
    assert package(tmp_path, cli=text) == []
    (message,) = package(tmp_path, cli=text, __init__="from counterfoil.cli import main")
    assert "imports the package itself" in message


def test_a_declared_module_has_to_exist(tmp_path: Path) -> None:
    (finding,) = imports.check_modules({}, ({"ghosts": ("ghost",)},))
    assert "does not exist" in finding.message
