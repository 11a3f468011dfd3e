#!/usr/bin/env bash
# Builds the peers of bench/scan into a folder outside the repository and says which are there.
# Usage: bench/scan/peers/setup.sh DIR
# Hyperscan wants libhyperscan-dev, pkg-config and a C compiler; Rust cargo; the others Python 3.11 with venv.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
dir=$(cd "$1" && pwd)

# peer NAME COMMAND...: builds one; what it says goes to a log beside it.
peer() {
  local name=$1
  shift
  if "$@" >"$dir/$name.log" 2>&1; then echo "$name: built"; else echo "$name: not built, see $dir/$name.log"; fi
}

hyperscan() {
  cd "$here/hyperscan" && CGO_ENABLED=1 go build -o "$dir/hyperscan" .
}

rust() {
  cd "$here/rust" && cargo build --release --target-dir "$dir/rust-target" && cp "$dir/rust-target/release/peer" "$dir/rust"
}

python() {
  python3 -m venv "$dir/venv" && "$dir/venv/bin/pip" install -q -r "$here/python/requirements.txt" &&
    "$dir/venv/bin/pip" install -q --no-deps llm-guard==0.3.16 # without torch and transformers, which its Regex scanner does not use
}

peer hyperscan hyperscan
peer rust rust
peer python python
