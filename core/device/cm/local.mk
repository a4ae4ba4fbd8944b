# SPDX-License-Identifier: MIT
# The connection manager: every file of core/device/cm.
cm_sources = \
	core/device/cm/ask.c \
	core/device/cm/cm.c core/device/cm/cm.h \
	core/device/cm/frame.c \
	core/device/cm/inside.h \
	core/device/cm/library.c \
	core/device/cm/listen.c \
	core/device/cm/pair.c core/device/cm/pair.h \
	core/device/cm/route.c
