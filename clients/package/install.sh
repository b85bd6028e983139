#!/bin/sh
# Installs treelined on Linux, without root, or removes it:
#   sh install.sh --from PLACE [--prefix DIR] [--static]
#   sh install.sh --uninstall [--prefix DIR]
# PLACE is a folder or an https address with SHA256SUMS and the tarballs of a release; DIR is ~/.local by default.
# Needs tar, gzip and sha256sum, and curl for an address. --static takes the programs that need no C library.
set -eu

prefix="${HOME:?is not set}/.local"
from=
static=
action=install

fail() {
    echo "install.sh: $*" >&2
    exit 1
}

USAGE='usage: install.sh --from PLACE [--prefix DIR] [--static] | --uninstall [--prefix DIR]'

usage() {
    echo "$USAGE" >&2
    exit 2
}

while [ $# -gt 0 ]; do
    case $1 in
    --from | --prefix)
        [ $# -ge 2 ] || usage
        if [ "$1" = --from ]; then from=$2; else prefix=$2; fi
        shift
        ;;
    --static) static=-static ;;
    --uninstall) action=uninstall ;;
    --help | -h)
        echo "$USAGE"
        exit 0
        ;;
    *) usage ;;
    esac
    shift
done

case $prefix in
/*) ;;
*) prefix=$PWD/$prefix ;;
esac
# The list of installed files: on each line a checksum and a path, in the format of sha256sum.
list=$prefix/share/treelined/installed

# fetch NAME FILE: copies or downloads a file of the release.
fetch() {
    case $from in
    https://*) curl --proto '=https' --tlsv1.2 --fail --silent --show-error --location --output "$2" "$from/$1" ;;
    http://*) fail "$from is not https" ;;
    *) cp "$from/$1" "$2" ;;
    esac || fail "$from has no $1"
}

# Removes the files in the list, and then their empty folders. A file that was changed after the installation stays.
remove() {
    while read -r sum file; do
        [ -f "$prefix/$file" ] || continue
        if echo "$sum  $prefix/$file" | sha256sum --check --status; then
            rm -f "$prefix/$file"
        elif [ "$action" = uninstall ]; then
            echo "stays, since it was changed: $prefix/$file" >&2
        else
            mv "$prefix/$file" "$prefix/$file.changed"
            echo "was changed, and is kept as $prefix/$file.changed" >&2
        fi
        folder=$(dirname "$file")
        while [ "$folder" != . ] && rmdir "$prefix/$folder" 2>/dev/null; do
            folder=$(dirname "$folder")
        done
    done <"$list"
    rm -f "$list"
    rmdir "$prefix/share/treelined" "$prefix/share" "$prefix" 2>/dev/null || true
}

if [ "$action" = uninstall ]; then
    [ -f "$list" ] || fail "nothing that this script has installed is in $prefix"
    remove
    echo "removed from $prefix; sessions stay in ~/.local/share/treelined"
    exit 0
fi

[ -n "$from" ] || usage
case $(uname -s)-$(uname -m) in
Linux-x86_64) kind=linux-x64$static ;;
Linux-aarch64) kind=linux-arm64$static ;;
*) fail "it installs on Linux alone, on x86-64 and arm64; README.md has other ways" ;;
esac
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fetch SHA256SUMS "$scratch/SHA256SUMS"
name=$(sed -n "s/^[0-9a-f]\{64\}  \(treelined-[0-9][^ /]*-$kind\.tar\.gz\)\$/\1/p" "$scratch/SHA256SUMS")
[ -n "$name" ] || fail "$from has no tarball for $kind"
[ "$(echo "$name" | wc -l)" -eq 1 ] || fail "$from has several releases"
fetch "$name" "$scratch/$name"
(cd "$scratch" && grep -F "  $name" SHA256SUMS | sha256sum --check --status) ||
    fail "$name is not the file of SHA256SUMS; nothing was installed"

mkdir "$scratch/root"
tar --extract --gzip --no-same-owner --file "$scratch/$name" --directory "$scratch/root" --strip-components 1
(cd "$scratch/root" && find . -type f | sed 's|^\./||' | LC_ALL=C sort) >"$scratch/files"

# A file that another program has written there stays.
while read -r file; do
    if [ -e "$prefix/$file" ] && ! { [ -f "$list" ] && grep -qF "  $file" "$list"; }; then
        fail "$prefix/$file is there already, and not from this script; --prefix names another place"
    fi
done <"$scratch/files"

(cd "$scratch/root" && xargs sha256sum <"$scratch/files") >"$scratch/installed"
if [ -f "$list" ]; then
    remove
fi
mkdir -p "$prefix/share/treelined"
cp "$scratch/installed" "$list"
while read -r file; do
    mkdir -p "$(dirname "$prefix/$file")"
    # A running program is replaced by a new file, since it cannot be written to.
    cp "$scratch/root/$file" "$prefix/$file.new"
    mv -f "$prefix/$file.new" "$prefix/$file"
done <"$scratch/files"

echo "installed ${name%.tar.gz} in $prefix"
case :$PATH: in
*:"$prefix/bin":*) ;;
*) echo "put $prefix/bin on the PATH: export PATH=\"$prefix/bin:\$PATH\"" ;;
esac
echo "next: treelined setup"
