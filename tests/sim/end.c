/* SPDX-License-Identifier: MIT */
/* A program at its end of a connection, and the results that it must see. */
#include <errno.h>
#include <string.h>
#include "tests/inspect.h"
#include "tests/sim/sim.h"

#define PERIOD 65521	/* a prime: no ring size divides it */
#define MOST 65536

static uint8_t pattern[PERIOD + MOST];
static uint8_t buffer[MOST];

static void pattern_make(void)
{
	uint64_t x = 88172645463325252ull;

	for (int i = 0; i < PERIOD; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		pattern[i] = x;
	}
	for (int i = PERIOD; i < PERIOD + MOST; i++)
		pattern[i] = pattern[i - PERIOD];
}

static uint8_t *bytes_at(struct sim_end *sender, uint64_t offset)
{
	if (!pattern[0] && !pattern[1] && !pattern[2])
		pattern_make();
	return pattern + (sender->salt + offset) % PERIOD;
}

static const char *name(struct sim_end *end)
{
	static char text[2][32];
	static int turn;

	turn = !turn;
	snprintf(text[turn], sizeof(text[0]), "connection %d %s", (int)(end->conn - sim_world.conn),
		 end->side ? "acceptor" : "connector");
	return text[turn];
}

static struct shunt_engine *engine_of(struct sim_end *end)
{
	return sim_world.engine[end->which];
}

static int number(struct sim_end *end)
{
	return end->twin >= 0 && sim_one_in(2) ? end->twin : end->fd;
}

struct shunt_stream *sim_end_stream(struct sim_end *end)
{
	return (struct shunt_stream *)shunt_file(engine_of(end), end->fd);
}

static bool is_kernels(struct sim_end *end)
{
	struct shunt_stream *stream = sim_end_stream(end);

	return !stream || shunt_stream_is_plain(stream);
}

void sim_end_open(struct sim_end *end)
{
	struct sim_sock *sock = &end->conn->sock[end->side];

	end->life = SIM_OPEN;
	end->fd = sim_fd_sock(sock);
	end->twin = -1;
	if (end->side) {
		shunt_file_accepted(engine_of(end),
				    sim_world.born ? sim_world.listener_fd[end->which] : -1,
				    end->fd, true, sock->remote.sin_port);
	} else {
		shunt_file_socket(engine_of(end), end->fd, true);
		shunt_file_connected(engine_of(end), end->fd, end->conn->established ? 0 : -EINPROGRESS,
				     (struct sockaddr *)&sock->remote, sizeof(sock->remote));
	}
	stream_start_at(sim_end_stream(end), sim_world.start[end->side],
			sim_world.start[!end->side]);
	trace("%s: open, fd %d", name(end), end->fd);
	if (end->style == SIM_EPOLL)
		sim_watch_add(end);
}

/* --- sending --- */

static ssize_t do_send(struct sim_end *end, const struct iovec *iov, int count, int flags)
{
	struct msghdr message = { .msg_iov = (struct iovec *)iov, .msg_iovlen = count };
	int fd = number(end);
	ssize_t sent;

	if (!is_kernels(end))
		return shunt_stream_send(engine_of(end), fd, sim_end_stream(end), iov, count, flags);
	sent = sim_sys.sendmsg(fd, &message, flags);
	return sent < 0 ? -errno : sent;
}

/* The connection may end in an error without anybody being wrong. */
static bool error_is_fair(struct sim_end *end)
{
	return end->conn->reset_ok || end->error || sim_world.killed;
}

static void check_error(struct sim_end *end, const char *call, ssize_t result)
{
	bool known = result == -EPIPE || result == -ECONNRESET || result == -ENOTCONN;

	trace("%s: %s: error %zd", name(end), call, -result);
	if (!known || !error_is_fair(end))
		sim_fail("%s: %s fails with error %zd (%s)", name(end), call, -result, strerror(-result));
	if (result == -ECONNRESET && end->told_reset)
		sim_fail("%s: %s tells of a reset again", name(end), call);
	end->told_reset |= result == -ECONNRESET;
	end->error = true;
	end->may_read = end->may_write = false;
}

static int cut(uint8_t *bytes, uint64_t length, struct iovec iov[5])
{
	int count = sim_one_in(2) ? 1 : sim_between(1, 5);

	for (int i = 0; i < count; i++) {
		uint64_t part = i == count - 1 ? length : sim_below(length + 1);

		iov[i] = (struct iovec) { bytes, part };
		bytes += part;
		length -= part;
	}
	return count;
}

