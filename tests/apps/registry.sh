#!/bin/bash
# SPDX-License-Identifier: MIT
# docker-registry: layers pushed, in one piece and in several, and pulled.
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires docker-registry curl
version=$(docker-registry --version | awk '{ print $3 }')
url=http://127.0.0.1:7001/v2/some/image/blobs

# push FILE [PIECES]
push() {
	local place digest pieces=${2:-0} i
	digest=sha256:$(sha256sum "$1" | cut -d' ' -f1)
	place=$(fetch -X POST -o /dev/null -D - "$url/uploads/" | tr -d '\r' | awk 'tolower($1) == "location:" { print $2 }')
	for ((i = 0; i < pieces; i++)); do
		head -c $(((i + 1) * 1000000)) "$1" | tail -c 1000000 > "$dir/piece"
		place=$(fetch -X PATCH -H "Content-Type: application/octet-stream" --data-binary "@$dir/piece" -o /dev/null -D - "$place" |
			tr -d '\r' | awk 'tolower($1) == "location:" { print $2 }')
	done
	if [ $pieces -gt 0 ]; then : > "$dir/piece"; else cp "$1" "$dir/piece"; fi
	fetch -X PUT -H "Content-Type: application/octet-stream" --data-binary "@$dir/piece" "$place&digest=$digest"
	fetch -o "$dir/pulled" "$url/$digest" && cmp "$1" "$dir/pulled"
}

drive() {
	printf 'version: 0.1\nlog: { level: error }\nstorage: { filesystem: { rootdirectory: %s/store } }\nhttp: { addr: 127.0.0.1:7001 }\n' "$dir" > "$dir/conf"
	start registry $server docker-registry serve "$dir/conf"
	up 7001 || return
	head -c 20000000 /dev/urandom > "$dir/large"
	head -c 3000000 /dev/urandom > "$dir/pieces"
	try "a layer of 20 MB" push "$dir/large"
	try "a layer in three pieces" push "$dir/pieces" 3
	same "what it has" fetch http://127.0.0.1:7001/v2/_catalog
	stop $pid
}

matrix drive
