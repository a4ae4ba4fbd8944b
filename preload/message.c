/* SPDX-License-Identifier: MIT */
/* sendmsg(), recvmsg() and the calls for several messages, which TCP takes as so many calls. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include "core/base/kernel_clock.h"
#include "preload/connect.h"
#include "preload/inherit.h"
#include "preload/rights.h"
#include "preload/touch.h"
#include "preload/transfer.h"

#ifndef TCP_CM_INQ
#define TCP_CM_INQ 36
#endif

/* The checks of copy_msghdr_from_user() and import_iovec(). 0 or an errno. */
static int message_refuse(const struct msghdr *message)
{
	if (shunt_bad_pointer(message))
		return EFAULT;
	if (message->msg_name && (int)message->msg_namelen < 0)
		return EINVAL;
	if (message->msg_iovlen > SHUNT_PIECES_MAX)
		return EMSGSIZE;
	return message->msg_iovlen && shunt_bad_pointer(message->msg_iov) ? EFAULT : 0;
}

/* Of a message that is sent the kernel copies the name, although TCP does not look at it. */
static bool bad_name(const struct msghdr *message)
{
	return message->msg_name && message->msg_namelen && shunt_bad_pointer(message->msg_name);
}

/* One of several messages is the kernel's: its call may wait, so it is made when nothing is held any more. */
static ssize_t kernels(void)
{
	return shunt_fail(ENOLINK);
}

/* `several`: it is one of sendmmsg()'s. */
static SHUNT_INLINE ssize_t send_message(int fd, const struct msghdr *message, int flags,
					 bool several)
{
	struct shunt_stream *stream;
	int served, error;
	ssize_t sent;

	if (unlikely(flags & MSG_FASTOPEN) && !shunt_unreadable(message, sizeof(*message)) &&
	    shunt_connect_sends(fd, message, &flags, &sent))
		return sent;
	served = flags;
	stream = shunt_linked(&fd);
	if (!stream) {
		if (several)
			return kernels();
		if (unlikely(shunt_process.engine) && !shunt_unreadable(message, sizeof(*message)) &&
		    message->msg_controllen)
			shunt_rights_message(message);
		return real(sendmsg)(fd, message, flags);
	}
	error = message_refuse(message);
	if (unlikely(!error && bad_name(message)))
		error = EFAULT;
	if (error)
		return shunt_fail(error);
	if (message->msg_controllen) {
		shunt_rights_retire(fd, SHUNT_CAUSE_ANCILLARY);
		return several ? kernels() : real(sendmsg)(fd, message, flags);
	}
	if (!shunt_send_serves(fd, stream, &served))
		return several ? kernels() : real(sendmsg)(fd, message, flags);
	return shunt_transfer_send(fd, stream, message->msg_iov, (int)message->msg_iovlen, served);
}

/* put_cmsg() of the kernel, of which a bad pointer gets nothing. `control`, `room`: as the program gave them. */
static void tell_unread(int fd, struct shunt_stream *stream, struct msghdr *message, void *control,
			size_t room)
{
	int unread = shunt_stream_unread(shunt_process.engine, fd, stream);
	struct cmsghdr head = { .cmsg_len = CMSG_LEN(sizeof(unread)),
				.cmsg_level = IPPROTO_TCP,
				.cmsg_type = TCP_CM_INQ };
	size_t space = CMSG_SPACE(sizeof(unread));

	if (!control || room < sizeof(head)) {
		message->msg_flags |= MSG_CTRUNC;
		return;
	}
	if (room < head.cmsg_len) {
		message->msg_flags |= MSG_CTRUNC;
		head.cmsg_len = room;
	}
	if (shunt_bad_pointer(control))
		return;
	memcpy(control, &head, sizeof(head));
	memcpy(CMSG_DATA((struct cmsghdr *)control), &unread, head.cmsg_len - sizeof(head));
	message->msg_controllen = room < space ? room : space;
}

/* The kernel's own: descriptors may have come with it. */
static ssize_t recv_of_kernel(int fd, struct msghdr *message, int flags)
{
	ssize_t got = real(recvmsg)(fd, message, flags);

	if (unlikely(got >= 0 && message->msg_controllen))
		shunt_inherit_received(message);
	return got;
}

static int recv_several_of_kernel(int fd, struct mmsghdr *messages, unsigned int count, int flags,
				  struct timespec *timeout)
{
	int got = real(recvmmsg)(fd, messages, count, flags, timeout);

