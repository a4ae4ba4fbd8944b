# SPDX-License-Identifier: MIT
# The object of a process, and its service thread. Each room of the engine has a list of its own.
core_sources = \
	include/shunt/wire.h \
	core/api.h \
	core/accept.c core/accept.h \
	core/await.c core/await.h \
	core/born.c core/born.h \
	core/engine.c core/engine.h \
	core/files.c core/files.h \
	core/leave.c core/leave.h \
	core/no_new_privs.c core/no_new_privs.h \
	core/service.c core/service.h \
	core/young.c core/young.h
