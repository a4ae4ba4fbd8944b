# SPDX-License-Identifier: MIT
# Time stamps, rings of records, histograms. Knows nothing of streams.
trace_sources = \
	core/trace/histogram.c core/trace/histogram.h
