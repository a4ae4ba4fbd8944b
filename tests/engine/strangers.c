/* SPDX-License-Identifier: MIT */
/* Strangers at a name of ours, which do not behave as peers. */
#include "tests/engine/bed.h"
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "core/device/soft/device.h"
#include "core/peer/limits.h"
#include "core/peer/listen.h"
#include "core/service.h"

static int accepts;	/* that were tried in vain */
static int shortage;	/* why; 0: they are not hindered */

static int hooked_accept(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	if (!shortage)
		return accept4(fd, address, length, flags);
	accepts++;
	errno = shortage;
	return -1;
}

static void hook_accepts(int error)
{
	static struct shunt_sys sys;

	if (engines[1]->sys != &sys) {
		sys = *engines[1]->sys;
		sys.accept4 = hooked_accept;
		shunt_engine_surround(engines[1], &sys);
	}
	shortage = error;
	accepts = 0;
}

/* A stranger at the rendezvous of the accepting end. */
static int come(void)
{
	const struct shunt_name *name = &engines[1]->rendezvous->name;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(address.sun_path, name->text, name->length);
	assert_int_equal(engines[1]->sys->connect(fd, (struct sockaddr *)&address,
						  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + name->length)), 0);
	return fd;
}

static int links_of(int engine)
{
	int count = 0;

	for (struct shunt_link *link = engines[engine]->service->links; link; link = link->next)
		count++;
	return count;
}

static void step_often(void)
{
	for (int i = 0; i < 100; i++)
		shunt_service_step(engines[1], 0);
}

/* It is tried again now and then, not all the time; and then whoever has waited is let in. */
void without_descriptors_the_service_rests(void **state)
{
	static const int errors[] = { EMFILE, ENFILE, ENOMEM };
	struct shunt_config config = small_config(HYBRID);
	int stranger, before;

	(void)state;
	make_bed(&config, 1);
	before = links_of(1);
	for (int i = 0; i < 3; i++) {
		hook_accepts(errors[i]);
		stranger = come();
		step_often();
		assert_int_equal(accepts, 1);
		pair_skew += 100000000;
		step_often();
		assert_int_equal(accepts, 2);
		hook_accepts(0);
		pair_skew += 100000000;
		step_often();
		assert_int_equal(links_of(1), before + 1);
		close(stranger);
		step_often();
		assert_int_equal(links_of(1), before);
	}
	end_bed();
}

/* Links of the other engine, which is the same process, count too. */
void a_process_has_so_many_links(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	int strangers[SHUNT_LINKS_PER_PROCESS + 8];

	(void)state;
	config.log_level = 0;
	make_bed(&config, 1);
	for (size_t i = 0; i < sizeof(strangers) / sizeof(*strangers); i++) {
		strangers[i] = come();
		shunt_service_step(engines[1], 0);
	}
	assert_int_equal(links_of(1), SHUNT_LINKS_PER_PROCESS);
	for (size_t i = 0; i < sizeof(strangers) / sizeof(*strangers); i++)
		close(strangers[i]);
	step_often();
	assert_int_equal(links_of(1), 1);
	put(0, 0, 1000, 0);
	end_bed();
}

void who_says_nothing_is_hung_up_on(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	int stranger;
	struct shunt_message knock;

	(void)state;
	make_bed(&config, 1);
	stranger = come();
	step_often();
	assert_int_equal(links_of(1), 2);
	assert_int_equal(recv(stranger, &knock, sizeof(knock), MSG_DONTWAIT), sizeof(knock));
	assert_int_equal(knock.type, SHUNT_MSG_KNOCK);
	pair_skew += SHUNT_HELLO_NS - 100000000;
	step_often();
	assert_int_equal(links_of(1), 2);
	pair_skew += 200000000;
	step_often();
	assert_int_equal(links_of(1), 1);
	assert_int_equal(recv(stranger, &knock, sizeof(knock), MSG_DONTWAIT), 0);
	close(stranger);
	end_bed();
}

/* Neither HELLO, nor what a peer can read of the segment before the arena, says where the arena lies. */
void a_peer_is_told_no_address(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	make_bed(&config, 1);
	for (int side = 0; side < 2; side++) {
		struct soft_qp *qp = container_of(bed.lane[side]->qp, struct soft_qp, ibv);
		struct soft_pd *theirs = container_of(bed.lane[!side]->link->pd, struct soft_pd, ibv);
		uint64_t from = (uintptr_t)theirs->segment, word;

		assert_int_equal(bed.lane[side]->link->peer_arena, 0);
		for (uint64_t at = 0; at + sizeof(word) <= theirs->arena_offset; at += sizeof(word)) {
			memcpy(&word, qp->peer->base + at, sizeof(word));
			assert_false(word >= from && word < from + theirs->bytes);
		}
	}
	put(0, 0, 1000, 0);
	end_bed();
}

