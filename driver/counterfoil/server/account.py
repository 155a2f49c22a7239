"""The operating system account that runs the embedded server, and running programs as it.

PostgreSQL refuses to run as root. Whoever is not root runs the server under the own account;
root hands it to an unprivileged one and keeps nothing of root's rights on the way: no extra
groups, group and user replaced for good, a clean environment, a session of its own.
"""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

OS_USER_VARIABLE = "COUNTERFOIL_OS_USER"

# Nothing of the caller's environment reaches the server: no PG* variable, no secret.
_CLEAN_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}


class EmbeddedServerError(RuntimeError):
    """The embedded server can't do what was asked.

    The message always has three parts, which are attributes too: `problem` (what is wrong),
    `where` (the folder, file, account or process it is about) and `remedy` (what to do).
    """

    def __init__(self, problem: str, where: object, remedy: str) -> None:
        # All three are arguments of the exception, so that it survives pickling.
        super().__init__(problem, str(where), remedy)
        self.problem = problem
        self.where = str(where)
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.problem}: {self.where}\n{self.remedy}"


@dataclass(frozen=True)
class Account:
    """An operating system account. `foreign`: the caller is root and must become it first."""

    name: str
    uid: int
    gid: int
    foreign: bool

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        stdin: str = "",
        environment: Mapping[str, str] | None = None,
        timeout: float = 120.0,
        pass_fds: Sequence[int] = (),
    ) -> subprocess.CompletedProcess[str]:
        """Run a program as this account to its end; stdout and stderr come back as text.

        Raises EmbeddedServerError when it can't be started or takes longer than `timeout` s.
        """
        try:
            return subprocess.run(  # noqa: S603 - fixed programs, no shell text from outside
                [str(part) for part in argv],
                input=stdin,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=timeout,
                cwd="/",  # the caller's folder may be closed to this account
                env={**_CLEAN_ENVIRONMENT, **(environment or {})},
                umask=0o077,
                pass_fds=pass_fds,
                start_new_session=True,
                user=self.uid if self.foreign else None,
                group=self.gid if self.foreign else None,
                extra_groups=[] if self.foreign else None,
            )
        except subprocess.TimeoutExpired as error:
            raise EmbeddedServerError(
                f"{Path(str(argv[0])).name} did not end within {timeout:g} s",
                argv[0],
                "Look at the load and the disk of this machine, then try again.",
            ) from error
        except (OSError, subprocess.SubprocessError) as error:
            raise EmbeddedServerError(
                f"could not run it as the account {self.name!r} (uid {self.uid}): {error}",
                argv[0],
                "The file must be executable for that account, and root must be allowed to "
                f"change to it; {OS_USER_VARIABLE} names another account.",
            ) from error

    def can_enter(self, folder: Path) -> bool:
        """Whether this account can reach and enter a folder, found out by doing it."""
        return self.run(["/bin/sh", "-c", 'cd "$1"', "sh", folder]).returncode == 0

    def can_use(self, program: Path, *files: Path) -> bool:
        """Whether this account can execute a program and read the files."""
        script = 'test -x "$1" || exit 1; for f; do test -r "$f" || exit 1; done'
        return self.run(["/bin/sh", "-c", script, "sh", program, *files]).returncode == 0


def server_account(owner: int | None) -> Account:
    """The account for a data folder that uid `owner` owns (None: there is no data yet).

    The caller's own, unless the caller is root: then the owner of the data, so that a `postgres`
    account that was installed later changes nothing; without data COUNTERFOIL_OS_USER, else
    `postgres`, else `nobody`. Raises EmbeddedServerError when none of them will do.
    """
    caller = os.geteuid()
    if caller != 0:
        return _account(_entry(caller), foreign=False)
    asked = os.environ.get(OS_USER_VARIABLE)
    if asked:
        chosen = _named(asked)
        if chosen is None:
            raise EmbeddedServerError(
                "there is no such operating system account",
                f"{OS_USER_VARIABLE}={asked}",
                "Name an existing unprivileged account, or unset the variable.",
            )
    elif owner is not None:
        chosen = _entry(owner)
    else:
        chosen = _named("postgres") or _named("nobody")
    if chosen is None or chosen.pw_uid == 0:
        raise EmbeddedServerError(
            "PostgreSQL does not run as root, and there is no unprivileged account for it",
            chosen.pw_name if chosen else "neither postgres nor nobody exists",
            f"Create one (useradd --system counterfoil) and set {OS_USER_VARIABLE} to its name.",
        )
    if owner is not None and owner != chosen.pw_uid:
        raise EmbeddedServerError(
            f"the data folder belongs to uid {owner}, not to the account that was asked for",
            f"{OS_USER_VARIABLE}={asked}",
            f"Unset {OS_USER_VARIABLE}, or name the account that created the data.",
        )
    return _account(chosen, foreign=True)


def caller_name() -> str:
    """The name under which peer authentication will see the caller."""
    return _entry(os.geteuid()).pw_name


def _account(entry: pwd.struct_passwd, *, foreign: bool) -> Account:
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, foreign)


def _named(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _entry(uid: int) -> pwd.struct_passwd:
    try:
        return pwd.getpwuid(uid)
    except KeyError as error:
        raise EmbeddedServerError(
            "this user id has no name on this machine, and peer authentication needs one",
            f"uid {uid}",
            "Add an entry for it to /etc/passwd (or the image), or use a server of your own (DSN).",
        ) from error
