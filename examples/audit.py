"""Audit installed Python packages: is every file what it was when it was installed?

counterfoil worker examples/audit.py
counterfoil launch --play audit-package --input examples/packages.jsonl
"""

import base64
import csv
import hashlib
from importlib import metadata

from counterfoil import Worker

worker = Worker()


def list_files(package):
    record = metadata.distribution(package).read_text("RECORD") or ""
    return [row[:2] for row in csv.reader(record.splitlines()) if row[1]]


def check_hashes(package, files):
    found = metadata.distribution(package)
    bad = []
    for path, recorded in files:
        algorithm, _, expected = recorded.partition("=")
        digest = hashlib.new(algorithm, found.locate_file(path).read_bytes()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != expected:
            bad.append(path)
    return bad


@worker.play("audit-package")
def audit(run, package):
    files = run.step("inventory", list_files, package)  # memoised: never repeated after success
    bad = run.step("hashes", check_hashes, package, files)
    run.log(f"{len(files)} files checked")
    run.progress({"done": len(files)})
    return {"files": len(files), "bad": bad}


if __name__ == "__main__":
    worker.run()
