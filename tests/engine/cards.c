/* SPDX-License-Identifier: MIT */
/*
 * Engines over RDMA devices that nobody here has: tests/fake has the limits and habits of their providers. Between two
 * engines of one process, by core/device/device_verbs.c and the library that it opens.
 */
#include "tests/engine/bed.h"
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/base/guard.h"
#include "core/poll/devices.h"
#include "core/service.h"
#include "tests/fake/fake.h"

#define MS 1000000ull
#define RETRY (11000 * MS)	/* no device is looked for earlier again (devices.c) */

static const struct fake_control *card;
static void *library;

/* The engines' own dlopen() of the same name finds it. */
static int load(void **state)
{
	const char *path = getenv("FAKE_LIBRARY") ? getenv("FAKE_LIBRARY") :
						    "tests/fake/libibverbs.so.1";

	(void)state;
	library = dlopen(path, RTLD_NOW);
	if (!library)
		die(dlerror());
	card = dlsym(library, "fake_control");
	return card ? 0 : -1;
}

static struct shunt_config config_of(void)
{
	struct shunt_config config = small_config(HYBRID);

	strcpy(config.device, "verbs");
	config.keepalive_ms = 2000;
	return config;
}

static void make_card(const char *words, int pairs)
{
	struct shunt_config config = config_of();

	card->choose(words);
	make_bed(&config, pairs);
}

static struct shunt_device *device_of(int i)
{
	return &engines[i]->group.devices[SHUNT_VERBS];
}

/* Both directions, by the link. */
static void carry(size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		done += put(0, 0, 5000, 0);
		done += put(0, 1, 3000, 0);
		drain();
	}
	all_arrived();
	assert_true(on_link(&bed.pair[0].side[0]) && on_link(&bed.pair[0].side[1]));
}

/* The cause why a connection is not linked, which its ends use until it is known. */
static enum shunt_cause cause_of(void)
{
	enum shunt_cause cause = 0;

	connect_pair(&bed.pair[0]);
	bed.pairs = 1;
	for (int i = 0; !cause; i++) {
		assert_true(i < 20000);
		put(0, i % 2, 1, 0);
		turn();
		get(0, i % 2, BUFFER);
		while (cause < SHUNT_CAUSES && !engines[0]->causes[cause])
			cause++;
		cause = cause == SHUNT_CAUSES ? 0 : cause;
	}
	return cause;
}

/* --- each as it is --- */

static void each_profile_is_as_expected(void **state)
{
	const struct fake_profile *profile;

	(void)state;
	for (unsigned int i = 0; (profile = card->profile_at(i)); i++) {
		print_message("# %s\n", profile->name);
		if (!strcmp(profile->expect, "linked")) {
			make_card(profile->name, 1);
			carry(1 << 20);
			end_bed();
		} else {
			make_card(profile->name, 0);
			assert_string_equal(shunt_cause_detail(cause_of()), profile->expect);
			leave_bed();
		}
	}
}

/* Of the 256 bytes that are asked for, each provider gives its own share. */
static void as_much_inline_as_there_is(void **state)
{
	static const struct {
		const char *name;
		uint32_t bytes;
	} cards[] = { { "mlx5", 256 },		{ "irdma-e810", 96 }, { "bnxt-static", 96 },
		      { "bnxt-variable", 192 }, { "hns-08", 32 },     { "mana", 0 },
		      { "pvrdma", 0 },		{ "qedr", 256 } };

	(void)state;
	for (size_t i = 0; i < sizeof(cards) / sizeof(cards[0]); i++) {
		make_card(cards[i].name, 1);
		assert_int_equal(device_of(0)->most_inline, cards[i].bytes);
		assert_int_equal(card->send_sges(), 1);
		end_bed();
	}
}

/* mlx5 says that it has 32768, and refuses twice what fits. */
static void queues_as_long_as_there_are(void **state)
{
	struct shunt_config config = config_of();

	(void)state;
	config.sq_depth = 16384;
	card->choose("mlx5");
	make_bed(&config, 1);
	assert_int_equal(device_of(0)->sq_depth, 8192);
	carry(1 << 20);
	end_bed();
}

