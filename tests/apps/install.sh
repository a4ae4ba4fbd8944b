#!/bin/bash
# SPDX-License-Identifier: MIT
# Installs the Debian packages of the programs in this folder. No service of theirs is started.
set -u
# shellcheck source-path=SCRIPTDIR source=../../tools/build.sh
. "$(dirname "$0")/../../tools/build.sh"

packages="redis-server redis-tools nginx haproxy memcached libmemcached-tools postgresql postgresql-contrib
	mariadb-server mariadb-client curl wget openssh-server openssh-client openssh-sftp-server rsync vsftpd socat ncat
	apache2 squid lighttpd samba smbclient slapd ldap-utils openmpi-bin libopenmpi-dev
	nodejs ruby perl iperf iperf3 qperf wrk stunnel4 mosquitto mosquitto-clients erlang-base golang-go
	etcd-server etcd-client prometheus caddy nats-server influxdb docker-registry
	default-jdk-headless libpython3.11-testsuite g++ python3 openssl iproute2 util-linux"

# Debian asks this program whether a package may start its service.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
	printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" > /dev/null && as_root chmod 755 "$policy"
	trap 'as_root rm -f "$policy"' EXIT
fi
# shellcheck disable=SC2086 # a list of words
need_packages "for the tests with programs" $packages
