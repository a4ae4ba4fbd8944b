# SPDX-License-Identifier: MIT
# Plain programs that run bare and shunted; the two must agree. tests/README.md tells more.
check_PROGRAMS += tests/calls/cases/cases tests/calls/transfer/transfer tests/calls/anew tests/calls/sandbox tests/calls/hardened tests/calls/plainpeer \
	tests/calls/gone tests/calls/lacking tests/calls/partial tests/calls/wakes tests/calls/numbers tests/calls/uring tests/calls/rings tests/calls/turns tests/calls/many tests/calls/space tests/calls/workers tests/calls/hands tests/calls/closing tests/calls/cheat tests/calls/gen/gen tests/calls/ways/ways

# Programs that know nothing of Shunt, nor of the sanitizers it may be built with.
plain_cflags = -std=gnu11 -Wall -Wextra -pthread $(WERROR_CFLAGS)

# _FORTIFY_SOURCE is not asked for: wrong arguments must reach the calls.
tests_calls_cases_cases_SOURCES = \
	tests/calls/carried.c \
	tests/calls/carried.h \
	tests/calls/cases/cases.h \
	tests/calls/cases/accept.c \
	tests/calls/cases/async.c \
	tests/calls/cases/bytes.c \
	tests/calls/cases/cancel.c \
	tests/calls/cases/caught.c \
	tests/calls/cases/close.c \
	tests/calls/cases/confine.c \
	tests/calls/cases/connect.c \
	tests/calls/cases/ends.c \
	tests/calls/cases/epoll.c \
	tests/calls/cases/epoll_modes.c \
	tests/calls/cases/epoll_more.c \
	tests/calls/cases/epoll_sets.c \
	tests/calls/cases/user_timeout.c tests/calls/cases/room.c \
	tests/calls/cases/faults.c \
	tests/calls/cases/fds.c \
	tests/calls/cases/files.c \
	tests/calls/cases/flags.c \
	tests/calls/cases/given.c \
	tests/calls/cases/halves.c \
	tests/calls/cases/interrupts.c \
	tests/calls/cases/jumps.c \
	tests/calls/cases/jobs.c \
	tests/calls/cases/lengths.c \
	tests/calls/cases/locked.c \
	tests/calls/cases/main.c \
	tests/calls/cases/many.c \
	tests/calls/cases/messages.c \
	tests/calls/cases/nested.c \
	tests/calls/cases/net.c \
	tests/calls/cases/options.c \
	tests/calls/cases/owners.c \
	tests/calls/cases/pipes.c \
	tests/calls/cases/splice.c \
	tests/calls/cases/pointers.c \
	tests/calls/cases/poll.c \
	tests/calls/cases/processes.c \
	tests/calls/cases/raw.c \
	tests/calls/cases/receive.c \
	tests/calls/cases/reset.c \
	tests/calls/cases/select.c \
	tests/calls/cases/share.c tests/calls/cases/stopped.c \
	tests/calls/cases/shared.c \
	tests/calls/cases/shut.c \
	tests/calls/cases/signals.c \
	tests/calls/cases/stdio.c \
	tests/calls/cases/stream.c \
	tests/calls/cases/threads.c \
	tests/calls/cases/timeouts.c \
	tests/calls/cases/tuning.c \
	tests/calls/cases/unmapped.c \
	tests/calls/cases/util.c \
	tests/calls/cases/variants.c \
	tests/calls/cases/vectors.c \
	tests/calls/cases/walk.c
tests_calls_cases_cases_CFLAGS = $(plain_cflags)
tests_calls_cases_cases_LDFLAGS =

# Loaded by cases: a library with a destructor.
check_LTLIBRARIES += tests/calls/late.la
tests_calls_late_la_SOURCES = tests/calls/late.c
tests_calls_late_la_CFLAGS = $(plain_cflags)
tests_calls_late_la_LDFLAGS = -module -avoid-version -rpath /nowhere

