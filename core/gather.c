#include "core/gather.h"
#include "core/service.h"

#define GATHER_NS 200000000ull	/* tcp(7) */
#define GATHER_LOOK 50000000ull	/* ns between two looks at who gathers, and so between two wake-ups for it */

void shunt_gather_begin(struct shunt_engine *engine)
{
	if (!atomic_exchange(&engine->service->gathering, true))
		shunt_loop_wake(&engine->loop);
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

int shunt_gather_tick(struct shunt_service *service)
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
