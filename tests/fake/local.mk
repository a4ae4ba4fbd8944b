# SPDX-License-Identifier: MIT
# A libibverbs.so.1 whose device has a card's limits. It is linked without libtool, because builds with sanitizers have
# no shared libraries otherwise.
check_PROGRAMS += tests/fake/libibverbs.so.1
tests_fake_libibverbs_so_1_SOURCES = \
	tests/fake/fake.h \
	tests/fake/library.c \
	tests/fake/meeting.c \
	tests/fake/memory.c \
	tests/fake/profile.c \
	tests/fake/profile.h tests/kernel_call.h \
	$(soft_alone_sources)
tests_fake_libibverbs_so_1_CPPFLAGS = -I$(top_srcdir)
tests_fake_libibverbs_so_1_CFLAGS = $(AM_CFLAGS) -fPIC -fvisibility=default
tests_fake_libibverbs_so_1_LINK = $(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,libibverbs.so.1 -Wl,-Bsymbolic \
	-Wl,--version-script=$(srcdir)/tests/fake/libibverbs.map -o $@
tests_fake_libibverbs_so_1_LDADD = -lpthread
EXTRA_DIST += tests/fake/libibverbs.map
