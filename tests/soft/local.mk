# SPDX-License-Identifier: MIT
# Conformance of a device: of the soft one here, of others by hand and in tests/lab.
check_PROGRAMS += tests/soft/conform tests/soft/litmus
TESTS += tests/soft/conform tests/soft/conform_model.sh tests/soft/conform_apart.sh tests/soft/litmus
EXTRA_DIST += tests/soft/conform_model.sh tests/soft/conform_apart.sh
tests_soft_conform_SOURCES = \
	tests/soft/basic.c \
	tests/soft/conform.c \
	tests/soft/differences.c \
	tests/soft/errors.c \
	tests/soft/events.c \
	tests/soft/faults.c \
	tests/soft/fds.c \
	tests/soft/fds.h \
	tests/soft/hostile.c \
	tests/soft/iops.c \
	tests/soft/iops.h \
	tests/soft/model.c \
	tests/soft/page.c \
	tests/soft/party.c \
	tests/soft/party.h \
	tests/soft/process.c \
	tests/soft/race.c \
	tests/soft/rig.c \
	tests/soft/rig.h \
	tests/soft/rig_soft.c \
	tests/soft/rig_verbs.c \
	tests/soft/shape.c \
	tests/soft/sink.c \
	tests/soft/threads.c \
	tests/soft/waiters.c \
	core/lane/window.c core/lane/window.h \
	$(soft_alone_sources) \
	$(verbs_sources)
tests_soft_conform_CPPFLAGS = -I$(top_srcdir)
tests_soft_conform_LDADD = -lcmocka -lpthread

# The memory order of the soft device; also under qemu-user (tools/cross).
tests_soft_litmus_SOURCES = \
	tests/soft/litmus.c \
	tests/soft/rig.c \
	tests/soft/rig.h \
	tests/soft/rig_soft.c \
	$(soft_alone_sources)
tests_soft_litmus_CPPFLAGS = -I$(top_srcdir)
tests_soft_litmus_LDADD = -lcmocka -lpthread
