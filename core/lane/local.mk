# SPDX-License-Identifier: MIT
# One queue pair of a link and what waits for it.
lane_sources = \
	core/lane/chain.c core/lane/chain.h \
	core/lane/copying.c core/lane/copying.h \
	core/lane/direct.c core/lane/direct.h \
	core/lane/fault_device.c core/lane/fault_device.h \
	core/lane/lane.c core/lane/lane.h \
	core/lane/lane_queue.c core/lane/lane_queue.h \
	core/lane/lane_serve.c core/lane/lane_serve.h \
	core/lane/lane_stats.c core/lane/lane_stats.h \
	core/lane/lane_trace.c core/lane/lane_trace.h \
	core/lane/lanes.c core/lane/lanes.h \
	core/lane/nop.c core/lane/nop.h \
	core/lane/remote_read.c core/lane/remote_read.h \
	core/lane/roster.c core/lane/roster.h \
	core/lane/seats.c core/lane/seats.h \
	core/lane/send_queue.c core/lane/send_queue.h \
	core/lane/slow_lane.h \
	core/lane/window.c core/lane/window.h \
	core/lane/wr.c core/lane/wr.h \
	core/lane/zero_copy.c core/lane/zero_copy.h
