# SPDX-License-Identifier: MIT
# Measurements: nothing here is part of make check-all. tests/README.md tells more.
check_PROGRAMS += tests/bench/pp
tests_bench_pp_SOURCES = tests/bench/pp.c tests/plain.h
tests_bench_pp_CFLAGS = $(plain_cflags)
tests_bench_pp_LDFLAGS =

# What verbs alone do with the same messages. It is linked with the libraries, which the product opens at run time.
check_PROGRAMS += tests/bench/raw_imm
tests_bench_raw_imm_SOURCES = tests/bench/raw_imm.c tests/plain.h
tests_bench_raw_imm_LDADD = -lrdmacm -libverbs

# Messages by size, touched or not, at fresh or the same places: what `copy` does to them.
check_PROGRAMS += tests/bench/copy
tests_bench_copy_SOURCES = tests/bench/copy.c tests/plain.h
tests_bench_copy_CFLAGS = $(plain_cflags)
tests_bench_copy_LDFLAGS =

# When the bytes of a new connection leave TCP.
check_PROGRAMS += tests/bench/upgrade
tests_bench_upgrade_SOURCES = tests/bench/upgrade.c tests/calls/carried.c tests/calls/carried.h tests/plain.h
tests_bench_upgrade_CFLAGS = $(plain_cflags)
tests_bench_upgrade_LDFLAGS =

# A connection for each request: bench/born.sh and born_left.sh.
check_PROGRAMS += tests/bench/born
tests_bench_born_SOURCES = tests/bench/born.c tests/plain.h
tests_bench_born_CFLAGS = $(plain_cflags)
tests_bench_born_LDFLAGS =

# Processes that ask once and end: bench/footprint.sh and the lab run it.
check_PROGRAMS += tests/bench/short
tests_bench_short_SOURCES = tests/bench/short.c tests/calls/carried.c tests/calls/carried.h tests/plain.h
tests_bench_short_CFLAGS = $(plain_cflags)
tests_bench_short_LDFLAGS =

# What a call costs in instructions: bench/instructions.sh counts them.
check_PROGRAMS += tests/bench/instructions
tests_bench_instructions_SOURCES = tests/bench/instructions.c tests/calls/carried.c tests/calls/carried.h tests/plain.h
tests_bench_instructions_CFLAGS = $(plain_cflags)
tests_bench_instructions_LDFLAGS =

# How fast connections are claimed, and how long one waits for it.
check_PROGRAMS += tests/bench/claims
tests_bench_claims_SOURCES = tests/bench/claims.c tests/calls/carried.c tests/calls/carried.h tests/plain.h
tests_bench_claims_CFLAGS = $(plain_cflags)
tests_bench_claims_LDFLAGS =

# A step in load at a constant rate, with latencies before, during and after it.
check_PROGRAMS += tests/bench/step
tests_bench_step_SOURCES = tests/bench/step.c tests/plain.h
tests_bench_step_CFLAGS = $(plain_cflags)
tests_bench_step_LDFLAGS =

# Gets and sets in a given proportion, for redis and memcached.
check_PROGRAMS += tests/bench/mix
tests_bench_mix_SOURCES = tests/bench/mix.c tests/plain.h
tests_bench_mix_CFLAGS = $(plain_cflags)
tests_bench_mix_LDFLAGS =
tests_bench_mix_LDADD = -lm

# Programs that are ill on purpose: what the tools say of them (tests/findings.sh, paper/xr_e6.sh).
check_PROGRAMS += tests/bench/sick
tests_bench_sick_SOURCES = tests/bench/sick.c tests/plain.h
tests_bench_sick_CFLAGS = $(plain_cflags)
tests_bench_sick_LDFLAGS =

# To be preloaded: AF_SMC, to compare with. (A module that is not installed needs an -rpath to become shared.)
check_LTLIBRARIES += tests/bench/smc.la
tests_bench_smc_la_SOURCES = tests/bench/smc.c
tests_bench_smc_la_CFLAGS = $(plain_cflags)
tests_bench_smc_la_LDFLAGS = -module -avoid-version -rpath /nowhere
tests_bench_smc_la_LIBADD = -ldl

# What threads of a process share: the library, compiled so that each access to memory is noted, and what notes it.
# -fsanitize=thread is for the compiler alone. lines.so stands in for what the linker would add with it.
check_PROGRAMS += tests/bench/crowd
tests_bench_crowd_SOURCES = tests/bench/crowd.c tests/bench/lines.h tests/calls/carried.c tests/calls/carried.h tests/plain.h
tests_bench_crowd_CFLAGS = $(plain_cflags)
tests_bench_crowd_LDFLAGS =
# Half of the library's time to compile, for one test: made when it is wanted (make counted).
if !SANITIZED
EXTRA_LTLIBRARIES += tests/bench/lines.la tests/bench/counted.la
counted: tests/bench/lines.la tests/bench/counted.la
.PHONY: counted
tests_bench_lines_la_SOURCES = tests/bench/lines.c tests/bench/lines.h
tests_bench_lines_la_CFLAGS = $(plain_cflags) -ftls-model=initial-exec
tests_bench_lines_la_LDFLAGS = -module -avoid-version -rpath /nowhere
EXTRA_LIBRARIES += tests/bench/libcounted.a
tests_bench_libcounted_a_SOURCES = $(libshuntcore_a_SOURCES) $(preload_sources) $(preload_go_sources)
tests_bench_libcounted_a_CPPFLAGS = $(AM_CPPFLAGS) -fsanitize=thread -DSOFT_TSAN=0
tests_bench_libcounted_a_CFLAGS = $(module_cflags) -Wno-tsan
tests_bench_counted_la_SOURCES =
tests_bench_counted_la_LDFLAGS = -module -avoid-version -rpath /nowhere -Wl,-z,now -Wl,-Bsymbolic-functions \
	-Wl,--version-script=$(srcdir)/preload/libshunt.map $(preload_wraps) \
	-Wl,--whole-archive,tests/bench/libcounted.a,--no-whole-archive
