# SPDX-License-Identifier: MIT
# Descriptors of our own among the program's.
fd_sources = \
	core/fd/file.c core/fd/file.h \
	core/fd/loading.c core/fd/loading.h \
	core/fd/own_fds.c core/fd/own_fds.h \
	core/fd/thread.c core/fd/thread.h \
	core/fd/uring_file.c core/fd/uring_file.h \
	core/fd/uring_sq.c core/fd/uring_sq.h \
	core/fd/young.h