/* ionic: a slot may still be the device's. */
static void receives_may_be_refused_for_a_while(void **state)
{
	(void)state;
	make_card("ionic", 1);
	carry(8 << 20);
	assert_int_equal(counted(0, "failovers"), 0);
	end_bed();
}

/* --- memory --- */

/* By what a user may lock by default, here for each of two engines: what is left of engines before is theirs. */
static void a_link_needs_little_memory(void **state)
{
	struct shunt_config config = config_of();

	(void)state;
	config.mr_bytes = 4 << 20;
	card->choose("mlx5");
	card->limit(card->locked() + 2 * (8 << 20));
	make_bed(&config, 1);
	assert_int_equal(card->entries(), 8191);
	carry(1 << 20);
	end_bed();
}

static void a_limit_is_named(void **state)
{
	struct shunt_config config = config_of();
	struct rlimit limit;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
	limit.rlim_cur = 64 << 10;
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	card->choose("mlx5");
	card->limit(card->locked() + (64 << 10));
	make_bed(&config, 0);
	assert_int_equal(cause_of(), SHUNT_CAUSE_NOT_LOCKED);
	leave_bed();
}

/* --- forks --- */

static void a_fork_takes_nothing(void **state)
{
	int status;
	pid_t child;

	(void)state;
	make_card("mlx5,old_fork", 1);
	assert_true(card->fork_inits() > 0);
	child = fork();
	if (!child)
		_exit(0);
	assert_int_equal(waitpid(child, &status, 0), child);
	carry(1 << 20);
	end_bed();
}

static void without_that_there_is_no_device(void **state)
{
	(void)state;
	make_card("mlx5,old_fork,late_fork", 0);
	assert_int_equal(cause_of(), SHUNT_CAUSE_NO_DEVICE);
	assert_non_null(strstr(engines[0]->group.device_error, "ibv_fork_init"));
	leave_bed();
}

/* --- events --- */

static bool is_linked(void)
{
	return on_link(&bed.pair[0].side[0]) && on_link(&bed.pair[0].side[1]);
}

static void until_linked(bool linked)
{
	for (int i = 0; is_linked() != linked; i++) {
		assert_true(i < 20000);
		pair_skew += MS;
		put(0, i % 2, 1, 0);
		turn();
		get(0, i % 2, BUFFER);
		get(0, !(i % 2), BUFFER);
	}
}

/* TCP brings the bytes that the link had not carried. */
static void nothing_is_lost(void)
{
	for (int i = 0; !all_is_out(); i++) {
		assert_true(i < 20000);
		pair_skew += MS;
		drain();
	}
}

static void another_port_is_none_of_ours(void **state)
{
	(void)state;
	make_card("mlx4", 1);
	card->port_event(IBV_EVENT_PORT_ERR, 2);
	for (int i = 0; i < 10; i++)
		turn();
	carry(1 << 16);
	card->port_event(IBV_EVENT_PORT_ERR, 1);
	until_linked(false);
	nothing_is_lost();
	leave_bed();
}

/* Links that are made after the address has got another index. */
static void an_address_may_move(void **state)
{
	(void)state;
	make_card("mlx5", 1);
	card->move_gid();
	for (int i = 0; i < 10; i++)
		turn();
	carry(1 << 16);
	card->port_event(IBV_EVENT_PORT_ERR, 1);
	until_linked(false);
	until_linked(true);
	nothing_is_lost();
	card->move_gid();
	leave_bed();
}

static void a_card_is_taken_out_and_put_in_again(void **state)
{
	struct pollfd bell = { .events = POLLIN };

	(void)state;
	make_card("mlx5", 1);
	card->unplug();
	until_linked(false);
	nothing_is_lost();
	for (int i = 0; i < 2; i++) {
		bell.fd = atomic_load(&engines[i]->group.bell);
		assert_int_equal(poll(&bell, 1, 0), 0);	/* who sleeps there sleeps */
	}
	card->plug();
	pair_skew += RETRY;
	until_linked(true);
	carry(1 << 16);
	for (int i = 0; i < 2; i++)
		assert_ptr_equal(stream_lane(stream_of(&bed.pair[0].side[i]))->link->device,
				 device_of(i) + 1);
	leave_bed();
}

