#!/usr/bin/env bash
# Rehearse a release without publishing: build, check, install in a clean environment, run the main commands.
# Usage: packaging/release_check.sh
set -euo pipefail
cd "$(dirname "$0")/.."
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/tools"
"$work/tools/bin/python" -m pip install -q --disable-pip-version-check build twine hatchling
"$work/tools/bin/python" -m build --no-isolation --outdir "$work/dist" .
"$work/tools/bin/python" -m twine check --strict "$work"/dist/*

python3 -m venv "$work/clean"
wheel="$(ls "$work"/dist/*.whl)"
"$work/clean/bin/python" -m pip install -q --disable-pip-version-check "$wheel[cli,label]"
cd "$work"
clean/bin/gdpa --version
clean/bin/gdpa demo
clean/bin/gdpa example cut
clean/bin/gdpa solve borders.txt --problem max-cut --out cut.csv --proof proof.json
clean/bin/gdpa verify borders.txt proof.json
echo "The release can be published: $(basename "$wheel")"
