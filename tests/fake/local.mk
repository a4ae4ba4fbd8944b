# SPDX-License-Identifier: MIT
# A libibverbs.so.1 whose device has a card's limits. (A module that is not installed needs an -rpath to become shared.)
check_LTLIBRARIES += tests/fake/libibverbs.la
tests_fake_libibverbs_la_SOURCES = \
	tests/fake/fake.h \
	tests/fake/library.c \
	tests/fake/meeting.c \
	tests/fake/memory.c \
	tests/fake/profile.c \
	tests/fake/profile.h \
	core/base/copy.c core/base/copy.h \
	core/base/guard.c core/base/guard.h \
	core/base/kernel_clock.c core/base/kernel_clock.h \
	core/base/soft_model.c core/base/soft_model.h \
	$(soft_sources)
tests_fake_libibverbs_la_CPPFLAGS = -I$(top_srcdir)
tests_fake_libibverbs_la_CFLAGS = $(AM_CFLAGS) -fvisibility=default
tests_fake_libibverbs_la_LDFLAGS = -version-info 1:0:0 -rpath /nowhere -Wl,-Bsymbolic \
	-Wl,--version-script=$(srcdir)/tests/fake/libibverbs.map
tests_fake_libibverbs_la_LIBADD = -lpthread
EXTRA_DIST += tests/fake/libibverbs.map
