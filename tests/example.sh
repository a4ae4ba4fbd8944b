#!/bin/bash
# SPDX-License-Identifier: MIT
# The example of README.md ("Using it"), as a person types it, on a machine whose redis service listens on 6379.
set -u
. "${top_srcdir:?}/tests/lib.sh"

for program in redis-server redis-benchmark redis-cli; do
	command -v "$program" >/dev/null || { echo "$program is missing"; exit 77; }
done

answers() {
	[ "$(redis-cli -p "$1" ping 2>/dev/null)" = PONG ]
}

# shellcheck disable=SC2016 # backticks of Markdown
example=$(sed -n '/^## Using it/,/^## /{/^```/,/^```/{/^```/!p}}' "$top_srcdir/README.md" | sed -n '1,/shunt stat/p')
[ "$(wc -l <<<"$example")" = 3 ] || problem "not three lines: $example"
port=$(sed -n 's/.*redis-server .*--port \([0-9]*\).*/\1/p' <<<"$example")
[ "${port:-6379}" != 6379 ] || problem "the example's server has no port of its own"
grep -q "redis-benchmark -p ${port:-none} " <<<"$example" || problem "the example's client has another port"
[ "$problems" = 0 ] || finish

servers=()
trap 'kill "${servers[@]}" 2>/dev/null; wait; scratch_remove' EXIT
mkdir "$work/tree" && cd "$work/tree" && ln -s "$(realpath "$top_builddir")" build || exit
answers 6379 || { redis-server --save '' >"$work/service" & servers+=($!); }
free=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
example=${example//$port/$free}

eval "$(sed -n 1p <<<"$example")" >"$work/server" 2>"$work/said"
servers+=($!)
until answers "$free"; do
	kill -0 "${servers[-1]}" || { problem "the server has ended: $(cat "$work/server")"; finish; }
	sleep 0.01
done
expect 0 bash -c "$(sed -n 2p <<<"$example")"
expect 0 bash -c "$(sed -n 3p <<<"$example")"
has "$out" "^redis-server \(pid ${servers[-1]}\): .* [1-9][0-9]* on the link\$"
[ ! -s "$work/said" ] || problem "said: $(cat "$work/said")"
kill "${servers[-1]}" && wait "${servers[-1]}"
[ "$(ls)" = build ] || problem "left over: $(ls)"
finish