/* One end alone hears of it, and is asked for a link before the other has said that it is through with the last. */
static void an_idle_card_is_taken_out(void **state)
{
	(void)state;
	make_card("mlx5", 1);
	close_side(&bed.pair[0].side[0]);
	close_side(&bed.pair[0].side[1]);
	leave_closed_bed();
	card->unplug();
	for (int i = 0; i < 10; i++)
		shunt_service_step(engines[0], 0);
	assert_null(shunt_devices_open(&engines[0]->group, SHUNT_VERBS));
	for (int i = 0; i < 10; i++)
		turn();
	card->plug();
	pair_skew += RETRY;
	assert_ptr_equal(shunt_devices_open(&engines[0]->group, SHUNT_VERBS), device_of(0) + 1);
	add_pair();
	assert_int_equal(engines[0]->group.cqs.count, 1);	/* the queue of the card before is not polled any more */
	carry(1 << 16);
	leave_bed();
}

/* E810 does not know dead_ms. */
static void a_silent_card_has_failed(void **state)
{
	uint64_t begun;

	(void)state;
	make_card("irdma-e810", 1);
	card->swallow(true);
	put(0, 0, 1000, 0);
	for (begun = pair_skew; !counted(0, "failovers"); turn()) {
		assert_true(pair_skew - begun < 60000 * MS);
		pair_skew += MS;
	}
	assert_in_range(pair_skew - begun, 2 * engines[0]->config.dead_ms * MS,
			(3 * engines[0]->config.dead_ms + 4000) * MS);
	nothing_is_lost();
	leave_bed();
}

/* Registered memory works alike, whatever its pages are; there may be no explicit ones (XR-39h). */
static void pages_make_no_difference(void **state)
{
	(void)state;
	for (int pages = SHUNT_PAGES_ORDINARY; pages <= SHUNT_PAGES_HUGE; pages++) {
		struct shunt_config config = config_of();
		const struct shunt_arena *arena;

		config.pages = pages;
		card->choose("mlx5");
		make_bed(&config, 1);
		carry(1 << 20);
		arena = &engines[0]->service->links->arena;
		assert_int_equal(arena->memory.huge, pages == SHUNT_PAGES_HUGE);
		assert_true(!pages || !((uintptr_t)arena->memory.base % SHUNT_GUARD_LARGE));
		end_bed();
	}
}

static void completion_queues_share_the_cores(void **state)
{
	struct shunt_config config = config_of();

	(void)state;
	config.cqs = 4;
	card->choose("mlx5");
	make_bed(&config, 1);
	assert_in_range(card->vectors(), 4, 9);	/* of two engines, and that of the self-test */
	end_bed();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_profile_is_as_expected),
		cmocka_unit_test(as_much_inline_as_there_is),
		cmocka_unit_test(queues_as_long_as_there_are),
		cmocka_unit_test(receives_may_be_refused_for_a_while),
		cmocka_unit_test(completion_queues_share_the_cores),
		cmocka_unit_test(a_fork_takes_nothing),
		cmocka_unit_test(without_that_there_is_no_device),
		cmocka_unit_test(another_port_is_none_of_ours),
		cmocka_unit_test(an_address_may_move),
		cmocka_unit_test(a_card_is_taken_out_and_put_in_again),
		cmocka_unit_test(an_idle_card_is_taken_out),
		cmocka_unit_test(a_silent_card_has_failed),
		cmocka_unit_test(a_link_needs_little_memory),
		cmocka_unit_test(a_limit_is_named),
		cmocka_unit_test(pages_make_no_difference),
	};

	return cmocka_run_group_tests(tests, load, NULL);
}
