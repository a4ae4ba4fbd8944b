# SPDX-License-Identifier: MIT
# Tests that need RDMA devices, in guests under QEMU: not part of make check-all. tests/lab/README.md tells more.
EXTRA_DIST += tests/lab/README.md tests/lab/lab.sh tests/lab/kernel.sh tests/lab/machine.sh tests/lab/init \
	tests/lab/inside.sh

# In one guest.
EXTRA_DIST += tests/lab/guest/lib.sh tests/lab/guest/apps.sh tests/lab/pair/delays.sh tests/lab/guest/blocks.sh tests/lab/guest/sizes.sh tests/lab/guest/calls.sh \
	tests/lab/guest/channel.sh tests/lab/guest/cm.sh tests/lab/guest/conform.sh tests/lab/guest/counters.sh \
	tests/lab/guest/devices.sh tests/lab/guest/doctor.sh tests/lab/guest/doorbells.sh tests/lab/guest/flips.sh tests/lab/guest/harmless.sh tests/lab/guest/iwarp.sh \
	tests/lab/guest/links.sh tests/lab/guest/pages.sh tests/lab/guest/peers.sh tests/lab/guest/pingpong.sh tests/lab/guest/soft.sh \
	tests/lab/guest/without.sh

# In two.
EXTRA_DIST += tests/lab/pair/lib.sh tests/lab/pair/bites.sh tests/lab/pair/faults.sh tests/lab/pair/flow.py \
	tests/lab/pair/gone.sh tests/lab/pair/hosts.sh tests/lab/pair/keys.py tests/lab/pair/loads.sh tests/lab/pair/nets.sh tests/lab/pair/perf.sh tests/lab/pair/ping.sh tests/lab/pair/qos.sh tests/lab/pair/routes.sh \
	tests/lab/pair/secret.sh tests/lab/pair/short.sh tests/lab/pair/siw.sh tests/lab/pair/trace.sh tests/lab/pair/clocks.py tests/lab/pair/wire.sh \
	tests/lab/pair/crew.py tests/lab/pair/workers.sh tests/lab/pair/wrong.sh tests/lab/pair/yardstick.sh

check_PROGRAMS += tests/lab/channel tests/lab/cm/cm tests/lab/older
tests_lab_older_LDADD = libshuntcore.a
tests_lab_channel_LDADD = libshuntcore.a $(CMOCKA_LIBS)
tests_lab_cm_cm_SOURCES = \
	tests/lab/cm/answers.c \
	tests/lab/cm/ask.c \
	tests/lab/cm/cm.c \
	tests/lab/cm/cm.h \
	tests/lab/cm/ends.c \
	tests/lab/cm/hostile.c \
	tests/lab/cm/many.c \
	tests/lab/cm/silence.c \
	tests/lab/cm/timed.c
tests_lab_cm_cm_LDADD = libshuntcore.a $(CMOCKA_LIBS)
