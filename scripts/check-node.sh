#!/usr/bin/env bash
# Says clearly when Node.js or npm is missing or too old. Needs nothing but bash.

set -euo pipefail

if ! command -v node >/dev/null 2>&1; then
  echo "Node.js was not found. EastGuard needs Node.js 20.19 or later, with npm: https://nodejs.org" >&2
  exit 1
fi
found="$(node --version)"
version="${found#v}"
major="${version%%.*}"
rest="${version#*.}"
minor="${rest%%.*}"
if ((major < 20 || (major == 20 && minor < 19))); then
  echo "Node.js ${found} was found at $(command -v node); EastGuard needs 20.19 or later: https://nodejs.org" >&2
  exit 1
fi
if ! command -v npm >/dev/null 2>&1; then
  echo "Node.js ${found} was found, but npm was not; it comes with Node.js: https://nodejs.org" >&2
  exit 1
fi
