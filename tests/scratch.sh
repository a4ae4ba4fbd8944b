# SPDX-License-Identifier: MIT
# Scratch folders, which go with their script, however it ends. Sourced.
# shellcheck shell=bash

scratch_folders=()

# scratch NAME [GIVEN]: makes a folder and sets $scratch. One that the caller has GIVEN stays.
scratch() {
	if [ "${2:-}" ]; then
		mkdir -p "$2" && scratch=$(cd "$2" && pwd) || exit 99
		return
	fi
	scratch=$(mktemp -du "${TMPDIR:-/tmp}/shunt-$1.XXXXXX")
	scratch_folders+=("$scratch")	# before it is there: we may end in between
	mkdir -m 700 "$scratch" || { scratch_keep "$scratch" && exit 99; }
}

# scratch_keep FOLDER: it stays, because there is something to look at in it.
scratch_keep() {
	local folder others=()
	for folder in "${scratch_folders[@]}"; do
		[ "$folder" = "$1" ] || others+=("$folder")
	done
	scratch_folders=("${others[@]}")
}

# By another name first: who is still running then finds no place to write to, and nothing comes back.
scratch_remove() {
	local folder
	for folder in "${scratch_folders[@]}"; do
		[ ! -d "$folder" ] || { mv "$folder" "$folder.gone" && rm -rf "$folder.gone"; }
	done
}

# A script with more to clean up has a trap of its own, which calls scratch_remove last. TERM ends in the EXIT trap, too,
# and at once; with a trap of its own it would wait for the command that runs. HUP and INT do not always, but who sends
# them, a terminal, tells that command as well.
trap scratch_remove EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
