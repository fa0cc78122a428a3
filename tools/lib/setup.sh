# SPDX-License-Identifier: Apache-2.0 OR MIT
# Sourced by the scripts of this folder: finds the tree, installs what is missing, builds.
# Knows nothing of what is tested, shown or measured.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
builds=${BOWLINE_BUILDS:-$top/build-tools}

say() { printf '== %s\n' "$*"; }
die() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }

# install_packages [LIST ...]: those of tools/apt-packages, and of further lists, that are missing; a
# program of a package's name does as well (npm comes with some builds of nodejs). Needs root or sudo
# only then.
install_packages() {
    local wanted missing=() package as_root=()
    mapfile -t wanted < <(grep -vhE '^[[:space:]]*(#|$)' "$top/tools/apt-packages" "$@")
    for package in "${wanted[@]}"; do
        dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' ||
            command -v "$package" >/dev/null || missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return 0
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null ||
            die "these packages are missing and there is no sudo: ${missing[*]}"
        as_root=(sudo)
    fi
    say "installing ${missing[*]}"
    local log
    log=$(mktemp)
    { "${as_root[@]}" apt-get update &&
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 ||
        { tail -n 20 "$log" >&2; rm -f "$log"; die "apt-get failed (above)"; }
    rm -f "$log"
}

# build NAME [meson options]: configure when new or when the options changed, then compile
# $builds/NAME; quiet unless it fails.
build() {
    configure "$@"
    compile "$1"
}

configure() {
    local name=$1 dir=$builds/$1 log=$builds/$1.log
    shift
    mkdir -p "$builds"
    if [ "$(cat "$dir/options-of-tools" 2>/dev/null)" != "${CC:-cc} $*" ]; then
        rm -rf "$dir"
        meson setup "$dir" "$top" "$@" >"$log" 2>&1 ||
            { tail -n 30 "$log" >&2; die "meson setup of $dir failed (above)"; }
        echo "${CC:-cc} $*" >"$dir/options-of-tools"
    fi
}

# compile NAME [TARGET ...]: no target is all of them.
compile() {
    local name=$1 dir=$builds/$1 log=$builds/$1.log
    shift
    ninja -C "$dir" "$@" >"$log" 2>&1 || { grep -vE '^\[[0-9]+/' "$log" | head -n 60 >&2
        die "the build in $dir failed (above; whole: $log)"; }
}
