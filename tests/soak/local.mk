# SPDX-License-Identifier: MIT
# By hand: an hour of connections that come and go.
check_PROGRAMS += tests/soak/soak
tests_soak_soak_SOURCES = tests/soak/soak.c
tests_soak_soak_CFLAGS = $(plain_cflags)
tests_soak_soak_LDADD = -lpthread
EXTRA_DIST += tests/soak/soak.sh
