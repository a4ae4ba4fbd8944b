#!/bin/bash
# SPDX-License-Identifier: MIT
# tools/states counts words and flags of a structure, and refuses more than it is told.
set -eu

states=${top_srcdir:?}/tools/states
command -v python3 >/dev/null || { echo "there is no python3"; exit 77; }
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$top_srcdir/tests/lib.sh"

cat >"$work/planted.h" <<'END'
#include <stdbool.h>
struct shunt_lock { int word, rank; };
struct shunt_inner { bool one, two; char text[4][8]; };
struct shunt_part { bool whole; struct shunt_outer *of; struct shunt_part *next; };
struct shunt_hidden { _Atomic(struct shunt_part *) part; struct shunt_inner *inner[2]; struct shunt_part *again; };
struct shunt_file { struct shunt_chain *chain; struct shunt_thread *thread; };
struct shunt_outer {
	struct shunt_lock lock;
	_Alignas(64) _Atomic bool flag;
	bool *pointer;
	struct shunt_inner inner, *other;
	void (*called)(int first, bool second);
	unsigned int bits : 3;
};
END
count() { # STATUS OPTION…
	expect "$1" "$states" --header "$work/planted.h" "${@:2}" shunt_outer
}

count 0 --json
has "$out" '^{"structure": "shunt_outer", "words": 9, "flags": 3}$'
count 0 --list
has "$out" '^inner\.two \(flag\)$'
has "$out" '^called$'
count 0 --words 9 --flags 3
count 1 --words 8
count 1 --flags 2
# Two of them: each word is counted once, and each structure has limits of its own.
both() { # STATUS OUTER INNER
	expect "$1" "$states" --header "$work/planted.h" --json "shunt_outer$2" "shunt_inner$3"
}
both 0 "" ""
has "$out" '{"structure": "shunt_outer", "words": 7, "flags": 1}, {"structure": "shunt_inner", "words": 3, "flags": 2}'
both 0 :7:1 :3:2
both 1 :6 ""
both 1 :7:0 ""
both 1 "" :2
both 1 "" :3:1
both 2 :many ""
both 2 :1:2:3 ""
# What a structure points to counts as if it were inside, but once, and not what the pointer does not own.
count 0 --list
lacks "$out" '^other->'
expect 0 "$states" --header "$work/planted.h" --list shunt_hidden shunt_outer
has "$out" '^part->whole \(flag\)$'
has "$out" '^part->of$'
lacks "$out" '^part->of->'
lacks "$out" '^again->'
lacks "$out" '^inner->'
has "$out" '^struct shunt_hidden: 6 words, 1 of them flags$'
# Also where only a source knows it.
expect 0 "$states" --header "$work/planted.h" --list shunt_file
has "$out" '^chain->'
lacks "$out" '^thread->'
expect 2 "$states" --header "$work/planted.h" shunt_nothing
expect 2 "$states" --header "$work/nowhere.h"
expect 2 "$states" --wrong
expect 0 "$states" --help
finish
