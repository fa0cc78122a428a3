#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Run the README's by-hand steps as they are written: install from a copy of the tree,
# then build and run the greeter in a folder outside of it.
# usage: by_hand.sh TOP
set -euo pipefail
top=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export HOME=$scratch/home
mkdir -p "$HOME" "$scratch/outside"

# The n-th ```sh block that follows a line "<!-- run: by-hand -->".
block() {
    awk -v wanted="$1" '
        /^<!-- run: by-hand -->$/ { marked = 1; next }
        marked && /^```sh$/ { n++; inside = (n == wanted); marked = 0; next }
        /^```$/ { inside = 0 }
        inside { print }' "$top/README.md"
}
[ "$(grep -c '^<!-- run: by-hand -->$' "$top/README.md")" -eq 3 ] ||
    { echo "README.md must have three blocks marked to be run by hand"; exit 1; }

mkdir "$scratch/tree"
(cd "$top" && tar -cf - --exclude='./build*' --exclude=./.git .) | tar -xf - -C "$scratch/tree"
cp "$top"/examples/greeter/{greeter.proto,server.c,client.c} "$scratch/outside/"
# Two seconds for a call are what a user should have, and not what a machine that compiles has.
sed -i 's/timeout_ns = UINT64_C(2000000000)/timeout_ns = UINT64_C(60000000000)/' "$scratch/outside/client.c"
# The steps are what is looked at, not what -O3 makes of the library: that is half of the compiler's time.
export CFLAGS=-O0
script=$scratch/steps.sh
{
    echo 'set -emo pipefail' # -m: "kill %1" needs job control
    echo "cd '$scratch/tree'"
    block 1
    echo "cd '$scratch/outside'"
    # A free port, and no race between the server's start and the first call: the client waits.
    block 2
    block 3
} >"$script"
sed -i "s/50051/${BOWLINE_TEST_PORT:-52051}/g" "$script"
# The steps are run as written but for the wait that a person at a terminal makes by itself.
sed -i 's|^\(\./greeter-server .*\) &$|\1 > server.log \&\nfor i in $(seq 1200); do grep -q listening server.log \&\& break; read -t 0.05 <> <(:) \|\| true; done|' "$script"
bash "$script" >"$scratch/out" 2>&1 || { cat "$scratch/out"; exit 1; }
grep -qx 'Hello, World' "$scratch/out" ||
    { cat "$scratch/out"; echo "the client did not print: Hello, World"; exit 1; }
readelf -d "$scratch/outside/greeter-static" 2>/dev/null | grep -q NEEDED &&
    { echo "greeter-static needs shared libraries"; exit 1; }
echo "installed, generated, compiled, ran: Hello, World; static too"
