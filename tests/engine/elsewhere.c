/* SPDX-License-Identifier: MIT */
/* A channel between hosts speaks of connections between its own two addresses, and of no others. */
#include "tests/engine/bed.h"
#include <string.h>
#include "core/base/address.h"
#include "core/peer/claim_link.h"
#include "core/peer/claim_state.h"
#include "core/service.h"

static const uint8_t same[16] = { SHUNT_ADDRESS_V4, 127, 0, 0, 1 };	/* that connections of a bed have at both ends */
static const uint8_t other[16] = { SHUNT_ADDRESS_V4, 192, 0, 2, 1 };

/* The bed's link is one between hosts, at the end of that engine. */
static struct shunt_link *between_hosts(int engine, const uint8_t here[16], const uint8_t there[16])
{
	struct shunt_channel *channel = &bed.lane[engine]->link->channel;

	channel->kind = SHUNT_CHANNEL_TCP;
	channel->begun = true;
	memcpy(channel->here, here, 16);
	memcpy(channel->there, there, 16);
	return bed.lane[engine]->link;
}

static void within_a_host(int engine)
{
	bed.lane[engine]->link->channel.kind = SHUNT_CHANNEL_UNIX;
}

static int links_of(int engine)
{
	int count = 0;

	for (struct shunt_link *link = engines[engine]->service->links; link; link = link->next)
		count++;
	return count;
}

static void make(void)
{
	struct shunt_config config = small_config(HYBRID);

	config.proof = 1;	/* as between hosts */
	config.refused_ms = 0;
	make_bed(&config, 1);
}

static void stays_on_tcp(struct pair *pair)
{
	connect_pair(pair);
	send_some(&pair->side[0], "x", 1, 0);
	send_some(&pair->side[1], "x", 1, 0);
	for (int i = 0; i < 20; i++)
		turn();
	assert_int_equal(stream_state(stream_of(&pair->side[0])), SHUNT_PLAIN);
	assert_int_equal(stream_of(&pair->side[0])->why.plain, SHUNT_CAUSE_ELSEWHERE);
	for (int side = 0; side < 2; side++)
		close_side(&pair->side[side]);
	for (int i = 0; i < 20; i++)
		turn();
}

/* The accepting end refuses it, counts it, and keeps the link for what is between the two addresses. */
void a_claim_of_other_addresses_is_refused(void **state)
{
	static const uint8_t *const wrong[][2] = { { other, same },
						   { same, other },
						   { other, other } };
	struct pair pair;

	(void)state;
	make();
	for (int i = 0; i < 3; i++) {
		between_hosts(1, wrong[i][0], wrong[i][1]);
		stays_on_tcp(&pair);
		assert_int_equal(atomic_load(&engines[1]->strayed_claims), i + 1);
		assert_int_equal(engines[1]->work.awaited, 0);
	}
	between_hosts(1, same, same);
	add_pair();
	assert_int_equal(atomic_load(&engines[1]->strayed_claims), 3);
	assert_int_equal(links_of(0), 1);
	within_a_host(1);
	all_arrived();
	end_bed();
}

/* The connecting end does not even ask, whatever has brought the stream to that link. */
void no_claim_goes_elsewhere(void **state)
{
	struct shunt_link *link;
	struct pair pair;

	(void)state;
	make();
	link = between_hosts(0, other, same);
	connect_pair(&pair);
	assert_int_equal(shunt_claim_learn(engines[0], stream_of(&pair.side[0])), 0);
	shunt_claim_again(link, stream_of(&pair.side[0]));
	assert_int_equal(stream_state(stream_of(&pair.side[0])), SHUNT_PLAIN);
	assert_int_equal(stream_of(&pair.side[0])->why.plain, SHUNT_CAUSE_ELSEWHERE);
	for (int side = 0; side < 2; side++)
		close_side(&pair.side[side]);
	within_a_host(0);
	all_arrived();
	end_bed();
}

/* A link between hosts is of a pair of addresses: another pair has another link. */
void links_are_of_a_pair_of_addresses(void **state)
{
	(void)state;
	make();
	between_hosts(0, same, same);
	between_hosts(1, same, same);
	add_pair();
	assert_int_equal(links_of(0), 1);
	between_hosts(0, other, same);
	add_pair();
	assert_int_equal(links_of(0), 2);
	within_a_host(0);
	within_a_host(1);
	all_arrived();
	end_bed();
}

/* A claimant of another host that is sent on must be told of a gate, or there is no way. */
void sent_on_without_a_gate(void **state)
{
	struct shunt_message message = { .type = SHUNT_MSG_REDIRECT };
	struct pair pair;

	(void)state;
	make();
	between_hosts(0, same, same);
	between_hosts(1, same, same);
	connect_pair(&pair);
	send_some(&pair.side[0], "x", 1, 0);
	while (!engines[1]->service->parked)
		turn();
	message.stream = stream_of(&pair.side[0])->seat->id;
	message.onward.process = engines[1]->identity;
	shunt_link_send(bed.lane[1]->link, &message, NULL, 0);
	for (int i = 0; i < 20; i++)
		turn();
	assert_int_equal(atomic_load(&engines[0]->links.distrusted), 1);
	for (int side = 0; side < 2; side++) {
		close_side(&pair.side[side]);
		close_side(&bed.pair[0].side[side]);
	}
	for (int i = 0; i < 20; i++)
		turn();
}
