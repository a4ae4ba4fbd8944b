# SPDX-License-Identifier: MIT
# The service thread's loop.
loop_sources = \
	core/loop/endpoint.c core/loop/endpoint.h \
	core/loop/loop.c core/loop/loop.h \
	core/loop/porter.c core/loop/porter.h \
	core/loop/request.c core/loop/request.h