EXTRA_tests_bench_counted_la_DEPENDENCIES = preload/libshunt.map tests/bench/libcounted.a
endif

# Whether a receiver that reads the sender's memory itself would be faster than two copies.
check_PROGRAMS += tests/bench/one_copy
tests_bench_one_copy_SOURCES = tests/bench/one_copy.c tests/plain.h
tests_bench_one_copy_LDADD =

# A copy against a registration, and where the engine finds their crossover.
check_PROGRAMS += tests/bench/mr_cost
tests_bench_mr_cost_SOURCES = tests/bench/mr_cost.c
tests_bench_mr_cost_LDADD = libshuntcore.a -lpthread

# The processor: latency of memory by level, and counters of its caches.
check_PROGRAMS += tests/bench/chase tests/bench/counters
tests_bench_chase_SOURCES = tests/bench/chase.c tests/plain.h
tests_bench_chase_CFLAGS = $(plain_cflags)
tests_bench_chase_LDFLAGS =
tests_bench_counters_SOURCES = tests/bench/counters.c
tests_bench_counters_CFLAGS = $(plain_cflags)
tests_bench_counters_LDFLAGS =

# The soft device alone: what a message costs below the engine.
check_PROGRAMS += tests/bench/soft_pingpong
tests_bench_soft_pingpong_SOURCES = tests/bench/soft_pingpong.c tests/soft/fds.c tests/soft/fds.h
tests_bench_soft_pingpong_LDADD = libshuntcore.a -lpthread

# Figures of the papers under the cost model, in virtual time.
check_PROGRAMS += tests/bench/model_iops
tests_bench_model_iops_SOURCES = tests/bench/model_iops.c tests/soft/iops.c tests/soft/iops.h
tests_bench_model_iops_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)
tests_bench_model_iops_LDADD = libshuntcore.a -lpthread

EXTRA_DIST += tests/bench/claims.sh tests/bench/copy.sh tests/bench/latency.sh tests/bench/measure.sh tests/bench/qos.sh tests/bench/qos_beside.sh tests/bench/vs_probe.sh tests/bench/pages.sh tests/bench/dump.sh tests/bench/pairs.sh tests/bench/cpu.sh \
	tests/bench/path.sh tests/bench/go.sh tests/bench/born.sh tests/bench/born_left.sh tests/bench/hands.sh tests/bench/start.sh tests/bench/requests.sh tests/bench/footprint.sh tests/bench/plain.sh tests/bench/monitor.sh tests/bench/programs.sh tests/bench/speeds.py tests/bench/syscalls.sh tests/bench/instructions.sh tests/bench/threads.sh tests/bench/lines.sh tests/bench/lines.py

# One script for each figure or table of the papers; docs/dev/EXPERIMENTS.md has what came out.
EXTRA_DIST += tests/bench/paper/common.sh tests/bench/paper/all.sh tests/bench/paper/rb_e1.sh \
	tests/bench/paper/rb_e2.sh tests/bench/paper/rb_e3.sh tests/bench/paper/rb_e4.sh tests/bench/paper/rb_e5.sh \
	tests/bench/paper/rb_e6.sh tests/bench/paper/rb_e7.sh tests/bench/paper/rb_e8.sh tests/bench/paper/rb_e9.sh tests/bench/paper/rb_e11.sh tests/bench/paper/xr_e3.sh \
	tests/bench/paper/xr_e1.sh tests/bench/paper/xr_e4.sh tests/bench/paper/xr_e5.sh tests/bench/paper/xr_e6.sh tests/bench/paper/xr_e7.sh \
	tests/bench/paper/xr_22.sh tests/bench/paper/xr_e8.sh \
	tests/bench/paper/ha_common.sh tests/bench/paper/ha.py tests/bench/paper/ha_e1.sh \
	tests/bench/paper/ha_e2.sh tests/bench/paper/ha_e3.sh tests/bench/paper/ha_e4.sh \
	tests/bench/paper/ha_e5.sh tests/bench/paper/ha_e6.sh tests/bench/paper/ha_e7.sh \
	tests/bench/paper/ha_e8.sh \
	tests/bench/paper/ln_common.sh tests/bench/paper/ln_all.sh tests/bench/paper/ln_e1.sh \
	tests/bench/paper/ln_e4.sh tests/bench/paper/ln_e5.sh tests/bench/paper/ln_e6.sh \
	tests/bench/paper/ln_t2.sh tests/bench/paper/ln_t3.sh
