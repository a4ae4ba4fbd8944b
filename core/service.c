#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/abroad.h"
#include "core/deadline.h"
#include "core/expiry.h"
#include "core/deaf.h"
#include "core/keepalive.h"
#include "core/leave.h"
#include "core/limits.h"
#include "core/linger.h"
#include "core/overflow.h"
#include "core/owed.h"
#include "core/polling.h"
#include "core/proof.h"
#include "core/roster.h"
#include "core/service.h"
#include "core/shared.h"
#include "core/thread.h"
#include "core/unclaimed.h"
#include "core/unread.h"
#include "core/uring.h"
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

#define EVENTS 64
#define STACK_BYTES (256 * 1024)
#define SERVED_NS 20000000ull	/* that an ending process gives other threads to post what they have in hand */
#define UNPROVEN_MS 10		/* until there may be a descriptor to wait for a nonce with */
#define REFUSED_MS 1		/* until a WR is offered again that a QP did not take */
#define LASTING_USES 16		/* of a connection, after which it is expected to last */
#define LASTING_BYTES 65536	/* and the same in bytes */
#define BRIEF_USES 5		/* are all that most short ones have: of more it counts how old it is */
#define GATHER_NS 200000000ull	/* tcp(7): a cork holds bytes for at most 200 ms */
#define GATHER_LOOK 50000000ull	/* ns between two looks at who gathers, and so between two wake-ups for it */

int shunt_service_add(struct shunt_service *service, int fd, struct shunt_source *source)
{
	bool write = source->kind == SHUNT_SOURCE_LINK && ((struct shunt_link *)source)->wants_write;
	struct epoll_event event = { .events = EPOLLIN | (write ? EPOLLOUT : 0), .data.ptr = source };

	return service->engine->sys->epoll_ctl(service->epfd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

void shunt_service_hand_over(struct shunt_service *service, int fd, struct shunt_source *source)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = source };

	service->engine->sys->epoll_ctl(service->epfd, EPOLL_CTL_MOD, fd, &event);
}

int shunt_service_epoll(struct shunt_engine *engine)
{
	return engine->service->epfd;
}

void shunt_service_want_write(struct shunt_link *link, bool on)
{
	struct shunt_service *service = link->engine->service;
	struct epoll_event event = { .events = EPOLLIN | (on ? EPOLLOUT : 0), .data.ptr = &link->source };

	if (link->wants_write == on || link->channel.fd < 0)
		return;
	link->wants_write = on;
	link->engine->sys->epoll_ctl(service->epfd, EPOLL_CTL_MOD, link->channel.fd, &event);
}

void shunt_service_forget(struct shunt_link *link)
{
	link->engine->sys->epoll_ctl(link->engine->service->epfd, EPOLL_CTL_DEL, link->channel.fd, NULL);
}

void shunt_service_wake(struct shunt_engine *engine)
{
	struct shunt_service *service = engine->service;
	uint64_t one = 1;
	int saved = errno;

	if (!service || atomic_exchange(&service->woken, true))
		return;
	if (engine->sys->write(service->wake_fd, &one, sizeof(one)) < 0)
		atomic_store(&service->woken, false);
	errno = saved;
}

void shunt_service_watch(struct shunt_engine *engine)
{
	struct shunt_service *service = engine->service;

	if (service && !atomic_exchange(&service->watching, true))
		shunt_service_wake(engine);
}

void shunt_service_retry(struct shunt_engine *engine)
{
	struct shunt_service *service = engine->service;

	shunt_service_watch(engine);
	if (service && atomic_load(&service->resting))
		shunt_service_wake(engine);
}

/* --- what a round looks at --- */

static void take_offers(struct shunt_service *service)
{
	struct shunt_stream *stream, *next;

	shunt_lock_take(&service->inbox_lock);
	stream = service->offers;
	service->offers = NULL;
	shunt_lock_leave(&service->inbox_lock);
	for (; stream; stream = next) {
		next = stream->next_inbox;
		shunt_claim_offer(service, stream);
	}
}

void shunt_service_add_link(struct shunt_service *service, struct shunt_link *link)
{
	link->next = service->links;
	service->links = link;
	if (shunt_service_add(service, link->channel.fd, &link->source))
		shunt_link_kill(link, "out of memory");
}

