# SPDX-License-Identifier: MIT
# What is in a program that Go's linker has made. Knows nothing of sockets, and reads bytes only.
go_sources = \
	core/go/image.c core/go/image.h \
	core/go/pclntab.c core/go/pclntab.h \
	core/go/sites.c core/go/sites.h
