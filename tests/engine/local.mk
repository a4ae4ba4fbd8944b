# SPDX-License-Identifier: MIT
# Engines on real TCP: one thread that steps both and counts exactly, or few threads in real time, for TSan.
engine_tests = tests/engine/race tests/engine/account_race tests/engine/batch tests/engine/memory tests/engine/keepalive \
	tests/engine/late tests/engine/qos tests/engine/reserve tests/engine/cheat tests/engine/reconnect tests/engine/possession \
	tests/engine/trace tests/engine/spares tests/engine/cards tests/engine/modelled tests/engine/steady
check_PROGRAMS += $(engine_tests)
TESTS += $(engine_tests) tests/engine/race_fetch.sh
quick_tests += $(engine_tests) tests/engine/race_fetch.sh
EXTRA_DIST += tests/engine/race_fetch.sh

# Two engines.
engine_pair = tests/engine/kernel_sys.h tests/inspect.c tests/inspect.h tests/sim/names.c tests/sim/names.h tests/engine/pair.c tests/engine/pair.h tests/sim/role.h

tests_engine_race_SOURCES = tests/engine/race.c $(engine_pair)
tests_engine_race_LDADD = libshuntcore.a -lpthread

tests_engine_account_race_LDADD = libshuntcore.a -lpthread

# One thread and real TCP: exact counts of what lanes post.
tests_engine_batch_SOURCES = \
	tests/engine/again.c \
	tests/engine/batch.c \
	tests/engine/bed.c tests/engine/bed.h \
	tests/engine/credit.c \
	tests/engine/elsewhere.c \
	tests/engine/events.c \
	tests/engine/redirect.c tests/engine/short_lived.c tests/engine/unclaimed.c tests/engine/faults.c \
	tests/engine/order.c \
	tests/engine/owed.c \
	tests/engine/path.c \
	tests/engine/remote_read.c \
	tests/engine/lanes.c \
	tests/engine/meanwhile.c \
	tests/engine/moves.c \
	$(engine_pair) \
	tests/engine/proof.c \
	tests/engine/relatives.c \
	tests/engine/slow.c \
	tests/engine/strangers.c \
	tests/sim/start.h \
	tests/sim/random.h
tests_engine_batch_LDADD = libshuntcore.a $(CMOCKA_LIBS) -lpthread

# The same, for limits.
tests_engine_qos_SOURCES = tests/engine/qos.c tests/engine/phantom.c tests/engine/phantom.h tests/engine/bed.c tests/engine/bed.h $(engine_pair)
tests_engine_qos_LDADD = libshuntcore.a $(CMOCKA_LIBS) -lpthread

# The same, for connections that are used again.
tests_engine_spares_SOURCES = tests/engine/spares.c tests/engine/bed.c tests/engine/bed.h $(engine_pair)
tests_engine_spares_LDADD = libshuntcore.a $(CMOCKA_LIBS) -lpthread

# The same, for reservations.
tests_engine_reserve_SOURCES = tests/engine/reserve.c tests/engine/reserve.h tests/engine/reserve_many.c tests/engine/reserve_spoilt.c tests/engine/phantom.c tests/engine/phantom.h tests/engine/bed.c tests/engine/bed.h $(engine_pair)
tests_engine_reserve_LDADD = libshuntcore.a $(CMOCKA_LIBS) -lpthread

# The same, for clients that break limits.
tests_engine_cheat_SOURCES = tests/engine/cheat.c tests/engine/bed.c tests/engine/bed.h $(engine_pair)
tests_engine_cheat_LDADD = libshuntcore.a $(CMOCKA_LIBS) -lpthread

# The same, for sends that are followed.
tests_engine_trace_SOURCES = tests/engine/trace.c tests/engine/bed.c tests/engine/bed.h $(engine_pair)
tests_engine_trace_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_engine_trace_LDADD = libshuntcore.a $(CMOCKA_LIBS) -lpthread

# The same, for the memory of links.
tests_engine_memory_SOURCES = tests/engine/memory.c tests/engine/memory.h tests/engine/shrink.c tests/engine/overflow.c tests/engine/bed.c tests/engine/bed.h tests/vm.h $(engine_pair)
tests_engine_memory_LDADD = libshuntcore.a $(CMOCKA_LIBS) -lpthread

# The same, for peers that have gone.
tests_engine_keepalive_SOURCES = tests/engine/keepalive.c tests/engine/bed.c tests/engine/bed.h $(engine_pair)
tests_engine_keepalive_LDADD = libshuntcore.a $(CMOCKA_LIBS) -lpthread

# The same, over the cost model.
tests_engine_modelled_SOURCES = tests/engine/modelled.c tests/engine/bed.c tests/engine/bed.h $(engine_pair)
tests_engine_modelled_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_engine_modelled_LDADD = libshuntcore.a $(CMOCKA_LIBS) -lpthread
# The same, over the cards of tests/fake.
tests_engine_cards_SOURCES = tests/engine/cards.c tests/engine/bed.c tests/engine/bed.h tests/fake/fake.h tests/fake/profile.h $(engine_pair)
tests_engine_cards_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_engine_cards_LDADD = libshuntcore.a $(CMOCKA_LIBS) -lpthread

# The same, for what comes after a queue pair's death.
tests_engine_reconnect_SOURCES = tests/engine/reconnect.c tests/engine/bed.c tests/engine/bed.h $(engine_pair)
tests_engine_reconnect_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_engine_reconnect_LDADD = libshuntcore.a $(CMOCKA_LIBS) -lpthread

# The same, for proofs that a connection's sockets are held.
tests_engine_possession_SOURCES = \
	tests/engine/bed.c tests/engine/bed.h \
	tests/engine/interrupted.c \
	tests/engine/liar.c tests/engine/liar.h \
	$(engine_pair) \
	tests/engine/possession.c \
	tests/engine/proof_limits.c \
	tests/engine/relay.c \
	tests/engine/silent.c \
	tests/engine/users.c tests/engine/users.h
tests_engine_possession_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_engine_possession_LDADD = libshuntcore.a $(CMOCKA_LIBS) -lpthread

# The same, for memory that is taken while streams are used.
tests_engine_steady_SOURCES = tests/engine/steady.c tests/engine/bed.c tests/engine/bed.h $(engine_pair)
tests_engine_steady_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_engine_steady_LDADD = libshuntcore.a $(CMOCKA_LIBS) -lpthread
tests_engine_steady_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc,--wrap=posix_memalign,--wrap=mmap

# The same, for gaps between polls and slow steps.
tests_engine_late_SOURCES = tests/engine/late.c tests/engine/bed.c tests/engine/bed.h $(engine_pair)
tests_engine_late_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_engine_late_LDADD = libshuntcore.a $(CMOCKA_LIBS) -lpthread