/* Its HANDBACK, and so the peer's answer, may wait for the peer's program to read. */
static bool still_retires(struct sim_end *end)
{
	struct shunt_stream *stream = sim_end_stream(end);

	return stream && stream_retiring(stream) == SHUNT_RETIRING;
}

void sim_end_send(struct sim_end *end, uint64_t most, bool must)
{
	struct shunt_stream *stream = sim_end_stream(end);
	bool link = stream && stream_sends_on_link(stream);
	struct sim_end *peer = sim_end_peer(end);
	uint64_t bytes = end->goal - end->sent < most ? end->goal - end->sent : most;
	struct iovec iov[5];
	ssize_t sent;
	int count;

	if (bytes > MOST)
		bytes = MOST;
	if (!bytes)
		return;
	count = cut(bytes_at(end, end->sent), bytes, iov);
	if (peer->life == SIM_CLOSED || (peer->shut_read && peer->shut_write))
		end->conn->reset_ok = true;
	sent = do_send(end, iov, count, MSG_NOSIGNAL | MSG_DONTWAIT | (sim_one_in(4) ? MSG_MORE : 0));
	trace("%s: send %lu at %lu: %zd", name(end), bytes, end->sent, sent);
	if (sent == 0 || sent > (ssize_t)bytes)
		sim_fail("%s: send of %lu bytes returns %zd", name(end), bytes, sent);
	/*
	 * A lane that has died takes nothing until the service thread has moved its streams. A
	 * direction that has just left the link may have filled TCP with what the ring had no room
	 * for (overflow.c), to its last byte or with more.
	 */
	if (link && stream == sim_end_stream(end) && !stream_sends_on_link(stream) &&
	    (stream_resends(stream) || sim_tcp_is_full(&end->conn->sock[end->side])))
		must = false;
	if (still_retires(end))
		must = false;
	/* The send itself has begun to leave the link, and the HANDBACK waits for tokens with the bytes before it. */
	if (link && stream == sim_end_stream(end) && !stream_sends_on_link(stream) &&
	    stream_lane(stream)->window.gate && !stream_handback_is_posted(stream))
		must = false;
	if (sent == -EAGAIN && must && !sim_world.faulty && !sim_world.killed && !sim_world.broken)
		sim_fail("%s: writable, but send of %lu bytes finds no room", name(end), bytes);
	if (sent == -EAGAIN || (end->trusts_short && sent < (ssize_t)bytes))
		end->may_write = false;
	if (sent > 0)
		end->sent += sent;
	else if (sent == -EPIPE && end->shut_write)
		return;
	else if (sent != -EAGAIN)
		check_error(end, "send", sent);
}

/* --- receiving --- */

static ssize_t do_receive(struct sim_end *end, const struct iovec *iov, int count, int flags)
{
	struct msghdr message = { .msg_iov = (struct iovec *)iov, .msg_iovlen = count };
	int fd = number(end);
	ssize_t got;

	if (!is_kernels(end))
		return shunt_stream_recv(engine_of(end), fd, sim_end_stream(end), iov, count, flags);
	got = sim_sys.recvmsg(fd, &message, flags);
	return got < 0 ? -errno : got;
}

static void check_bytes(struct sim_end *end, uint64_t bytes)
{
	struct sim_end *peer = sim_end_peer(end);
	const uint8_t *right = bytes_at(peer, end->received);
	uint64_t i = 0;

	if (end->received + bytes > peer->sent)
		sim_fail("%s: received %lu bytes, only %lu were sent", name(end), end->received + bytes,
			 peer->sent);
	if (end->eof && !end->shut_read)
		sim_fail("%s: %lu bytes after the end", name(end), bytes);
	if (!memcmp(buffer, right, bytes))
		return;
	while (buffer[i] == right[i])
		i++;
	sim_fail("%s: byte %lu is wrong (%lu of %lu received at once)", name(end), end->received + i, i,
		 bytes);
}

