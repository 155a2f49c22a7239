"""The demo's play: audit an installed Python distribution against its own RECORD.

counterfoil worker counterfoil.demonstration.play
"""

from __future__ import annotations

import base64
import csv
import hashlib
import re
from importlib import metadata
from pathlib import Path
from typing import Any

from counterfoil.playing.interruptions import PermanentError
from counterfoil.playing.run import Run
from counterfoil.worker import Worker

PLAY = "audit-distribution"
FILES_PER_STEP = 150
_CHUNK = 1 << 20
_CLASSIFIER = "License :: "

worker = Worker()


@worker.play(PLAY)
def audit(run: Run, package: dict[str, Any]) -> dict[str, Any]:
    """Every file of a distribution against the sha256 in its RECORD; sizes and licence."""
    inventory = run.step("inventory", take_inventory, package["name"])
    run.log(f"{package['name']} {inventory['version']}: {inventory['files']} files in RECORD")
    parts = [
        {"name": package["name"], "from": start, "to": start + FILES_PER_STEP}
        for start in range(0, inventory["files"], FILES_PER_STEP)
    ]
    checked: list[dict[str, Any]] = []
    for part in parts:
        checked.append(run.step("hashes", check_hashes, part))
        run.progress({"done": min(part["to"], inventory["files"]), "of": inventory["files"]})
    licence = run.step("licence", find_licence, package["name"])
    altered = [path for part in checked for path in part["altered"]]
    missing = [path for part in checked for path in part["missing"]]
    for path in altered:
        run.log(f"altered since it was installed: {path}", level="warning")
    for path in missing:
        run.log(f"missing: {path}", level="warning")
    return {
        "name": package["name"],
        "version": inventory["version"],
        "files": inventory["files"],
        "verified": sum(part["verified"] for part in checked),
        "unsigned": sum(part["unsigned"] for part in checked),
        "bytes": sum(part["bytes"] for part in checked),
        "altered": altered,
        "missing": missing,
        "licence": licence,
    }


def take_inventory(name: str) -> dict[str, Any]:
    """Version of the distribution, and how many files its RECORD lists."""
    found = _distribution(name)
    return {"version": found.version, "files": len(_record(found))}


def check_hashes(part: dict[str, Any]) -> dict[str, Any]:
    """Compare some of the files of a RECORD, by their numbers, with what lies on disk."""
    found = _distribution(part["name"])
    counts = {"verified": 0, "unsigned": 0, "bytes": 0}
    altered, missing = [], []
    for path, expected in _record(found)[part["from"] : part["to"]]:
        file = Path(str(found.locate_file(path)))
        if not file.is_file():
            missing.append(path)
            continue
        counts["bytes"] += file.stat().st_size
        if not expected:
            counts["unsigned"] += 1  # RECORD itself, and what pip compiled
        elif _digest(file, expected) == expected:
            counts["verified"] += 1
        else:
            altered.append(path)
    return {**counts, "altered": altered, "missing": missing}


def find_licence(name: str) -> str:
    """The licence as the metadata names it: expression, classifier, or the old free text."""
    about = _distribution(name).metadata
    if "License-Expression" in about:
        return str(about["License-Expression"])
    classified = [
        text.removeprefix(_CLASSIFIER).rpartition(" :: ")[2]
        for text in about.get_all("Classifier") or []
        if text.startswith(_CLASSIFIER)
    ]
    if classified:
        return " AND ".join(sorted(set(classified)))
    text = str(about["License"]).strip() if "License" in about else ""
    return text if text and "\n" not in text and len(text) < 60 else "not stated"


def distributions() -> list[dict[str, Any]]:
    """Every distribution installed here that has a RECORD, once each, the smallest first."""
    found: dict[str, tuple[int, dict[str, Any]]] = {}
    for item in metadata.distributions():
        name, record = item.metadata["Name"], item.read_text("RECORD")
        if name and record:
            key = re.sub(r"[-_.]+", "-", name).lower()
            found.setdefault(key, (len(record), {"name": name}))
    return [package for _, package in sorted(found.values(), key=lambda entry: entry[0])]


def _distribution(name: str) -> metadata.Distribution:
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        raise PermanentError(f"{name} is not installed here") from None


def _record(found: metadata.Distribution) -> list[tuple[str, str]]:
    """(path, ``algorithm=digest`` or nothing) of each line of RECORD."""
    text = found.read_text("RECORD")
    if not text:
        raise PermanentError(f"{found.metadata['Name']} has no RECORD")
    return [(row[0], row[1] if len(row) > 1 else "") for row in csv.reader(text.splitlines())]


def _digest(file: Path, like: str) -> str:
    algorithm = like.partition("=")[0]
    digest = hashlib.new(algorithm)
    with file.open("rb") as stream:
        while block := stream.read(_CHUNK):
            digest.update(block)
    return f"{algorithm}={base64.urlsafe_b64encode(digest.digest()).rstrip(b'=').decode()}"


if __name__ == "__main__":
    worker.run()
