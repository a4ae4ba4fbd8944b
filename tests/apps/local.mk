# SPDX-License-Identifier: MIT
# Real programs, bare and shunted. The short part of it is a test; run.sh has all of them.
EXTRA_DIST += tests/apps/lib.sh tests/apps/run.sh tests/apps/install.sh tests/apps/share.py tests/apps/table.py \
	tests/apps/apache.sh tests/apps/caddy.sh tests/apps/etcd.sh tests/apps/influxdb.sh tests/apps/nats.sh tests/apps/nats.py \
	tests/apps/prometheus.sh tests/apps/registry.sh tests/apps/cplusplus.sh tests/apps/curl.sh tests/apps/erlang.sh tests/apps/go.sh \
	tests/apps/haproxy.sh tests/apps/iperf.sh tests/apps/java.sh tests/apps/mariadb.sh tests/apps/memcached.sh \
	tests/apps/mosquitto.sh tests/apps/nginx.sh tests/apps/node.sh tests/apps/openmpi.sh tests/apps/perl.sh \
	tests/apps/postgresql.sh tests/apps/python.sh tests/apps/qperf.sh tests/apps/redis.sh tests/apps/rsync.sh \
	tests/apps/ruby.sh tests/apps/samba.sh tests/apps/slapd.sh tests/apps/socat.sh tests/apps/squid.sh \
	tests/apps/ssh.sh tests/apps/stunnel.sh tests/apps/vsftpd.sh tests/apps/Echo.java tests/apps/echo.cc \
	tests/apps/echo.erl tests/apps/echo.go tests/apps/echo.pl tests/apps/echo.py tests/apps/echo.rb \
	tests/apps/echod.py tests/apps/httpd.py tests/apps/memcached.py tests/apps/node.js tests/apps/noded.js \
	tests/apps/quick.sh tests/apps/confined.sh tests/apps/endure.sh tests/apps/turns.py
TESTS += tests/apps/quick.sh tests/apps/confined.sh
