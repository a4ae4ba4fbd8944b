# Tests that need RDMA devices, in a guest under QEMU: not part of make check. tests/lab/README.md tells more.
EXTRA_DIST += tests/lab/README.md tests/lab/lab.sh tests/lab/kernel.sh tests/lab/machine.sh tests/lab/init \
	tests/lab/inside.sh tests/lab/guest/lib.sh tests/lab/guest/channel.sh tests/lab/guest/cm.sh tests/lab/guest/conform.sh tests/lab/guest/devices.sh tests/lab/guest/harmless.sh \
	tests/lab/guest/pingpong.sh tests/lab/guest/soft.sh

check_PROGRAMS += tests/lab/channel tests/lab/cm
tests_lab_channel_SOURCES = tests/lab/channel.c
tests_lab_channel_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_lab_channel_LDADD = libshuntcore.la $(CMOCKA_LIBS)
tests_lab_cm_SOURCES = tests/lab/cm.c
tests_lab_cm_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_lab_cm_LDADD = libshuntcore.la $(CMOCKA_LIBS)
