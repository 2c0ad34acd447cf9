#!/usr/bin/env bash
# Chromium for the browser tests, from Debian's packages: installed where we are root, unpacked into .venv where we are not.
# Says nothing where a Chromium is there already, and only a line where none can be had: the tests then say so themselves.
set -euo pipefail
cd "$(dirname "$0")/../.."
place=$PWD/.venv/chromium

command -v chromium > /dev/null && exit 0
[ -x "$place/run" ] && exit 0
command -v apt-get > /dev/null || { echo "no apt-get here: install Chromium by hand for the browser tests"; exit 0; }

if [ "$(id -u)" = 0 ]; then
  export DEBIAN_FRONTEND=noninteractive
  { apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium; } > /dev/null ||
    echo "Chromium could not be installed: the browser tests will be skipped"
  exit 0
fi

# Lists and packages in a folder of our own: reading them needs no root.
mkdir -p "$place/state/lists/partial" "$place/cache/archives/partial" "$place/root"
own=(-qq -o "Dir::State::lists=$place/state/lists" -o "Dir::Cache=$place/cache" -o Debug::NoLocking=1)
apt-get "${own[@]}" update > /dev/null || { echo "Chromium could not be fetched: the browser tests will be skipped"; exit 0; }
wanted=$(apt-get "${own[@]}" -s --no-install-recommends install chromium | awk '/^Inst/ {print $2}')
(cd "$place/cache" && apt-get "${own[@]}" download $wanted)
for package in "$place"/cache/*.deb; do dpkg -x "$package" "$place/root"; done
rm -rf "$place/cache" "$place/state"
cat > "$place/run" <<EOF
#!/bin/sh
root=$place/root
LD_LIBRARY_PATH=\$root/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH 2> /dev/null || echo x86_64-linux-gnu):\$root/lib/x86_64-linux-gnu exec \$root/usr/lib/chromium/chromium "\$@"
EOF
chmod +x "$place/run"
