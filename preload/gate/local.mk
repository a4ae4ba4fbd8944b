# SPDX-License-Identifier: MIT
# Calls that do not come by name: the SYSCALL instructions of the C library.
preload_gate_sources = \
	preload/gate/entry.c \
	preload/gate/gate.c preload/gate/gate.h \
	preload/gate/open.c \
	preload/gate/sites.c preload/gate/sites.h
