#!/bin/bash
# SPDX-License-Identifier: MIT
# Node.js: http with kept connections, net with backpressure, cluster, a child that is given a connection.
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires node curl
version=$(node --version)
why="workers of a cluster are given their connections by the master"

drive() {
	local kind port=7020
	for kind in net http cluster handles; do
		start $kind $server node "$apps/noded.js" $kind $((++port))
		up $port || return
		case $kind in
		http | cluster)
			try "$kind: a first client" $client node "$apps/node.js" http $port 1 2
			marks $pid
			same "$kind: 20 clients" $client node "$apps/node.js" http $port 20 50 ;;
		*)
			try "$kind: a first client" $client node "$apps/node.js" net $port 1 2
			marks $pid
			same "$kind: 20 clients" $client node "$apps/node.js" net $port 20 50 ;;
		esac
		[ $kind = cluster ] || left $pid
		stop $pid
	done
}

matrix drive
