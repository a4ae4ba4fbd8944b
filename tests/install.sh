#!/bin/bash
# SPDX-License-Identifier: MIT
# What `make install` puts into a folder is enough: the command finds its library there, and a program finds the header by
# pkg-config and runs bare and shunted. `make uninstall` leaves nothing.
set -u
. "${top_srcdir:?}/tests/lib.sh"

root=$work/root
make -C "$top_builddir" --no-print-directory install DESTDIR="$root" >"$work/log" 2>&1 ||
	{ tail -n 20 "$work/log"; problem "make install"; finish; }
installed=$(find "$root" -path '*/bin/shunt')
library=$(find "$root" -name libshunt.so)
if [ ! -x "$installed" ] || [ ! -f "$library" ]; then
	problem "installed: $(find "$root")"
	finish
fi
shunt=$installed

expect 0 "$shunt" run printenv LD_PRELOAD
[ "$out" = "$(realpath "$library")" ] || problem "LD_PRELOAD is '$out', not $library"

if ! command -v pkg-config >/dev/null; then
	echo "there is no pkg-config"
else
	pc=$(find "$root" -name shunt.pc)
	export PKG_CONFIG_PATH=${pc%/*} PKG_CONFIG_SYSROOT_DIR=$root
	expect 0 pkg-config --modversion shunt
	expect 0 "$shunt" --version
	version=$(pkg-config --modversion shunt)
	has "$out" "^shunt $version( |\$)"
	[ "$(pkg-config --variable=preload shunt)" = "${library#"$root"}" ] ||
		[ "$(pkg-config --variable=preload shunt)" = "$library" ] ||
		problem "pkg-config says that the library is $(pkg-config --variable=preload shunt)"
	for options in "-Wall -Wextra -Wpedantic -Werror -std=c11 -D_DEFAULT_SOURCE -O2" "-no-pie -fno-pie" "-x c++ -Wall -Wextra -Werror"; do
		# shellcheck disable=SC2046,SC2086 # lists of options
		if ! $CC $options $(pkg-config --cflags shunt) -o "$work/api" "$top_srcdir/tests/api.c" 2>"$work/err"; then
			grep -q 'cc1plus.*No such file' "$work/err" || problem "$CC $options: $(cat "$work/err")"
			continue
		fi
		expect 0 "$work/api"
		[ "$out" = bare ] || problem "bare, built with $options, it says: $out"
		expect 0 "$shunt" run "$work/api"
		[ "$out" = "shunted $version" ] || problem "shunted, built with $options, it says: $out"
		expect 0 env SHUNT_ENABLE=0 "$shunt" run "$work/api"
		[ "$out" = bare ] || problem "with SHUNT_ENABLE=0, it says: $out"
	done
fi

make -C "$top_builddir" --no-print-directory uninstall DESTDIR="$root" >"$work/log" 2>&1 ||
	{ tail -n 20 "$work/log"; problem "make uninstall"; }
left=$(find "$root" ! -type d)
[ -z "$left" ] || problem "make uninstall has left $left"
left=$(cd "$root" && find . -name '*shunt*')
[ -z "$left" ] || problem "make uninstall has left $left"
finish
