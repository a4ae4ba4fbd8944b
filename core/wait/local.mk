# SPDX-License-Identifier: MIT
# Calls that wait for many.
wait_sources = \
	core/wait/companion.c core/wait/companion.h \
	core/wait/epset.c core/wait/epset.h \
	core/wait/epsets.c core/wait/epsets.h \
	core/wait/epwait.c core/wait/epwait.h \
	core/wait/nested.c core/wait/nested.h \
	core/wait/poll.c core/wait/poll.h \
	core/wait/select.c \
	core/wait/watch.c core/wait/watch.h