static void check_end(struct sim_end *end)
{
	struct sim_end *peer = sim_end_peer(end);
	bool ended = peer->life == SIM_CLOSED || peer->shut_write;

	if (end->shut_read || end->error)
		return;
	if (!ended)
		sim_fail("%s: end of stream, but the peer has not ended it", name(end));
	/* A process that was killed may have owed TCP more than its socket's buffer held. */
	if (end->received != peer->sent && !sim_world.dead[peer->which])
		sim_fail("%s: end of stream after %lu bytes of %lu", name(end), end->received, peer->sent);
}

/* A second look must not see less than a first. */
static void receive_peeked(struct sim_end *end, const struct iovec *iov, int count, ssize_t peeked)
{
	ssize_t got;

	check_bytes(end, peeked);
	memset(buffer, 0xee, peeked);
	got = do_receive(end, iov, count, MSG_DONTWAIT);
	if (got < peeked)
		sim_fail("%s: %zd bytes after a peek saw %zd", name(end), got, peeked);
	check_bytes(end, got);
	end->received += got;
	trace("%s: received %zd after the peek, now %lu", name(end), got, end->received);
}

/* Bytes that a link has carried of a stream that had lost one. */
static uint64_t carried_again(struct sim_end *end)
{
	struct shunt_stream *stream = sim_end_stream(end);

	return stream ? stream_carried_again(stream) : 0;
}

void sim_end_receive(struct sim_end *end, uint64_t most, bool must, int flags)
{
	uint64_t before = carried_again(end);
	struct iovec iov[5];
	ssize_t got;
	int count;

	if (most > MOST)
		most = MOST;
	count = cut(buffer, most, iov);
	got = do_receive(end, iov, count, flags | MSG_DONTWAIT);
	if (before && carried_again(end))
		sim_world.again += carried_again(end) - before;
	trace("%s: receive up to %lu at %lu, flags %x: %zd", name(end), most, end->received, flags, got);
	if (got > (ssize_t)most)
		sim_fail("%s: receive of %lu bytes returns %zd", name(end), most, got);
	if (still_retires(end))
		must = false;
	/* With a stalled device TCP's end may be seen before the link's, which it waits for. */
	if (got == -EAGAIN && must && !sim_world.faulty && !sim_world.killed && !sim_world.broken)
		sim_fail("%s: readable, but nothing is received", name(end));
	if (got <= 0 || (end->trusts_short && !end->told_end && got < (ssize_t)most))
		end->may_read = false;
	if (got > 0 && flags & MSG_PEEK) {
		receive_peeked(end, iov, count, got);
	} else if (got > 0) {
		if (!(flags & MSG_TRUNC))
			check_bytes(end, got);
		end->received += got;
	} else if (got == 0) {
		check_end(end);
		end->eof = true;
	} else if (got != -EAGAIN) {
		check_error(end, "receive", got);
	}
}

/* --- asking --- */

/* Only what is true may be said of an end. */
static void check_ready(struct sim_end *end, uint32_t ready)
{
	struct sim_end *peer = sim_end_peer(end);
	bool peer_ended = peer->life == SIM_CLOSED || peer->shut_write;
	bool fair = error_is_fair(end);

	if (ready & POLLERR && !fair)
		sim_fail("%s: an error is reported, there can be none", name(end));
	if (ready & POLLRDHUP && !fair && !peer_ended && !end->shut_read)
		sim_fail("%s: the peer's end is reported too early", name(end));
	if (ready & POLLHUP && !fair && !((peer_ended || end->shut_read) && end->shut_write))
		sim_fail("%s: a hang-up is reported, one direction lives", name(end));
}

/* poll's result must be what a call then finds. */
void sim_end_poll(struct sim_end *end)
{
	struct pollfd fd = { .fd = number(end),
			     .events = sim_below(4) | (sim_one_in(2) ? POLLIN : POLLOUT) |
				       (sim_one_in(4) ? POLLRDHUP : 0) };
	struct timespec patience = sim_patience();
	int n, events;

	if (fd.events & 1)
		fd.events |= POLLIN;
	events = fd.events;
	n = shunt_wait_poll(engine_of(end), &fd, 1, &patience, NULL);
	trace("%s: poll %x: %d, %x", name(end), fd.events, n, fd.revents);
	if (n < 0 || n != (fd.revents != 0) || fd.revents & ~(events | POLLERR | POLLHUP))
		sim_fail("%s: poll for %x returns %d with %x", name(end), events, n, fd.revents);
	check_ready(end, fd.revents);
	if (fd.revents & POLLOUT)
		sim_end_send(end, sim_size(MOST), true);
	if (fd.revents & POLLIN) {
		sim_end_receive(end, sim_size(MOST), true, 0);
	} else if (events & POLLIN && !(fd.revents & (POLLERR | POLLHUP)) && !sim_world.nonces && sim_one_in(2)) {
		/* A nonce that has just come makes what the link has brought readable: to who reads, at once. */
		uint64_t before = end->received;

		sim_end_receive(end, sim_size(MOST), false, 0);
		if (end->received != before)
			sim_fail("%s: not readable, but %lu bytes are received", name(end),
				 end->received - before);
	}
}

