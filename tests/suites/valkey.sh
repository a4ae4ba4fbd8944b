#!/bin/bash
# SPDX-License-Identifier: MIT
# valkey's own tests of dual-channel replication against a valkey that is built here, bare and shunted (servers, clients and
# the tests' Tcl; lib.sh). A forked child sends the data there while its parent serves on, or is stopped by the test. By
# hand: a unit takes minutes.
#
#	VALKEY=FOLDER		upstream's sources (github.com/valkey-io/valkey, 8.0 or later), which are built there
#	valkey.sh [UNIT...]	other units of valkey's tests
#	PATIENCE=1800		seconds until a unit is taken to hang
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
patience=${PATIENCE:-1800}

run() {
	run_tcl "$@"
}

command -v tclsh > /dev/null || skip_all "tclsh is not installed"
source=${VALKEY:-}
[ -e "$source/tests/integration/dual-channel-replication.tcl" ] || skip_all "VALKEY does not name valkey's sources"
build src/valkey-server "make -j2 MALLOC=libc"

[ $# -gt 0 ] || set -- integration/dual-channel-replication
suite "$@"
