# SPDX-License-Identifier: MIT
# The simulator: many seeds, one thread, a clock and a TCP of its own.
sim_tests = tests/sim/sim tests/sim/tokens_sim
check_PROGRAMS += $(sim_tests)
TESTS += $(sim_tests) tests/sim/beside.sh
quick_tests += $(sim_tests)
EXTRA_DIST += tests/sim/beside.sh tests/sim/taken.py

tests_sim_sim_SOURCES = \
	tests/inspect.c tests/inspect.h \
	tests/sim/born.c tests/sim/born.h \
	tests/sim/end.c \
	tests/sim/epoll.c \
	tests/sim/imm.c \
	tests/sim/names.c tests/sim/names.h \
	tests/sim/play.c \
	tests/sim/random.h \
	tests/sim/role.h \
	tests/sim/sim.c tests/sim/sim.h \
	tests/sim/start.h \
	tests/sim/sys.c tests/sim/sys.h \
	tests/sim/tcp.c tests/sim/tcp.h \
	tests/sim/trust.c tests/sim/trust.h \
	tests/sim/watch.c \
	tests/sim/witness.c tests/sim/witness.h \
	tests/sim/world.c
tests_sim_sim_LDADD = libshuntcore.a -lpthread
tests_sim_sim_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=soft_open,--wrap=soft_arena

tests_sim_tokens_sim_LDADD = libshuntcore.a
