# SPDX-License-Identifier: MIT
# Statistics, commands, the operator's word.
admin_sources = \
	core/admin/admin.c core/admin/admin.h \
	core/admin/command.c core/admin/command.h \
	core/admin/local_sockets.c core/admin/local_sockets.h \
	core/admin/dump.c core/admin/dump.h \
	core/admin/events.c core/admin/events.h \
	core/admin/hw_counters.c core/admin/hw_counters.h \
	core/admin/live.c core/admin/live.h \
	core/admin/stats.c core/admin/stats.h \
	core/admin/stats_device.c core/admin/stats_device.h \
	core/admin/stats_lane.c core/admin/stats_lane.h \
	core/admin/stats_stream.c core/admin/stats_stream.h \
	core/admin/trace_show.c core/admin/trace_show.h
