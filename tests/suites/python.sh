#!/bin/bash
# SPDX-License-Identifier: MIT
# CPython's own tests as Debian ships them, bare and shunted (lib.sh). By hand: the whole list takes half an hour.
#
#	python.sh [MODULE...]		modules of CPython's test package, such as test_epoll
#	INSTALL=1			installs libpython3.11-testsuite before, where it is missing
#	PATIENCE=900			seconds until a module is taken to hang
# shellcheck disable=SC2086 # what is put before a command is several words
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
trouble='^(ERROR|FAIL): '
python=/usr/bin/python3.11
modules="test_socket test_select test_poll test_epoll test_selectors test_socketserver test_asyncio test_ssl test_httplib
	test_httpservers test_urllib2_localnet test_xmlrpc test_wsgiref test_docxmlrpc test_ftplib test_smtplib test_poplib
	test_imaplib test_nntplib test_telnetlib test_asyncore test_asynchat test_logging test_signal test_eintr test_fork1
	test_subprocess test_threading test_os test_posix test_io test_concurrent_futures test_multiprocessing_fork
	test_multiprocessing_forkserver test_multiprocessing_spawn"
# What hangs or fails here without Shunt, whatever the reason (AF_VSOCK without a hypervisor's answer).
left_out='*VSOCK*'

[ -z "${INSTALL:-}" ] || need_packages "for CPython's tests" libpython3.11-testsuite || exit
$python -c 'import test.test_socket' 2> /dev/null ||
	skip_all "libpython3.11-testsuite is not installed (INSTALL=1 installs it)"

run() { # NAME WRAP MODULE
	local name=$1 wrap=$2 module=$3 resources='' status
	[ "$module" != test_socketserver ] || resources="-u network"	# which it has on the loopback
	mkdir -p "$scratch/$name.dir"
	(cd "$scratch/$name.dir" && timeout "$patience" $wrap $python -m test $resources -i "$left_out" \
		--junit-xml "$scratch/$name.xml" "$module") > "$scratch/$name" 2>&1 < /dev/null
	status=$?
	$python "$suites/failed.py" "$scratch/$name.xml" $status > "$scratch/$name.failed"
	$python "$suites/failed.py" --count "$scratch/$name.xml" > "$scratch/$name.count"
}

# shellcheck disable=SC2086 # a list of words
[ $# -gt 0 ] || set -- $modules
suite "$@"
