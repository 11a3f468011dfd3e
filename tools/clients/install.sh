#!/bin/sh
# Installs the clients that the tests run, at the versions of *.txt and */package-lock.json, into the user's cache: a
# folder for each list, named by the list's digest. Prints "NAME FOLDER" for each. With -n it installs nothing and
# fails when something is missing. Needs python3 with venv, npm and flock.
set -eu
cd "$(dirname "$0")"

say() { printf 'clients: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

[ -n "${XDG_CACHE_HOME:-}${HOME:-}" ] || die "set HOME or XDG_CACHE_HOME: the clients are kept in a cache below it"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/evenhand/clients
mkdir -p "$cache" || die "cannot make $cache; set XDG_CACHE_HOME to a folder that can be written"
exec 9>"$cache/lock" && flock 9

# place NAME FILE...: sets dir to where what the files list belongs.
place() {
	name=$1
	shift
	dir=$cache/$name-$({ uname -m; python3 --version; node --version; cat "$@"; } | sha256sum | cut -c1-12)
	printf '%s %s\n' "$name" "$dir"
	[ ! -f "$dir/ready" ] || return 1
	[ "$only" = look ] && die "$name is not installed; run tools/clients/install.sh"
	say "installing $name"
	rm -rf "$dir"
}

only=install
[ "${1:-}" != -n ] || only=look

for list in *.txt; do
	place "${list%.txt}" "$list" || continue
	python3 -m venv "$dir" || die "python3 has no venv (Debian, Ubuntu: apt-get install python3-venv)"
	"$dir/bin/pip" install --quiet --disable-pip-version-check --no-deps --no-compile -r "$list" >&2
	touch "$dir/ready"
done
for lock in */package-lock.json; do
	place "${lock%/*}" "$lock" || continue
	mkdir "$dir"
	cp "${lock%/*}/package.json" "$lock" "$dir"
	(cd "$dir" && npm ci --silent --ignore-scripts --no-audit --no-fund >&2)
	touch "$dir/ready"
done