void sim_end_queues(struct sim_end *end)
{
	int unread, unsent, error;
	uint64_t before = end->received;

	if (is_kernels(end))
		return;
	unsent = shunt_stream_outq(engine_of(end), end->fd, sim_end_stream(end));
	error = shunt_stream_take_error(sim_end_stream(end));
	if (error)
		check_error(end, "SO_ERROR", -error);
	unread = shunt_stream_inq(engine_of(end), end->fd, sim_end_stream(end));
	trace("%s: %d bytes unread, %d unsent, error %d", name(end), unread, unsent, error);
	if (unread < 0 || end->received + unread > sim_end_peer(end)->sent)
		sim_fail("%s: FIONREAD says %d, %lu were sent", name(end), unread,
			 sim_end_peer(end)->sent - end->received);
	if (unsent < 0 || (uint64_t)unsent > end->sent + 1)
		sim_fail("%s: SIOCOUTQ says %d, %lu were sent", name(end), unsent, end->sent);
	sim_end_receive(end, MOST, unread > 0, 0);
	if (!unread && end->received > before)
		sim_fail("%s: FIONREAD says 0, but %lu bytes are received", name(end), end->received - before);
}

/* --- ending --- */

static void resets(struct sim_end *end)
{
	if (sim_end_peer(end)->sent > end->received)
		end->conn->reset_ok = true;
}

void sim_end_shutdown(struct sim_end *end, int how)
{
	int result;

	if (is_kernels(end))
		result = sim_sys.shutdown(end->fd, how) ? -errno : 0;
	else
		result = shunt_stream_shutdown(engine_of(end), end->fd, sim_end_stream(end), how);
	trace("%s: shutdown %d: %d", name(end), how, result);
	if (result == -ENOTCONN && (error_is_fair(end) || !end->conn->established)) {
		end->shut_read |= how != SHUT_WR;	/* as inet_shutdown() does */
		return;
	}
	if (result)
		sim_fail("%s: shutdown fails with error %d", name(end), -result);
	end->shut_write |= how != SHUT_RD;
	end->shut_read |= how != SHUT_WR;
	if (end->shut_write && end->shut_read)
		resets(end);
}

static void close_number(struct sim_end *end, int fd)
{
	shunt_file_closing(engine_of(end), fd);
	if (shunt_file(engine_of(end), fd))
		sim_fail("%s: its slot is still set", name(end));
	sim_fd_close(fd);
}

/* Any number may go first. */
void sim_end_close(struct sim_end *end)
{
	if (end->told_reset)	/* what TCP brought before it, or may bring yet: the link is faster; but not the same again */
		sim_end_receive(end, MOST, false, 0);
	trace("%s: close%s", name(end), end->twin >= 0 ? " one of two" : "");
	if (end->twin >= 0) {
		if (sim_one_in(2) && end->style != SIM_EPOLL) {
			int fd = end->fd;

			end->fd = end->twin;
			end->twin = fd;
		}
		close_number(end, end->twin);
		end->twin = -1;
		return;
	}
	if (!end->conn->established)
		end->conn->reset_ok = true;
	resets(end);
	if (sim_end_stream(end))
		sim_world.handed_on += stream_came_to_link(sim_end_stream(end));
	close_number(end, end->fd);
	end->life = SIM_CLOSED;
	end->watch_events = 0;
}

void sim_end_twin(struct sim_end *end)
{
	if (end->twin >= 0)
		return;
	end->twin = sim_fd_sock(&end->conn->sock[end->side]);
	shunt_file_duplicated(engine_of(end), end->fd, end->twin);
	trace("%s: dup %d", name(end), end->twin);
}
