# SPDX-License-Identifier: MIT
# What two processes share.
link_sources = \
	core/link/arena.c core/link/arena.h \
	core/link/channel.c core/link/channel.h \
	core/link/common.h \
	core/link/heading.c core/link/heading.h \
	core/link/intake.c core/link/intake.h \
	core/link/line.h \
	core/link/link.c core/link/link.h \
	core/link/patience.c core/link/patience.h \
	core/link/screen.c core/link/screen.h \
	core/link/seal.c core/link/seal.h \
	core/link/seat.c core/link/seat.h \
	core/link/share.c core/link/share.h \
	core/link/trust.c core/link/trust.h
