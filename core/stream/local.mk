# SPDX-License-Identifier: MIT
# One TCP connection.
stream_sources = \
	core/stream/backlog.c core/stream/backlog.h \
	core/stream/births.c core/stream/births.h \
	core/stream/bypass.c core/stream/bypass.h \
	core/stream/carried.c core/stream/carried.h \
	core/stream/decision.c core/stream/decision.h \
	core/stream/deferred_fin.c core/stream/deferred_fin.h \
	core/stream/delivered.c core/stream/delivered.h \
	core/stream/end.c core/stream/end.h \
	core/stream/doubt.c core/stream/doubt.h \
	core/stream/eof.c core/stream/eof.h \
	core/stream/gather.c core/stream/gather.h \
	core/stream/hand_back.c core/stream/hand_back.h \
	core/stream/inbound.c core/stream/inbound.h \
	core/stream/kept.c core/stream/kept.h \
	core/stream/left.c core/stream/left.h \
	core/stream/loss.c core/stream/loss.h \
	core/stream/marks.c core/stream/marks.h \
	core/stream/named.c core/stream/named.h \
	core/stream/nonce.c core/stream/nonce.h \
	core/stream/offer.c core/stream/offer.h \
	core/stream/low_water.c core/stream/low_water.h \
	core/stream/overflow.c core/stream/overflow.h \
	core/stream/peek.c core/stream/peek.h \
	core/stream/pinned.c core/stream/pinned.h \
	core/stream/pour.c \
	core/stream/proof.c core/stream/proof.h \
	core/stream/pull.c core/stream/splice.h \
	core/stream/queued.c core/stream/queued.h \
	core/stream/ready.c core/stream/ready.h \
	core/stream/reset_unread.c core/stream/reset_unread.h \
	core/stream/repeat.c core/stream/repeat.h \
	core/stream/rest.c core/stream/rest.h \
	core/stream/retire.c core/stream/retire.h \
	core/stream/takeover.c core/stream/takeover.h \
	core/stream/rings.c core/stream/rings.h \
	core/stream/rx.c core/stream/rx.h \
	core/stream/settle.c core/stream/settle.h \
	core/stream/short_lived.c core/stream/short_lived.h \
	core/stream/shutdown.c core/stream/shutdown.h \
	core/stream/sleep.c core/stream/sleep.h \
	core/stream/spare.c core/stream/spare.h \
	core/stream/spare_option.c core/stream/spare_option.h \
	core/stream/slow_stream.h \
	core/stream/stream.h \
	core/stream/stream_end.c core/stream/stream_end.h \
	core/stream/stream_error.c core/stream/stream_error.h \
	core/stream/stream_option.c core/stream/stream_option.h \
	core/stream/streams.c core/stream/streams.h \
	core/stream/kernel_tcp.c core/stream/kernel_tcp.h core/stream/plain.c core/stream/plain.h core/stream/credit.c core/stream/credit.h core/stream/release.c core/stream/release.h core/stream/handover.c core/stream/handover.h core/stream/expire.c core/stream/expire.h core/stream/destroyed.c core/stream/destroyed.h \
	core/stream/tapped.c core/stream/tapped.h \
	core/stream/traced.c core/stream/traced.h \
	core/stream/track.c core/stream/track.h \
	core/stream/tx.c core/stream/tx.h \
	core/stream/tuple.c core/stream/tuple.h \
	core/stream/unclaimed.c core/stream/unclaimed.h \
	core/stream/uring.c core/stream/uring.h \
	core/stream/user_timeout.c core/stream/user_timeout.h \
	core/stream/wait.c core/stream/wait.h \
	core/stream/work.h
