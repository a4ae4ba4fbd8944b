/*
 * Memory that is not needed goes back: blocks of the arenas that are empty (XR-14). The service thread looks
 * while there is something to look at.
 */
#include "core/service.h"

#define EVERY 1000000000ull	/* ns between two looks, so what is empty is kept for one to two seconds */

void shunt_trim_due(struct shunt_engine *engine)
{
	if (engine->service && !atomic_exchange(&engine->service->trimming, true))
		shunt_service_wake(engine);
}

static void look(struct shunt_service *service)
{
	atomic_store(&service->trimming, false);
	for (struct shunt_link *link = service->links; link; link = link->next)
		if (shunt_arena_tidy(&link->arena))
			atomic_store(&service->trimming, true);
}

int shunt_trim_tick(struct shunt_service *service)
{
	uint64_t now = shunt_now(service->engine);

	if (!atomic_load(&service->trimming))
		return -1;
	if (now >= service->trim_look) {
		look(service);
		if (!atomic_load(&service->trimming))
			return -1;
		service->trim_look = now + EVERY;
	}
	return (service->trim_look - now) / 1000000 + 1;
}