	for (int i = 0; i < got; i++)
		if (unlikely(messages[i].msg_hdr.msg_controllen))
			shunt_inherit_received(&messages[i].msg_hdr);
	return got;
}

/* `several`: it is one of recvmmsg()'s. */
static SHUNT_INLINE ssize_t recv_message(int fd, struct msghdr *message, int flags, bool several)
{
	struct shunt_stream *stream = shunt_linked(&fd);
	int served = flags, error;
	size_t room;
	ssize_t got;
	uint8_t asks;

	if (!stream)
		return several ? kernels() : recv_of_kernel(fd, message, flags);
	error = message_refuse(message);
	if (error)
		return shunt_fail(error);
	asks = shunt_stream_asks(stream);
	if (unlikely(asks & SHUNT_ASKS_STAMPS)) {
		shunt_rights_retire(fd, SHUNT_CAUSE_STAMPS);
		if (shunt_stream_is_plain(stream))
			return several ? kernels() : real(recvmsg)(fd, message, flags);
	}
	if (!shunt_recv_serves(fd, stream, &served))
		return several ? kernels() : real(recvmsg)(fd, message, flags);
	got = shunt_transfer_recv(fd, stream, message->msg_iov, (int)message->msg_iovlen, served);
	if (got < 0)
		return got;
	if (message->msg_name)
		message->msg_namelen = 0;
	room = message->msg_controllen;
	message->msg_controllen = 0;
	message->msg_flags = flags & MSG_CMSG_CLOEXEC;
	if (unlikely(asks & SHUNT_ASKS_UNREAD))
		tell_unread(fd, stream, message, message->msg_control, room);
	return got;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	return send_message(fd, message, flags, false);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	return recv_message(fd, message, flags, false);
}

static void pass_rights(const struct mmsghdr *messages, unsigned int count)
{
	unsigned int i;

	if (count > SHUNT_PIECES_MAX)
		count = SHUNT_PIECES_MAX;
	if (!shunt_process.engine || !count || shunt_unreadable(messages, count * sizeof(*messages)))
		return;
	for (i = 0; i < count; i++)
		if (messages[i].msg_hdr.msg_controllen)
			shunt_rights_message(&messages[i].msg_hdr);
}

static bool is_kernels(int result)
{
	return unlikely(result < 0 && errno == ENOLINK);
}

/* Is the call that has failed to begin anew? With what the number means then. */
static bool begins_anew(int result)
{
	return unlikely(result < 0 && errno == ERESTART);
}

/*
 * Some messages were moved, and the stream became the kernel's before the next: that goes on with the rest, when nothing of
 * ours is held. A handler that has come ends the call.
 */
static bool goes_on(int fd, unsigned int done, unsigned int count)
{
	return unlikely(done && done < count && (errno == ENOLINK || errno == ERESTART)) &&
	       !shunt_signal_defer.late && !shunt_linked(&fd);
}

/* *rest: goes_on(). */
static SHUNT_INLINE int send_messages(int fd, struct mmsghdr *messages, unsigned int count,
				      int flags, bool *rest)
{
	unsigned int done;
	ssize_t sent = 0;
	int saved = errno;

	for (done = 0; done < count && done < SHUNT_PIECES_MAX; done++) {
		sent = send_message(fd, &messages[done].msg_hdr, flags, shunt_signal_defer.depth);
		if (sent < 0)
			break;
		messages[done].msg_len = (unsigned int)sent;
		shunt_cancel_moved(true);
	}
	shunt_cancel_moved(false);
	if (done < count && !done)
		return -1;
	*rest = sent < 0 && goes_on(fd, done, count);
	errno = saved;
	return (int)done;
}

static int send_rest(int fd, struct mmsghdr *messages, unsigned int count, int flags, int done)
{
	int saved = errno, more;

	pass_rights(messages + done, count - (unsigned int)done);
	more = real(sendmmsg)(fd, messages + done, count - (unsigned int)done, flags);
	errno = saved;
	return more > 0 ? done + more : done;
}

int sendmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags)
{
	bool rest = false;
	int sent;

	if (unlikely(flags & MSG_FASTOPEN))	/* the first may be a connect(), which waits */
		return send_messages(fd, messages, count, flags, &rest);
	do {
		if (!shunt_linked(&fd)) {
			pass_rights(messages, count);
			return real(sendmmsg)(fd, messages, count, flags);
		}
		shunt_cancellation_point();
		sent = shunt_inside(send_messages(fd, messages, count, flags, &rest));
	} while (begins_anew(sent));
	if (unlikely(rest))
		return send_rest(fd, messages, count, flags, sent);
	return is_kernels(sent) ? real(sendmmsg)(fd, messages, count, flags) : sent;
}

