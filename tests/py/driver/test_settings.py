"""Settings: flags before environment before file, checked, secrets never shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from counterfoil.errors import SettingsError
from counterfoil.settings import Secret, Settings

LONG = "0123456789abcdef0123456789abcdef"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings file of the developer's own."""
    monkeypatch.chdir(tmp_path)


def test_flags_win_over_environment_over_file(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text('schema = "file"\nport = 1\nconcurrency = 3\n')
    environment = {"COUNTERFOIL_SCHEMA": "environment", "COUNTERFOIL_PORT": "2"}
    found = Settings.load({"schema": "flag", "host": None}, environment=environment, file=file)
    assert (found.schema, found.port, found.concurrency) == ("flag", 2, 3)
    assert found.host == Settings().host


def test_the_file_is_found_by_the_environment_or_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "counterfoil.toml").write_text('schema = "here"\n')
    assert Settings.load(environment={}).schema == "here"
    (tmp_path / "other.toml").write_text('schema = "there"\n')
    named = {"COUNTERFOIL_CONFIG": str(tmp_path / "other.toml")}
    assert Settings.load(environment=named).schema == "there"


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"COUNTERFOIL_PORT": "many"}, "port .from the environment. must be a whole number"),
        ({"COUNTERFOIL_PROJECTOR": "maybe"}, "projector .* true or false"),
        ({"COUNTERFOIL_POOL_TIMEOUT": "soon"}, "pool_timeout .* a number"),
        ({"COUNTERFOIL_SIGNING_KEYS": "justone"}, "signing_keys .*id:secret"),
        ({"COUNTERFOIL_SIGNING_KEYS": f"k:{LONG},k:{LONG}x"}, "two keys have the same id"),
        ({"COUNTERFOIL_SIGNING_KEYS": "k1:short"}, "at least 32 bytes"),
        ({"COUNTERFOIL_CONCURRENCY": "0"}, "concurrency must be at least 1"),
        ({"COUNTERFOIL_TOKEN_AUTHORITY": "nobody"}, "local_mint or gateway"),
        ({"COUNTERFOIL_HEAD_PRIORITY": "mine"}, "admission_first or oldest_ready"),
        ({"COUNTERFOIL_CONFIG": "missing.toml"}, "cannot read missing.toml"),
    ],
)
def test_a_bad_value_is_named(environment: dict[str, str], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        Settings.load(environment=environment)


@pytest.mark.parametrize("dsn", ["sesame", "postgresql://u:sesame@[h/d", "password='sesame"])
def test_a_bad_dsn_is_named_and_not_shown(dsn: str) -> None:
    with pytest.raises(SettingsError, match="dsn is no connection string") as refused:
        Settings.load({"dsn": dsn}, environment={})
    assert "sesame" not in str(refused.value)


def test_an_unknown_name_in_the_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "counterfoil.toml").write_text("poort = 1\n")
    with pytest.raises(SettingsError, match=r"poort.*file"):
        Settings.load(environment={})


def test_broken_toml_is_named(tmp_path: Path) -> None:
    (tmp_path / "counterfoil.toml").write_text("= =")
    with pytest.raises(SettingsError, match=r"counterfoil\.toml is not TOML"):
        Settings.load(environment={})


def test_signing_keys_keep_their_order() -> None:
    found = Settings.load(environment={"COUNTERFOIL_SIGNING_KEYS": f"new:{LONG}, old:{LONG}x"})
    assert found.signing_keys == (("new", Secret(LONG)), ("old", Secret(LONG + "x")))


def test_secrets_are_never_shown() -> None:
    found = Settings(
        dsn="postgresql://u:hunter2@h/d",
        signing_keys=(("k", Secret(LONG)),),
        internal_token=Secret("hunter2"),
    )
    for text in (repr(found), str(found), f"{found.internal_token}", f"{found.signing_keys!r}"):
        assert "hunter2" not in text
        assert LONG not in text
    assert found.internal_token.reveal() == "hunter2"
