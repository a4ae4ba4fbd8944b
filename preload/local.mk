# SPDX-License-Identifier: MIT
# The libc boundary.
preload_sources = \
	preload/accept.c \
	preload/api.c \
	preload/begin.c \
	preload/calls.c preload/calls.h \
	preload/cancel.c \
	preload/close.c \
	preload/confine.c preload/confine.h \
	preload/connect.c preload/connect.h \
	preload/dlmopen.c \
	preload/dup.c preload/dup.h \
	preload/epoll.c \
	preload/exec.c \
	preload/exit.c \
	preload/fcntl.c \
	preload/foreign.c \
	preload/fork.c \
	preload/gate.c preload/gate.h \
	preload/gate_entry.c \
	preload/gate_open.c \
	preload/gate_sites.c preload/gate_sites.h \
	preload/inherit.c preload/inherit.h \
	preload/ioctl.c \
	preload/make.c \
	preload/map.c \
	preload/memory.c \
	preload/message.c \
	preload/mlock.c preload/mlock.h \
	preload/once.c preload/once.h \
	preload/options.c preload/options.h \
	preload/poll.c \
	preload/process.c preload/process.h \
	preload/read.c \
	preload/recv.c \
	preload/rights.c preload/rights.h \
	preload/rlimit.c \
	preload/select.c \
	preload/send.c \
	preload/sendfile.c \
	preload/settings.c preload/settings.h \
	preload/signal.c \
	preload/socket.c \
	preload/sockopt.c \
	preload/spawn.c \
	preload/splice.c \
	preload/stdio.c \
	preload/sys.c \
	preload/syscall.c \
	preload/timeout.h \
	preload/touch.c preload/touch.h \
	preload/transfer.c preload/transfer.h \
	preload/uring.c preload/uring.h \
	preload/uring_lib.c \
	preload/uring_watch.c preload/uring_watch.h \
	preload/write.c \
	preload/young.c preload/young.h
# What memory.c stands in for.
preload_wraps = -Wl,--wrap=malloc,--wrap=free,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc,--wrap=posix_memalign \
	-Wl,--wrap=mmap,--wrap=munmap,--wrap=memfd_create,--wrap=eventfd,--wrap=pthread_create
EXTRA_DIST += preload/mkmap.sh