/* A peer's process has come to a rendezvous. */
static void welcome(struct shunt_service *service, struct shunt_rendezvous *rendezvous)
{
	struct shunt_engine *engine = service->engine;
	struct shunt_channel channel;
	struct shunt_link *link;
	int fd;

	while ((fd = shunt_rendezvous_accept(engine, rendezvous->fd)) >= 0) {
		if (!shunt_limits_link(service, fd)) {
			shunt_private_close(engine, fd);
			continue;
		}
		shunt_porter_trust(engine, fd);
		shunt_channel_init(&channel, engine, SHUNT_CHANNEL_UNIX, fd);
		link = shunt_link_create(engine, &channel, false);
		if (link)
			shunt_service_add_link(service, link);
	}
	if (fd == -EPERM)
		shunt_log(SHUNT_LOG_INFO, "rendezvous %s: another user's process came, and is not let in", rendezvous->name.text + 1);
}

void shunt_service_bury(struct shunt_service *service)
{
	for (struct shunt_link **p = &service->links; *p;) {
		struct shunt_link *link = *p;

		if (atomic_load(&link->distrusted) || shunt_failover_over(link) ||
		    (atomic_load(&link->failed) && atomic_load(&link->state) == SHUNT_LINK_HELLO))
			shunt_link_kill(link, link->failure ? link->failure : "its streams have gone over to TCP");
		else if (atomic_load(&link->failed) && atomic_load(&link->state) == SHUNT_LINK_UP)
			shunt_failover_begin(link, link->failure ? link->failure : "a queue pair failed");
		if (atomic_load(&link->state) == SHUNT_LINK_BROKEN && !link->seated)
			shunt_link_strip(link);
		if (atomic_load(&link->state) == SHUNT_LINK_DEAD && !link->seated) {
			*p = link->next;
			shunt_keepalive_forget(link);
			shunt_link_destroy(link);
			continue;
		}
		p = &link->next;
	}
}

/* Senders whose HANDBACK was on its way may go on over TCP; seats that were refused are let go. */
static void tell_settled(struct shunt_service *service)
{
	for (struct shunt_link *link = service->links; link; link = link->next) {
		for (uint32_t i = 0; i < link->lane_count; i++) {
			struct shunt_lane *lane = &link->lanes[i];

			if (!atomic_exchange(&lane->unsettled, false) || !shunt_lane_settled(lane))
				continue;
			shunt_link_tell(link, EPOLLOUT | SHUNT_READY_SETTLED);
			shunt_claim_settled(link, lane);
			shunt_claim_link_up(link);	/* it may have had to show that it works */
		}
	}
}

/* One that announced more long ago: what it has gathered is sent. Others are looked at again. */
static int end_gathering(struct shunt_stream *stream, void *arg)
{
	struct shunt_engine *engine = stream->engine;
	struct shunt_tx *tx = &stream->tx;

	(void)arg;
	if (!atomic_load(&tx->gathering))
		return 0;
	if (shunt_now(engine) - atomic_load(&tx->gathered_at) >= GATHER_NS && shunt_lock_try(&tx->lock)) {
		shunt_stream_push(stream);
		atomic_store(&tx->gathering, false);
		shunt_lock_leave(&tx->lock);
	} else {
		atomic_store(&engine->service->gathering, true);
	}
	return 0;
}

/* Milliseconds until the next look; -1: nobody gathers. */
static int gather_tick(struct shunt_service *service)
{
	struct shunt_engine *engine = service->engine;
	uint64_t now = shunt_now(engine);

	if (!atomic_load(&service->gathering))
		return -1;
	if (service->gather_look && now >= service->gather_look) {
		service->gather_look = 0;
		atomic_store(&service->gathering, false);
		shunt_lock_take(&engine->streams_lock);
		shunt_streams_each(engine, end_gathering, NULL);
		shunt_lock_leave(&engine->streams_lock);
		if (!atomic_load(&service->gathering))
			return -1;
	}
	if (!service->gather_look)
		service->gather_look = now + GATHER_LOOK;
	return shunt_narrow_ms(service->gather_look - now);
}

static bool any_stalled(struct shunt_service *service)
{
	for (struct shunt_link *link = service->links; link; link = link->next)
		for (uint32_t i = 0; atomic_load(&link->state) == SHUNT_LINK_UP && i < link->lane_count; i++)
			if (shunt_lane_stalled(&link->lanes[i]) || shunt_keepalive_waits(&link->lanes[i]))
				return true;
	return shunt_retire_waits(service);
}

