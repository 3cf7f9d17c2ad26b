#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# layout.sh CC BUILD_TREE RELEASE [OUTPUT]: writes OUTPUT/idxd_layout.h for the kernel RELEASE, whose
# build tree is given; without OUTPUT it only finds out whether it could. Says nothing if all is
# well, else in one line what is not.
set -eu
cc=$1 tree=$2 release=$3 output=${4:-}
here=$(dirname "$0")

fail() {
	echo "$1"
	exit 1
}

vmlinux=$tree/vmlinux
if [ ! -e "$vmlinux" ] && [ "$release" = "$(uname -r)" ]; then
	vmlinux=/sys/kernel/btf/vmlinux
fi
[ -e "$vmlinux" ] || fail "no BTF of kernel $release: $vmlinux is not there"
for module in "$tree/drivers/dma/idxd/idxd.ko" \
	"/lib/modules/$release/kernel/drivers/dma/idxd/idxd.ko"*; do
	[ -e "$module" ] && break
done
[ -e "$module" ] || fail "kernel $release has no idxd: $module is not there"

header=$output/idxd_layout.h
if [ -e "$header" ] && [ -z "$(find "$module" "$vmlinux" "$here" -newer "$header")" ]; then
	exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case $module in
*.xz) unpack="xz -dc" ;;
*.zst) unpack="zstd -dc" ;;
*.gz) unpack="gzip -dc" ;;
*) unpack="cat" ;;
esac
$unpack "$module" >"$work/idxd.ko" || fail "$module cannot be unpacked"
"$cc" -O1 -o "$work/generate" "$here/generate.c" "$here/btf.c" 2>"$work/errors" ||
	fail "$cc: $(head -n 1 "$work/errors")"
"$work/generate" "$vmlinux" "$work/idxd.ko" >"$work/header" 2>"$work/errors" ||
	fail "$(head -n 1 "$work/errors")"
[ -z "$output" ] || cp "$work/header" "$header"
