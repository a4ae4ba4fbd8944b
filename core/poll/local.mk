# SPDX-License-Identifier: MIT
# Completions, spinning, sleeping, waking.
poll_sources = \
	core/poll/cancel.c core/poll/cancel.h \
	core/poll/devices.c core/poll/devices.h \
	core/poll/gap.c core/poll/gap.h \
	core/poll/group.c core/poll/group.h \
	core/poll/lane_counters.h \
	core/poll/linger.c core/poll/linger.h \
	core/poll/polling.c core/poll/polling.h \
	core/poll/sleepcost.c core/poll/sleepcost.h \
	core/poll/sleeper.c core/poll/sleeper.h \
	core/poll/waiter.c core/poll/waiter.h
