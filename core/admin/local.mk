# SPDX-License-Identifier: MIT
# Statistics, commands, the operator's word.
admin_sources = \
	core/admin/admin.c core/admin/admin.h \
	core/admin/command.c core/admin/command.h \
	core/admin/doors.c core/admin/doors.h \
	core/admin/stats.c core/admin/stats.h \
	core/admin/trace_show.c core/admin/trace_show.h
