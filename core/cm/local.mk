# The connection manager: every file of core/cm.
cm_sources = \
	core/cm/ask.c \
	core/cm/cm.c \
	core/cm/cm.h \
	core/cm/frame.c \
	core/cm/inside.h \
	core/cm/library.c \
	core/cm/listen.c \
	core/cm/route.c
