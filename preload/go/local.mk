# SPDX-License-Identifier: MIT
# Go programs, whose system calls do not come through libc.
preload_go_sources = \
	preload/go/code.c preload/go/code.h \
	preload/go/entry.c \
	preload/go/go.c preload/go/go.h \
	preload/go/patch.c
