/* SPDX-License-Identifier: MIT */
/* Programs that use epoll: level, edge, one-shot; they act only on what they are told. */
#include <errno.h>
#include <sys/epoll.h>
#include "core/wait/epset.h"
#include "tests/sim/born.h"
#include "tests/sim/sim.h"

static void control(struct sim_end *end, int op)
{
	struct epoll_event event = { .events = end->watch_events, .data.ptr = end };
	int result = shunt_epset_ctl(sim_world.engine[end->which], sim_world.epfd[end->which], op,
				     end->fd, &event);

	trace("connection %d end %d: epoll_ctl %d for %x: %d", (int)(end->conn - sim_world.conn),
	      end->side, op, end->watch_events, result);
	if (result)
		sim_fail("epoll_ctl %d fails with error %d", op, -result);
}

void sim_watch_add(struct sim_end *end)
{
	end->watch_events = EPOLLIN | (sim_one_in(2) ? EPOLLRDHUP : 0) |
			    (end->goal || sim_one_in(4) ? EPOLLOUT : 0) |
			    (sim_one_in(2) ? EPOLLET : 0) | (sim_one_in(4) && !sim_avoids("oneshot") ? EPOLLONESHOT : 0);
	end->trusts_short = end->watch_events & EPOLLET && end->watch_events & EPOLLRDHUP && sim_one_in(2);
	end->told_end = false;
	control(end, EPOLL_CTL_ADD);
}

void sim_watch_drop(struct sim_end *end)
{
	control(end, EPOLL_CTL_DEL);
	end->spent = false;
}

/* Again from the start, in another mode perhaps: what is ready now must be reported again. */
void sim_watch_rearm(struct sim_end *end)
{
	end->spent = false;
	if (sim_one_in(3)) {
		control(end, EPOLL_CTL_DEL);
		sim_watch_add(end);
		return;
	}
	end->watch_events &= ~(EPOLLET | EPOLLONESHOT);
	end->watch_events |= EPOLLIN | (end->sent < end->goal && !end->shut_write ? EPOLLOUT : 0) |
			     (sim_one_in(2) ? EPOLLET : 0) | (sim_one_in(4) && !sim_avoids("oneshot") ? EPOLLONESHOT : 0);
	end->trusts_short = end->watch_events & EPOLLET && end->watch_events & EPOLLRDHUP && sim_one_in(2);
	end->told_end = false;
	control(end, EPOLL_CTL_MOD);
}

static bool ended(struct sim_end *end)
{
	return end->life == SIM_CLOSED || end->shut_write;
}

static void check_fair(struct sim_end *end, uint32_t ready)
{
	bool fair = end->conn->reset_ok || end->error || sim_world.killed;
	bool peer_ended = ended(sim_end_peer(end)) || end->shut_read;

	if (ready & ~(end->watch_events | EPOLLERR | EPOLLHUP))
		sim_fail("epoll reports %x, asked for %x", ready, end->watch_events);
	if (end->spent)
		sim_fail("a one-shot registration fires twice");
	if (ready & EPOLLERR && !fair)
		sim_fail("epoll reports an error, there can be none");
	if (ready & EPOLLRDHUP && !fair && !peer_ended)
		sim_fail("epoll reports the peer's end too early");
	if (ready & EPOLLHUP && !fair && !(peer_ended && end->shut_write))
		sim_fail("epoll reports a hang-up, one direction lives");
}

/* An edge that is told is used up at once or later, but until the call finds nothing. */
static void act(struct sim_end *end, uint32_t ready, bool must)
{
	bool keep = end->watch_events & (EPOLLET | EPOLLONESHOT);

	end->told_end |= ready & (EPOLLRDHUP | EPOLLHUP | EPOLLERR);
	if (ready & (EPOLLIN | EPOLLERR | EPOLLHUP)) {
		end->may_read = true;
		sim_end_receive(end, sim_size(65536), ready & EPOLLIN && must, 0);
	}
	if (ready & EPOLLOUT && end->life == SIM_OPEN && !end->shut_write) {
		end->may_write = true;
		sim_end_send(end, sim_size(65536), must);
	}
	if (!keep)
		end->may_read = end->may_write = false;
}

static bool is_second(const struct epoll_event *events, int i)
{
	for (int j = 0; j < i; j++)
		if (events[j].data.ptr == events[i].data.ptr)
			return true;
	return false;
}

void sim_watch_wait(int which)
{
	struct shunt_engine *engine = sim_world.engine[which];
	struct epoll_event events[SIM_EVENTS];
	struct shunt_epset *set = (struct shunt_epset *)shunt_file(engine, sim_world.epfd[which]);
	struct timespec patience = sim_patience();
	int n;

	set->kernel_checked = 0;	/* by the cycle counter otherwise, which no seed knows */
	n = shunt_epset_wait(engine, sim_world.epfd[which], events, sim_between(1, SIM_EVENTS), &patience, NULL);
	trace("engine %d: epoll_wait: %d", which, n);
	if (n < 0)
		sim_fail("epoll_wait fails with error %d", -n);
	for (int i = 0; i < n; i++) {
		struct sim_end *end = events[i].data.ptr;

		if (sim_born_told(which, end, events[i].events))
			continue;
		if (is_second(events, i) && !sim_avoids("twice"))
			sim_fail("one epoll_wait reports a descriptor twice");
		trace("connection %d end %d: epoll reports %x", (int)(end->conn - sim_world.conn),
		      end->side, events[i].events);
		if (end->life != SIM_OPEN || end->which != which || !end->watch_events)
			sim_fail("epoll reports %x for a descriptor that is not there", events[i].events);
		check_fair(end, events[i].events);
		if (end->watch_events & EPOLLONESHOT)
			end->spent = true;
		act(end, events[i].events, !is_second(events, i));
	}
}
