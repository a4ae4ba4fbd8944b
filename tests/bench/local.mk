# Measurements: nothing here is part of make check. tests/README.md tells more.
check_PROGRAMS += tests/bench/pp
tests_bench_pp_SOURCES = tests/bench/pp.c
tests_bench_pp_CFLAGS = $(plain_cflags)
tests_bench_pp_LDFLAGS =

EXTRA_DIST += tests/bench/measure.sh tests/bench/vs_probe.sh tests/bench/pairs.sh \
	tests/bench/plain.sh tests/bench/syscalls.sh