static void hear(struct shunt_service *service, struct epoll_event *event)
{
	struct shunt_source *source = event->data.ptr;
	struct shunt_device *device;
	struct shunt_link *link;

	if (shunt_porter_shuts(service, source))
		return;

	switch (source->kind) {
	case SHUNT_SOURCE_WAKE:
		shunt_parker_drain(service->engine, service->wake_fd);
		atomic_store(&service->woken, false);
		break;
	case SHUNT_SOURCE_RENDEZVOUS:
		welcome(service, shunt_source_owner(source, struct shunt_rendezvous, source));
		break;
	case SHUNT_SOURCE_HAVE:
		shunt_have_welcome(service, shunt_source_owner(source, struct shunt_rendezvous, have_source));
		break;
	case SHUNT_SOURCE_TELLER:
		shunt_have_hear(service, (struct shunt_teller *)source);
		break;
	case SHUNT_SOURCE_OWNER:
		shunt_join_hear(service, shunt_source_owner(source, struct shunt_rendezvous, owner_source));
		break;
	case SHUNT_SOURCE_STATISTICS:
		shunt_stats_serve(service->engine, service->statistics_fd);
		break;
	case SHUNT_SOURCE_ADMIN:
		shunt_admin_welcome(service);
		break;
	case SHUNT_SOURCE_COMMAND:
		shunt_admin_hear(service, source);
		break;
	case SHUNT_SOURCE_RIGHTS:
		shunt_rights_serve(service->engine, service->rights_fd);
		break;
	case SHUNT_SOURCE_STREAM:
		shunt_owed_moves(service, shunt_source_owner(source, struct shunt_stream, source), event->events);
		break;
	case SHUNT_SOURCE_PROOF:
		shunt_proof_heard(service->engine, shunt_source_owner(source, struct shunt_stream, proof_source));
		break;
	case SHUNT_SOURCE_CM:
	case SHUNT_SOURCE_GATE:
		shunt_abroad_hear(service);
		break;
	case SHUNT_SOURCE_DEVICE:
		device = shunt_source_owner(source, struct shunt_device, source);
		device->kind->hear(device);
		break;
	case SHUNT_SOURCE_COMEBACK:
		shunt_comeback_hear(service, (struct shunt_comeback *)source);
		break;
	case SHUNT_SOURCE_LINK:
		link = shunt_source_owner(source, struct shunt_link, source);
		if (event->events & EPOLLOUT)
			shunt_link_writable(link);
		if (event->events & (EPOLLIN | EPOLLHUP | EPOLLERR))
			shunt_link_readable(link);
		break;
	}
}

