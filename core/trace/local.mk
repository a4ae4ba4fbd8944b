# SPDX-License-Identifier: MIT
# Time stamps, rings of records, histograms. Knows nothing of streams.
trace_sources = \
	core/trace/histogram.c core/trace/histogram.h \
	core/trace/probe.h \
	core/trace/slots.h core/trace/slow.c core/trace/slow.h \
	core/trace/slow_step.c core/trace/slow_step.h \
	core/trace/tap.c core/trace/tap.h \
	core/trace/book.c core/trace/book.h core/trace/clock.c core/trace/clock.h core/trace/followed.c core/trace/followed.h core/trace/pending.c core/trace/pending.h
