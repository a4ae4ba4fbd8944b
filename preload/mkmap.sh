#!/bin/sh
# SPDX-License-Identifier: MIT
# Prints preload/libshunt.map: the names of the rows of preload/calls.h, and nothing else.
# usage: mkmap.sh calls.h >libshunt.map
echo '/* SPDX-License-Identifier: MIT */'
echo '{'
echo '	global:'
sed -n 's/^\tX([^,]*, \([A-Za-z0-9_]*\), (.*/\t\t\1;/p' "$1" | LC_ALL=C sort
echo '	local: *;'
echo '};'
