#!/bin/bash
# SPDX-License-Identifier: MIT
# rsync's daemon: a tree there and back, changes only, many small files, two clients at once.
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires rsync
version=$(rsync --version | awk 'NR == 1 { print $3 }')
why="its receiving end forks, and both processes use the connection: the kernel's after its first bytes"

sync() {
	timeout $patience $client rsync -a "$@"
}

push() {
	sync "$dir/tree/" rsync://127.0.0.1:7001/data/pushed/ && diff -r "$dir/tree" "$dir/data/pushed"
}

pull() { # NAME
	sync rsync://127.0.0.1:7001/data/pushed/ "$dir/pulled.$1/" && diff -r "$dir/tree" "$dir/pulled.$1"
}

changes() {
	echo changed >> "$dir/tree/large"
	rm "$dir/tree/small.7"
	sync --delete --stats "$dir/tree/" rsync://127.0.0.1:7001/data/pushed/ | grep -E 'regular files transferred|deleted'
	diff -r "$dir/tree" "$dir/data/pushed"
}

together() {
	pull 1 & pull 2 && wait $!
}

drive() {
	local i
	mkdir -p "$dir/tree" "$dir/data"
	head -c 10000000 /dev/urandom > "$dir/tree/large"
	for ((i = 0; i < 500; i++)); do echo "$i" > "$dir/tree/small.$i"; done
	printf 'use chroot = no\n[data]\npath = %s\nread only = no\n' "$dir/data" > "$dir/conf"
	[ "$(id -u)" != 0 ] || sed -i '1i uid = root\ngid = root' "$dir/conf"
	start rsync $server rsync --daemon --no-detach --port=7001 --address=127.0.0.1 --config="$dir/conf"
	up 7001 || return
	same "the list of modules" timeout $patience $client rsync rsync://127.0.0.1:7001/
	marks $pid
	try "a tree to the daemon" push
	try "and from it" pull 0
	same "changes only" changes
	try "two clients at once" together
	left $pid
	stop $pid
}

matrix drive