/* Of two time-outs in ms; negative: none. */
static int sooner(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* What arrives must be acted upon, and perhaps the program never polls again. */
static bool must_poll(struct shunt_service *service)
{
	return any_stalled(service) || atomic_load(&service->refusing);
}

/* A QP that takes no WR now may take it later, and says nothing when. */
static bool was_refused(struct shunt_service *service)
{
	bool refused = false;

	for (struct shunt_link *link = service->links; link; link = link->next)
		for (uint32_t i = 0; i < link->lane_count; i++)
			refused |= atomic_exchange(&link->lanes[i].refused, false);
	return refused;
}

/*
 * A lane has bytes that wait for credit, and perhaps nobody else polls (PF-21): sleep on the
 * completion channel as well.
 */
static void await_completion(struct shunt_service *service, int timeout_ms)
{
	struct shunt_engine *engine = service->engine;
	struct shunt_group *group = &engine->group;
	struct pollfd fds[2] = { { .fd = service->epfd, .events = POLLIN },
				 { .fd = atomic_load(&group->bell), .events = POLLIN } };
	struct timespec timeout;

	shunt_lock_take(&group->lock);
	group->service_asleep = true;
	shunt_group_arm(engine);
	shunt_lock_leave(&group->lock);
	shunt_group_poll_fully(engine);
	for (struct shunt_link *link = service->links; link; link = link->next)
		for (uint32_t i = 0; i < link->lane_count; i++)
			shunt_lane_kick(&link->lanes[i]);
	atomic_store(&service->resting, true);
	if (was_refused(service)) {
		atomic_store(&service->resting, false);
		timeout_ms = sooner(timeout_ms, REFUSED_MS);
	}
	timeout = (struct timespec) { timeout_ms / 1000, timeout_ms % 1000 * 1000000 };
	if (must_poll(service) &&
	    engine->sys->ppoll(fds, 2, timeout_ms < 0 ? NULL : &timeout, NULL) > 0 && fds[1].revents)
		shunt_group_take_event(engine);
	atomic_store(&service->resting, false);
	shunt_lock_take(&group->lock);
	group->service_asleep = false;
	shunt_lock_leave(&group->lock);
	shunt_group_poll_fully(engine);
}

/* A queue pair has failed, and what it had is not TCP's yet. */
static bool is_breaking(struct shunt_engine *engine)
{
	bool breaking = atomic_load(&engine->breaking);

	shunt_lock_take(&engine->group.lock);
	for (struct shunt_lane *lane = engine->group.lanes; lane; lane = lane->next_in_group)
		breaking |= atomic_load(&lane->failed) && atomic_load(&lane->link->state) == SHUNT_LINK_UP;
	shunt_lock_leave(&engine->group.lock);
	return breaking;
}

/* That a slow device is through, or a failover over, is told to the service thread only. */
static uint64_t look_again(struct shunt_engine *engine, uint64_t until)
{
	uint64_t soon = shunt_now(engine) + 1000000;

	return (engine->config.soft_model[0] || is_breaking(engine)) && soon < until ? soon : until;
}

/* Something is still to be posted or written. A thread that is ended by a signal's handler may itself be serving. */
static bool unfinished(struct shunt_service *service, uint64_t served_until)
{
	bool served, idle = shunt_roster_idle(service->engine, &served);

	while (served && shunt_now(service->engine) < served_until) {
		sched_yield();
		idle = shunt_roster_idle(service->engine, &served);
	}
	return !idle || atomic_load(&service->resends) || shunt_retire_waits(service) ||
	       is_breaking(service->engine);
}

void shunt_service_drain(struct shunt_engine *engine, uint64_t until)
{
	uint64_t served_until = shunt_now(engine) + SERVED_NS;
	struct shunt_group *group = &engine->group;
	struct pollfd fds[2] = { { .events = POLLIN }, { .fd = -1, .events = POLLIN } };
	struct timespec left;

	while (engine->service && unfinished(engine->service, served_until) && shunt_now(engine) < until) {
		fds[0].fd = atomic_load(&group->bell);
		if (atomic_load(&engine->service->resends))
			fds[1].fd = engine->service->epfd;
		shunt_lock_take(&group->lock);
		shunt_group_arm(engine);
		shunt_lock_leave(&group->lock);
		shunt_group_poll_fully(engine);
		if (unfinished(engine->service, served_until) &&
		    engine->sys->ppoll(fds, 2, shunt_deadline_left(engine, look_again(engine, until), &left),
				       NULL) > 0 &&
		    fds[0].revents)
			shunt_group_take_event(engine);
	}
}

struct unproven {
	struct shunt_stream *streams[64];
	int count;
};

/* Or its end waits for a descriptor. */
static int find_unproven(struct shunt_stream *stream, void *arg)
{
	struct unproven *found = arg;

	if ((atomic_load(&stream->rx.proof) != SHUNT_UNPROVEN || atomic_load(&stream->rx.boundary) == SHUNT_NEVER) &&
	    !(atomic_load(&stream->tx.lingers) && atomic_load(&stream->tx.end_fd) < 0))
		return 0;
	stream->holds++;
	found->streams[found->count++] = stream;
	return found->count == 64;
}

static void prove(struct shunt_service *service)
{
	struct shunt_engine *engine = service->engine;
	struct unproven found = { .count = 0 };

	shunt_lock_take(&engine->streams_lock);
	shunt_streams_each(engine, find_unproven, &found);
	shunt_lock_leave(&engine->streams_lock);
	for (int i = 0; i < found.count; i++) {
		struct shunt_stream *stream = found.streams[i];

		shunt_lock_take(&stream->rx.lock);
		shunt_track_settle(engine, stream);
		shunt_lock_leave(&stream->rx.lock);
		shunt_linger_again(stream);
		shunt_streams_unhold(stream);
	}
	if (found.count == 64 && !atomic_load(&service->unproven))	/* else there are no descriptors for more */
		shunt_service_prove(engine);
}

void shunt_service_prove(struct shunt_engine *engine)
{
	atomic_store(&engine->service->proving, true);
	shunt_service_wake(engine);
}

void shunt_service_prove_later(struct shunt_engine *engine)
{
	atomic_store(&engine->service->unproven, true);
	shunt_service_wake(engine);
}

void shunt_service_gather(struct shunt_engine *engine)
{
	if (!atomic_exchange(&engine->service->gathering, true))
		shunt_service_wake(engine);
}

/* What is to be done without being told by a descriptor. After how long there is more, at most `timeout_ms`. */
static int work(struct shunt_service *service, int timeout_ms)
{
	struct shunt_engine *engine = service->engine;
	int due;

	if (atomic_exchange(&service->proving, false)) {
		prove(service);
		shunt_rights_proven(engine);
	}
	if (atomic_exchange(&service->listening, false) && !atomic_load(&service->leaving))
		shunt_abroad_listen(service);
	if (!atomic_load(&service->leaving))
		take_offers(service);
	shunt_porter_opens(service);
	due = sooner(shunt_claim_tick(service), shunt_abroad_tick(service));
	due = sooner(due, sooner(shunt_listen_tick(service), shunt_unclaimed_tick(service)));
	due = sooner(due, shunt_keepalive_tick(service));
	due = sooner(due, sooner(shunt_expiry_tick(service), shunt_proof_tick(service)));
	due = sooner(due, shunt_overflow_tick(service));
	due = sooner(due, sooner(shunt_join_tick(service), shunt_have_tick(service)));
	due = sooner(due, shunt_limits_tick(service));
	shunt_retire_tick(service);
	shunt_unread_tick(service);
	tell_settled(service);
	shunt_service_bury(service);
	if (shunt_streams_reap(engine))
		shunt_service_bury(service);	/* one may have lost its last stream, and perhaps nothing wakes us again */
	timeout_ms = sooner(timeout_ms, due);
	timeout_ms = sooner(timeout_ms, sooner(shunt_leave_tick(service), shunt_deaf_tick(service)));
	timeout_ms = sooner(timeout_ms, shunt_comeback_tick(service));
	timeout_ms = sooner(timeout_ms, gather_tick(service));
	timeout_ms = sooner(timeout_ms, shunt_trim_tick(service));
	timeout_ms = sooner(timeout_ms, shunt_mock_tick(service));
	if (atomic_exchange(&service->unproven, false)) {
		atomic_store(&service->proving, true);
		timeout_ms = sooner(timeout_ms, UNPROVEN_MS);
	}
	return sooner(timeout_ms, shunt_fault_tick(engine));
}

void shunt_service_step(struct shunt_engine *engine, int timeout_ms)
{
	struct shunt_service *service = engine->service;
	struct epoll_event events[EVENTS];
	int n;

	shunt_lock_take(&engine->seats_lock);
	timeout_ms = work(service, timeout_ms);
	shunt_lock_leave(&engine->seats_lock);
	atomic_store(&service->watching, false);
	if (engine->group.open && must_poll(service)) {
		atomic_store(&service->watching, true);
		await_completion(service, timeout_ms);
		timeout_ms = 0;
	}
	n = engine->sys->epoll_pwait(service->epfd, events, EVENTS, timeout_ms, NULL);
	shunt_lock_take(&engine->rendezvous_lock);	/* what was written there before it was registered is seen now */
	shunt_lock_leave(&engine->rendezvous_lock);
	shunt_lock_take(&engine->seats_lock);
	for (int i = 0; i < n; i++)
		hear(service, &events[i]);
	shunt_lock_leave(&engine->seats_lock);
}

/*
 * A fork's child may get the stack on which its parent's thread was at work. AddressSanitizer, to which plain programs
 * do not tell their threads, still has the marks of that one's calls there.
 */
static void take_stack(void)
{
#if defined(__SANITIZE_ADDRESS__)
	__asan_handle_no_return();
#endif
}

static void *run(void *arg)
{
	struct shunt_engine *engine = arg;

	take_stack();
	engine->service->tid = (pid_t)syscall(SYS_gettid);
	if (shunt_polling(engine)->spins)
		shunt_sleepcost_partner(&engine->service->sleepcost);
	while (!atomic_load(&engine->service->stopping))
		shunt_service_step(engine, -1);
	return NULL;
}

/* --- life --- */

void shunt_service_close(struct shunt_service *service)
{
	struct shunt_engine *engine = service->engine;

	shunt_private_close(engine, service->statistics_fd);
	shunt_admin_close(service);
	shunt_private_close(engine, service->rights_fd);
	service->statistics_fd = service->admin.fd = service->rights_fd = -1;
	service->threaded = false;
	service->ended = true;
}

static void unmake(struct shunt_engine *engine, struct shunt_service *service)
{
	shunt_service_close(service);
	shunt_private_close(engine, service->epfd);
	shunt_private_close(engine, service->wake_fd);
	free(service);
}

/*
 * An error: a child of a fork could not have back what is on a link. (Simulated engines share a
 * name.) Process ids are those of a namespace, names those of the network.
 */
static int open_names(struct shunt_service *service)
{
	struct shunt_engine *engine = service->engine;

	service->statistics_fd = shunt_stats_listen(engine);
	shunt_admin_open(service);
	service->rights_fd = shunt_rights_listen(engine);
	if (service->rights_fd < 0 && !engine->manual)
		return service->rights_fd;
	if (service->rights_fd >= 0 && shunt_service_add(service, service->rights_fd, &service->rights_source))
		return -ENOMEM;
	if (service->statistics_fd >= 0)
		shunt_service_add(service, service->statistics_fd, &service->statistics_source);
	return 0;
}

/* NULL: none, and why. */
static struct shunt_service *make(struct shunt_engine *engine, enum shunt_reason *reason)
{
	struct shunt_service *service = calloc(1, sizeof(*service));
	int result;

	*reason = SHUNT_REASON_NO_THREAD;
	if (!service)
		return NULL;
	service->engine = engine;
	service->unclaimed = true;	/* there may be some already */
	if (!engine->send_buffer)
		engine->send_buffer = shunt_overflow_bound(engine);
	service->wake_source.kind = SHUNT_SOURCE_WAKE;
	service->statistics_source.kind = SHUNT_SOURCE_STATISTICS;
	service->rights_source.kind = SHUNT_SOURCE_RIGHTS;
	service->process.fd = service->process.have_fd = service->process.owner_fd = -1;
	service->epfd = shunt_private_make(engine, engine->sys->epoll_create1(EPOLL_CLOEXEC));
	service->wake_fd = shunt_private_make(engine, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	result = open_names(service);
	if (result == -EADDRINUSE)
		*reason = SHUNT_REASON_NAME_TAKEN;
	if (result || !shunt_shared_prepare(engine) || service->epfd < 0 || service->wake_fd < 0 ||
	    shunt_service_add(service, service->wake_fd, &service->wake_source)) {
		unmake(engine, service);
		return NULL;
	}
	return service;
}

/* The program's signals are the program's threads' business. */
static bool start_thread(struct shunt_service *service)
{
	pthread_attr_t attr;
	sigset_t all, before;
	int failed;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&service->thread, &attr, run, service->engine);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	service->threaded = !failed;
	if (!failed && shunt_polling(service->engine)->spins && !service->engine->times_left)
		service->engine->group.sleep_cost = shunt_sleepcost_measure(service->engine, &service->sleepcost);
	return !failed;
}

/* Once more, in what a former thread has left (leave.c). */
static bool revive(struct shunt_service *service)
{
	atomic_store(&service->leaving, false);
	atomic_store(&service->stopping, false);
	service->leave_by = 0;
	service->links_left = false;
	service->deaf = 0;
	service->unclaimed = true;
	if (open_names(service) || (!service->engine->manual && !start_thread(service)))
		shunt_service_close(service);
	else
		service->ended = false;
	return !service->ended;
}

/* service_lock held. Each is said once. */
static void go_without(struct shunt_engine *engine, enum shunt_reason reason)
{
	if (engine->no_service != reason)
		shunt_log(reason == SHUNT_REASON_CONFINED ? SHUNT_LOG_INFO : SHUNT_LOG_WARN, "connections stay on TCP: %s",
			  shunt_reason_text(reason));
	engine->no_service = reason;
}

bool shunt_service_start(struct shunt_engine *engine)
{
	enum shunt_reason reason = SHUNT_REASON_NO_THREAD;
	struct shunt_service *service;
	int saved = errno;

	shunt_lock_take(&engine->service_lock);
	service = engine->service;
	if (shunt_leave_is_due(engine)) {
		service = NULL;
	} else if (service && service->ended) {
		if (!revive(service))
			service = NULL;
	} else if (!service && shunt_engine_is_confined()) {
		go_without(engine, SHUNT_REASON_CONFINED);
	} else if (!service && !engine->finished) {
		service = make(engine, &reason);
		engine->service = service;
		if (service && !engine->manual && !start_thread(service)) {
			engine->service = NULL;
			unmake(engine, service);
			service = NULL;
		}
		if (!service)
			go_without(engine, reason);
	}
	shunt_lock_leave(&engine->service_lock);
	errno = saved;
	return service != NULL;
}

/*
 * It is more than a query and its answer, which are over before a claim has been answered, and need not ask for the time.
 * Of threads that use it at once one may go uncounted.
 */
static bool lasts(struct shunt_engine *engine, struct shunt_stream *stream)
{
	uint32_t uses = atomic_load_explicit(&stream->uses, memory_order_relaxed);

	if (uses < LASTING_USES)
		atomic_store_explicit(&stream->uses, uses + 1, memory_order_relaxed);
	return uses >= LASTING_USES || atomic_load(&stream->rx.head) + stream->tx.offset >= LASTING_BYTES ||
	       (uses >= BRIEF_USES && shunt_now(engine) - stream->born >= engine->config.claim_ms * 1000000 / 4);
}

void shunt_service_offer(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_service *service;
	/* Three processes have to speak before somebody else's claim reaches us, and perhaps a link is made for this alone. */
	bool elsewhere = stream->role == SHUNT_ACCEPTOR && stream->rendezvous && stream->rendezvous->fd < 0;

	if (atomic_load(&stream->state) != SHUNT_CANDIDATE)
		return;
	if (!atomic_load(&stream->touched))
		atomic_store(&stream->touched, true);
	if (stream->slot && !shunt_streams_ours(engine, stream))
		return;
	/* Not now: so it is looked at again when the program uses it the next time. */
	if (elsewhere && (!atomic_load(atomic_load(&stream->rendezvous->wanted)) ||
			  atomic_load(&stream->rendezvous->alone) || !lasts(engine, stream)))
		return;
	if (stream->role == SHUNT_CONNECTOR && shunt_brief_expected(engine, stream) && !lasts(engine, stream))
		return;
	if (atomic_exchange(&stream->used, true))
		return;
	if (atomic_load(&engine->uring) == SHUNT_URING_RULES) {
		shunt_streams_plain(engine, stream, SHUNT_REASON_URING);
		return;
	}
	if (stream->role == SHUNT_ACCEPTOR && !elsewhere &&
	    (!engine->service || !atomic_load(&engine->service->parked_count)))
		return;
	if (!shunt_service_start(engine)) {
		shunt_streams_plain(engine, stream, shunt_leave_is_due(engine) ? shunt_leave_reason(engine) :
				    engine->no_service ? engine->no_service : SHUNT_REASON_NO_THREAD);
		return;
	}
	service = engine->service;
	shunt_streams_hold(stream);
	shunt_lock_take(&service->inbox_lock);
	stream->next_inbox = service->offers;
	service->offers = stream;
	shunt_lock_leave(&service->inbox_lock);
	shunt_service_wake(engine);
}

void shunt_service_refuse(struct shunt_engine *engine, struct shunt_stream *stream, bool on)
{
	if (stream->refusing == on)
		return;
	stream->refusing = on;
	if (on)
		atomic_fetch_add(&engine->service->refusing, 1);
	else
		atomic_fetch_sub(&engine->service->refusing, 1);
	shunt_service_watch(engine);
}

/* In a fork's child: the thread is not there, its descriptors are the parent's. */
void shunt_service_abandon(struct shunt_engine *engine)
{
	struct shunt_service *service = engine->service;

	if (!service)
		return;
	engine->service = NULL;
	shunt_private_close(engine, service->epfd);
	shunt_private_close(engine, service->wake_fd);
	shunt_private_close(engine, service->statistics_fd);
	shunt_admin_close(service);
	shunt_private_close(engine, service->rights_fd);
	shunt_comeback_forget(service);
	shunt_private_close(engine, service->process.fd);
	shunt_have_abandon(service);
	shunt_listen_abandon(engine);
	shunt_abroad_forget(service);
	for (struct shunt_link *link = service->links; link; link = link->next)
		shunt_private_close(engine, link->channel.fd);
}