/* A datagram at the door of engine 1 for relatives of its peers. */
static void ask_as_relative(int fd, const struct shunt_take *take, size_t bytes)
{
	struct sockaddr_un address;
	socklen_t length = sizeof(address);

	assert_int_equal(
		getsockname(engines[1]->service->kin_fd, (struct sockaddr *)&address, &length), 0);
	assert_int_equal(sendto(fd, take, bytes, MSG_DONTWAIT, (struct sockaddr *)&address, length),
			 bytes);
	shunt_service_step(engines[1], 0);
}

/* A thread that has been asked for has no id yet, and the process is not to confine itself beside it. */
void a_porter_that_has_not_begun_is_awaited(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_porter *porter;

	(void)state;
	make_bed(&config, 1);
	porter = &engines[1]->porter;
	assert_true(shunt_porter_await(&engines[1]->porter, 0));
	porter->at_work = true;
	assert_false(shunt_porter_await(&engines[1]->porter, 0));
	porter->at_work = false;
	end_bed();
}

/* A process that has its listener from another has no name yet; its first peer may claim as soon as it is answered. */
void a_name_is_there_before_a_connection_is_accepted(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	pid_t pid;

	(void)state;
	make_bed(&config, 1);
	pid = engines[1]->forks.pid;
	shunt_listen_abandon(engines[1]);
	assert_int_equal(engines[1]->rendezvous->fd, -1);
	engines[1]->forks.pid = getpid();
	shunt_listen_accepts(engines[1], engines[1]->rendezvous);
	engines[1]->forks.pid = pid;
	assert_true(engines[1]->rendezvous->fd >= 0);
	end_bed();
}

static uint32_t vain(void)
{
	return engines[1]->service->users[0].sum[SHUNT_SUM_VAIN];
}

/* Questions of relatives of nobody are counted, and not those of a peer's. Their user is not heard for a while. */
void relatives_of_nobody_are_counted(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_take take = { .magic = SHUNT_WIRE_MAGIC, .version = SHUNT_WIRE_VERSION };
	struct shunt_message kin = { .type = SHUNT_MSG_KIN, .kin = { 1, 2, 3 } };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct shunt_guest_user *user;
	struct shunt_stream *stream;
	uint32_t asked = 0;

	(void)state;
	make_bed(&config, 1);
	freeze_clock(true);
	assert_int_equal(shunt_link_send(bed.lane[0]->link, &kin, NULL, 0), 0);
	while (engines[1]->service->kin_fd <= 0)
		shunt_service_step(engines[1], 0);
	stream = stream_of(&bed.pair[0].side[1]);
	take.owner = bed.lane[1]->link->peer_pid;
	take.stream = stream->seat->id;
	memcpy(take.kin, kin.kin, sizeof(take.kin));
	take.stand = (struct shunt_stand) { .offset = UINT64_MAX, .announced = 77 };
	for (int i = 0; i < 10; i++)
		ask_as_relative(fd, &take, sizeof(take));	/* no stand that engine 1 knows */
	assert_int_equal(vain(), 0);
	ask_as_relative(fd, &take, 7);
	take.magic++;
	ask_as_relative(fd, &take, sizeof(take));
	take.magic--;
	take.owner++;
	ask_as_relative(fd, &take, sizeof(take));
	take.owner--;
	assert_int_equal(vain(), 3);
	user = &engines[1]->service->users[1];
	assert_int_equal(user->user, getuid());
	take.kin[0]++;
	for (asked = vain(); asked < SHUNT_VAIN_PER_USER + 100; asked++)
		ask_as_relative(fd, &take, sizeof(take));
	assert_int_equal(user->sum[SHUNT_SUM_VAIN], SHUNT_VAIN_PER_USER);
	assert_false(shunt_limits_hears_user(engines[1]->service, getuid()));
	assert_true(shunt_limits_hears_user(engines[1]->service, getuid() + 1));
	pair_skew += SHUNT_WRONG_NS;
	ask_as_relative(fd, &take, sizeof(take));
	assert_int_equal(user->sum[SHUNT_SUM_VAIN], 1);
	freeze_clock(false);
	close(fd);
	end_bed();
}