tests_calls_transfer_transfer_SOURCES = \
	tests/calls/carried.c \
	tests/calls/carried.h \
	tests/calls/transfer/io.c \
	tests/calls/transfer/loop.c \
	tests/calls/transfer/main.c \
	tests/calls/transfer/transfer.h
tests_calls_transfer_transfer_CFLAGS = $(plain_cflags)
tests_calls_transfer_transfer_LDFLAGS =

tests_calls_gen_gen_SOURCES = \
	tests/calls/gen/arrange.c \
	tests/calls/gen/ask.c \
	tests/calls/gen/gen.c \
	tests/calls/gen/gen.h \
	tests/calls/gen/model.c \
	tests/calls/gen/move.c \
	tests/calls/gen/perform.c
tests_calls_gen_gen_CFLAGS = $(plain_cflags)
tests_calls_gen_gen_LDFLAGS =

tests_calls_plainpeer_SOURCES = tests/calls/plainpeer.c tests/plain.h
tests_calls_plainpeer_CFLAGS = $(plain_cflags)
tests_calls_plainpeer_LDFLAGS =
tests_calls_gone_SOURCES = tests/calls/carried.c tests/calls/carried.h tests/calls/gone.c
tests_calls_gone_CFLAGS = $(plain_cflags)
tests_calls_gone_LDFLAGS =
tests_calls_lacking_SOURCES = tests/calls/lacking.c
tests_calls_lacking_CFLAGS = $(plain_cflags)
tests_calls_lacking_LDFLAGS =
tests_calls_partial_SOURCES = tests/calls/partial.c
tests_calls_partial_CFLAGS = $(plain_cflags)
tests_calls_partial_LDFLAGS =
tests_calls_wakes_SOURCES = tests/calls/carried.c tests/calls/carried.h tests/calls/wakes.c
tests_calls_wakes_CFLAGS = $(plain_cflags)
tests_calls_wakes_LDFLAGS =
tests_calls_numbers_SOURCES = tests/calls/numbers.c
tests_calls_numbers_CFLAGS = $(plain_cflags)
tests_calls_numbers_LDFLAGS =
tests_calls_rings_SOURCES = tests/calls/rings.c tests/calls/ring.c tests/calls/ring.h
tests_calls_rings_CFLAGS = $(plain_cflags)
tests_calls_rings_LDFLAGS = -lpthread
tests_calls_turns_SOURCES = tests/calls/turns.c tests/calls/ring.c tests/calls/ring.h
tests_calls_turns_CFLAGS = $(plain_cflags)
tests_calls_turns_LDFLAGS = -lpthread

tests_calls_uring_SOURCES = tests/calls/uring.c
tests_calls_uring_CFLAGS = $(plain_cflags)
tests_calls_uring_LDFLAGS =
tests_calls_anew_SOURCES = tests/calls/anew.c tests/plain.h
tests_calls_anew_CFLAGS = $(plain_cflags)
tests_calls_anew_LDFLAGS =
tests_calls_sandbox_SOURCES = tests/calls/carried.c tests/calls/carried.h tests/calls/sandbox.c tests/plain.h
tests_calls_sandbox_CFLAGS = $(plain_cflags)
tests_calls_sandbox_LDFLAGS =
tests_calls_hardened_SOURCES = tests/calls/hardened.c tests/plain.h
tests_calls_hardened_CFLAGS = $(plain_cflags)
tests_calls_hardened_LDFLAGS =
tests_calls_many_SOURCES = tests/calls/carried.c tests/calls/carried.h tests/calls/many.c tests/plain.h
tests_calls_many_CFLAGS = $(plain_cflags)
tests_calls_many_LDFLAGS =
tests_calls_space_SOURCES = tests/calls/carried.c tests/calls/carried.h tests/calls/space.c tests/plain.h
tests_calls_space_CFLAGS = $(plain_cflags)
tests_calls_space_LDFLAGS =
tests_calls_closing_SOURCES = tests/calls/closing.c
tests_calls_closing_CFLAGS = $(plain_cflags)
tests_calls_closing_LDFLAGS =
tests_calls_workers_SOURCES = tests/calls/workers.c
tests_calls_workers_CFLAGS = $(plain_cflags)
tests_calls_workers_LDFLAGS =
tests_calls_hands_SOURCES = tests/calls/hands.c
tests_calls_hands_CFLAGS = $(plain_cflags)
tests_calls_hands_LDFLAGS =
tests_calls_ways_ways_SOURCES = tests/kernel_call.h tests/calls/ways/ways.c tests/calls/ways/ways.h
tests_calls_ways_ways_CFLAGS = $(plain_cflags)
tests_calls_ways_ways_LDFLAGS =
tests_calls_ways_ways_LDADD = -ldl -lrt

