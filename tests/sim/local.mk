# SPDX-License-Identifier: MIT
# The simulator (many seeds, one thread) and its complement: few threads, real time, for TSan.
check_PROGRAMS += tests/sim/sim tests/sim/race tests/sim/account_race tests/sim/tokens_sim tests/sim/batch tests/sim/memory tests/sim/keepalive tests/sim/late tests/sim/qos tests/sim/reserve tests/sim/cheat tests/sim/reconnect tests/sim/possession \
	tests/sim/trace
TESTS += tests/sim/sim tests/sim/race tests/sim/account_race tests/sim/tokens_sim tests/sim/race_fetch.sh tests/sim/batch tests/sim/memory tests/sim/keepalive tests/sim/late tests/sim/qos tests/sim/reserve tests/sim/cheat tests/sim/reconnect tests/sim/possession tests/sim/beside.sh \
	tests/sim/trace
EXTRA_DIST += tests/sim/race_fetch.sh tests/sim/beside.sh tests/sim/taken.py

# Two engines on real TCP.
sim_pair = tests/inspect.c tests/inspect.h tests/sim/names.c tests/sim/names.h tests/sim/pair.c tests/sim/pair.h

tests_sim_sim_SOURCES = \
	tests/inspect.c tests/inspect.h \
	tests/sim/end.c \
	tests/sim/epoll.c \
	tests/sim/imm.c \
	tests/sim/names.c tests/sim/names.h \
	tests/sim/play.c \
	tests/sim/random.h \
	tests/sim/sim.c tests/sim/sim.h \
	tests/sim/start.h \
	tests/sim/sys.c tests/sim/sys.h \
	tests/sim/tcp.c tests/sim/tcp.h \
	tests/sim/trust.c tests/sim/trust.h \
	tests/sim/watch.c \
	tests/sim/witness.c tests/sim/witness.h \
	tests/sim/world.c
tests_sim_sim_LDADD = libshuntcore.la -lpthread
tests_sim_sim_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=soft_open,--wrap=soft_arena

tests_sim_race_SOURCES = tests/sim/race.c $(sim_pair)
tests_sim_race_LDADD = libshuntcore.la -lpthread

tests_sim_account_race_LDADD = libshuntcore.la -lpthread
tests_sim_tokens_sim_LDADD = libshuntcore.la

# One thread and real TCP: exact counts of what lanes post.
tests_sim_batch_SOURCES = \
	tests/sim/again.c \
	tests/sim/batch.c \
	tests/sim/bed.c tests/sim/bed.h \
	tests/sim/credit.c \
	tests/sim/elsewhere.c \
	tests/sim/events.c \
	tests/sim/redirect.c tests/sim/short_lived.c tests/sim/unclaimed.c tests/sim/faults.c \
	tests/sim/owed.c \
	tests/sim/path.c \
	tests/sim/remote_read.c \
	tests/sim/lanes.c \
	tests/sim/meanwhile.c \
	tests/sim/moves.c \
	$(sim_pair) \
	tests/sim/proof.c \
	tests/sim/slow.c \
	tests/sim/strangers.c \
	tests/sim/start.h \
	tests/sim/random.h
tests_sim_batch_LDADD = libshuntcore.la $(CMOCKA_LIBS) -lpthread

# The same, for limits.
tests_sim_qos_SOURCES = tests/sim/qos.c tests/sim/phantom.c tests/sim/phantom.h tests/sim/bed.c tests/sim/bed.h $(sim_pair)
tests_sim_qos_LDADD = libshuntcore.la $(CMOCKA_LIBS) -lpthread

# The same, for reservations.
tests_sim_reserve_SOURCES = tests/sim/reserve.c tests/sim/reserve.h tests/sim/reserve_many.c tests/sim/reserve_spoilt.c tests/sim/phantom.c tests/sim/phantom.h tests/sim/bed.c tests/sim/bed.h $(sim_pair)
tests_sim_reserve_LDADD = libshuntcore.la $(CMOCKA_LIBS) -lpthread

# The same, for clients that break limits.
tests_sim_cheat_SOURCES = tests/sim/cheat.c tests/sim/bed.c tests/sim/bed.h $(sim_pair)
tests_sim_cheat_LDADD = libshuntcore.la $(CMOCKA_LIBS) -lpthread

# The same, for sends that are followed.
tests_sim_trace_SOURCES = tests/sim/trace.c tests/sim/bed.c tests/sim/bed.h $(sim_pair)
tests_sim_trace_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_sim_trace_LDADD = libshuntcore.la $(CMOCKA_LIBS) -lpthread

# The same, for the memory of links.
tests_sim_memory_SOURCES = tests/sim/memory.c tests/sim/overflow.c tests/sim/bed.c tests/sim/bed.h $(sim_pair)
tests_sim_memory_LDADD = libshuntcore.la $(CMOCKA_LIBS) -lpthread

# The same, for peers that have gone.
tests_sim_keepalive_SOURCES = tests/sim/keepalive.c tests/sim/bed.c tests/sim/bed.h $(sim_pair)
tests_sim_keepalive_LDADD = libshuntcore.la $(CMOCKA_LIBS) -lpthread

# The same, for what comes after a queue pair's death.
tests_sim_reconnect_SOURCES = tests/sim/reconnect.c tests/sim/bed.c tests/sim/bed.h $(sim_pair)
tests_sim_reconnect_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_sim_reconnect_LDADD = libshuntcore.la $(CMOCKA_LIBS) -lpthread

# The same, for proofs that a connection's sockets are held.
tests_sim_possession_SOURCES = \
	tests/sim/bed.c tests/sim/bed.h \
	tests/sim/interrupted.c \
	tests/sim/liar.c tests/sim/liar.h \
	$(sim_pair) \
	tests/sim/possession.c \
	tests/sim/proof_limits.c \
	tests/sim/relay.c \
	tests/sim/users.c tests/sim/users.h
tests_sim_possession_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_sim_possession_LDADD = libshuntcore.la $(CMOCKA_LIBS) -lpthread

# The same, for gaps between polls and slow steps.
tests_sim_late_SOURCES = tests/sim/late.c tests/sim/bed.c tests/sim/bed.h $(sim_pair)
tests_sim_late_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_sim_late_LDADD = libshuntcore.la $(CMOCKA_LIBS) -lpthread
