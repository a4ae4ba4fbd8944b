# SPDX-License-Identifier: MIT
# For programs that ask about their connections: a header, and where pkg-config finds it.
pkginclude_HEADERS = include/shunt/shunt.h
pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = include/shunt.pc