tests_calls_cheat_SOURCES = tests/calls/cheat.c tests/engine/kernel_sys.h
tests_calls_cheat_LDADD = libshuntcore.a -lpthread

EXTRA_DIST += tests/calls/known tests/calls/known.busy tests/calls/known.flip tests/calls/known.kept tests/calls/known.verbs tests/calls/diff.sh tests/calls/transfer.sh \
	tests/calls/modes.sh tests/calls/mock.sh tests/calls/qos.sh tests/calls/pacing.sh tests/calls/pacing.py tests/calls/reserve.sh tests/calls/reserve.py tests/calls/reconnect.sh tests/calls/plainpeer.sh tests/calls/bad.sh tests/calls/users.sh tests/calls/go.sh tests/calls/go/main.go tests/calls/meeting.sh tests/calls/anew.sh tests/calls/sandbox.sh tests/calls/hardened.sh tests/calls/space.sh tests/calls/reasons.sh tests/calls/reasons.py tests/calls/ends.sh tests/calls/doors.sh tests/calls/liar.py tests/calls/workers.sh tests/calls/gone.sh tests/calls/carried.sh tests/calls/tcp_backlog.sh tests/calls/partial.sh tests/calls/wakes.sh tests/calls/closing.sh tests/calls/born.sh tests/calls/born.py tests/calls/relatives.sh tests/calls/older.sh tests/calls/uring.sh tests/calls/rings.sh tests/calls/numbers.sh tests/calls/idle.sh tests/calls/quick_idle.sh tests/calls/hands.sh tests/calls/hostile.py tests/calls/stranger.py tests/calls/door.py tests/calls/drop.py tests/calls/besiege.py tests/calls/relative.py tests/calls/older.py tests/calls/meet.py tests/calls/wire.py tests/calls/young.sh tests/calls/young.py tests/calls/dump.sh tests/calls/dump.py tests/calls/cards.sh tests/calls/ways.sh tests/calls/plan.sh tests/calls/ways/plug.c
EXTRA_DIST += tests/calls/known_test.sh tests/calls/gen/gen.sh tests/calls/lib.sh tests/calls/where.sh tests/README.md
quick_tests += tests/calls/diff.sh tests/calls/known_test.sh
TESTS += tests/calls/diff.sh tests/calls/known_test.sh tests/calls/transfer.sh tests/calls/mock.sh tests/calls/qos.sh tests/calls/pacing.sh tests/calls/reserve.sh tests/calls/reconnect.sh tests/calls/plainpeer.sh tests/calls/bad.sh \
	tests/calls/users.sh tests/calls/go.sh tests/calls/meeting.sh tests/calls/anew.sh tests/calls/sandbox.sh tests/calls/hardened.sh tests/calls/space.sh tests/calls/reasons.sh tests/calls/doors.sh tests/calls/workers.sh tests/calls/gen/gen.sh tests/calls/gone.sh tests/calls/carried.sh tests/calls/tcp_backlog.sh tests/calls/partial.sh tests/calls/wakes.sh tests/calls/closing.sh tests/calls/born.sh tests/calls/relatives.sh tests/calls/older.sh tests/calls/uring.sh tests/calls/rings.sh tests/calls/numbers.sh tests/calls/young.sh tests/calls/dump.sh tests/calls/hands.sh tests/calls/cards.sh tests/calls/quick_idle.sh tests/calls/ways.sh tests/calls/plan.sh