static bool valid(const struct timespec *timeout)
{
	return timeout->tv_sec >= 0 && timeout->tv_nsec >= 0 && timeout->tv_nsec < 1000000000;
}

/* Sets *timeout to the time left until `end`. False: nothing. */
static bool count_down(const struct timespec *end, struct timespec *timeout)
{
	struct timespec now;

	shunt_kernel_clock(CLOCK_MONOTONIC, &now);
	timeout->tv_sec = end->tv_sec - now.tv_sec;
	timeout->tv_nsec = end->tv_nsec - now.tv_nsec;
	if (timeout->tv_nsec < 0) {
		timeout->tv_sec--;
		timeout->tv_nsec += 1000000000;
	}
	if (timeout->tv_sec < 0)
		*timeout = (struct timespec) { 0, 0 };
	return timeout->tv_sec || timeout->tv_nsec;
}

/*
 * As the kernel: the timeout is looked at only after each message, and an error after the first
 * message is kept for the next call. *rest: goes_on().
 */
static SHUNT_INLINE int recv_messages(int fd, struct mmsghdr *messages, unsigned int count,
				      int flags, struct timespec *timeout,
				      const struct timespec *end, bool *rest)
{
	unsigned int done;
	int saved = errno;
	ssize_t got = 0;

	for (done = 0; done < count;) {
		got = recv_message(fd, &messages[done].msg_hdr, flags & ~MSG_WAITFORONE, true);
		if (got < 0)
			break;
		messages[done++].msg_len = (unsigned int)got;
		shunt_cancel_moved(true);
		if (flags & MSG_WAITFORONE)
			flags |= MSG_DONTWAIT;
		if (timeout && !count_down(end, timeout))
			break;
	}
	shunt_cancel_moved(false);
	if (done < count && !done)
		return -1;
	if (done < count && got < 0 && errno != EAGAIN && errno != ERESTART && errno != ENOLINK &&
	    !(errno == EINTR && shunt_cancel_pending()) && shunt_linked(&fd))
		shunt_stream_keep_error(shunt_linked(&fd), errno);
	*rest = got < 0 && goes_on(fd, done, count);
	errno = saved;
	return (int)done;
}

static int recv_rest(int fd, struct mmsghdr *messages, unsigned int count, int flags,
		     struct timespec *timeout, int done)
{
	int saved = errno, more;

	if (flags & MSG_WAITFORONE)
		flags |= MSG_DONTWAIT;
	more = real(recvmmsg)(fd, messages + done, count - (unsigned int)done, flags, timeout);
	errno = saved;
	return more > 0 ? done + more : done;
}

/* An error that waits comes before any message. */
static int error_first(struct shunt_stream *stream)
{
	int saved = errno, error = shunt_stream_take_error(stream);

	errno = saved;
	return error;
}

int recvmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags,
	     struct timespec *timeout)
{
	struct shunt_stream *stream = shunt_linked(&fd);
	struct timespec end;
	bool rest = false;
	int got;

	if (!stream)
		return recv_several_of_kernel(fd, messages, count, flags, timeout);
	if (timeout && shunt_unwritable(timeout, sizeof(*timeout)))
		return shunt_fail(EFAULT);
	if (timeout) {
		if (!valid(timeout))
			return shunt_fail(EINVAL);
		shunt_kernel_clock(CLOCK_MONOTONIC, &end);
		end.tv_sec += timeout->tv_sec;
		end.tv_nsec += timeout->tv_nsec;
		if (end.tv_nsec >= 1000000000) {
			end.tv_sec++;
			end.tv_nsec -= 1000000000;
		}
	}
	do {
		shunt_cancellation_point();
		got = shunt_inside(error_first(stream));
		if (got)
			return shunt_fail(got);
		got = shunt_inside(recv_messages(fd, messages, count, flags, timeout, &end, &rest));
		stream = begins_anew(got) ? shunt_linked(&fd) : NULL;
	} while (stream);
	if (unlikely(rest))
		return recv_rest(fd, messages, count, flags, timeout, got);
	return begins_anew(got) || is_kernels(got) ? real(recvmmsg)(fd, messages, count, flags, timeout) : got;
}
