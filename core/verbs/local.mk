# The verbs device: every file of core/verbs.
verbs_sources = \
	core/verbs/library.c \
	core/verbs/open.c \
	core/verbs/verbs.h
