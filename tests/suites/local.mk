# SPDX-License-Identifier: MIT
# Test suites of others, bare and shunted; run by hand.
EXTRA_DIST += tests/suites/lib.sh tests/suites/python.sh tests/suites/redis.sh tests/suites/valkey.sh tests/suites/libuv.sh \
	tests/suites/libevent.sh tests/suites/memcached.sh tests/suites/failed.py
