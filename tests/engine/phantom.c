/* SPDX-License-Identifier: MIT */
#include "tests/engine/phantom.h"
#include <stdlib.h>
#include <string.h>
#include "core/qos/qos.h"
#include "core/qos/throttle.h"
#include "tests/engine/bed.h"

struct shunt_link *phantom_come(void)
{
	struct shunt_service *service = engines[1]->service;
	struct shunt_link *link = calloc(1, sizeof(*link)), *like = bed.lane[1]->link;

	assert_non_null(link);
	shunt_lock_rank(&link->send_lock, SHUNT_RANK_SEND);
	link->engine = engines[1];
	link->device = like->device;
	link->pd = like->pd;
	link->peer_user = like->peer_user;
	link->arena_base = aligned_alloc(128, sizeof(struct shunt_control)); /* as it asks to be */
	assert_non_null(link->arena_base);
	memset(link->arena_base, 0, sizeof(struct shunt_control));
	atomic_store(&link->state, SHUNT_LINK_UP);
	shunt_channel_init(&link->channel, &engines[1]->links, SHUNT_CHANNEL_UNIX, PHANTOM_FD);
	link->next = service->links;
	service->links = link;
	shunt_qos_granted(link, stream_of(&bed.pair[0].side[1]));
	return link;
}

void phantom_go(struct shunt_link *link)
{
	assert_ptr_equal(engines[1]->service->links, link);
	engines[1]->service->links = link->next;
	shunt_qos_left(link);
	shunt_throttle_free(link);
	free(link->arena_base);
	free(link);
}
