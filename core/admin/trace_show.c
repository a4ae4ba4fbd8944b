/* SPDX-License-Identifier: MIT */
#include "core/admin/trace_show.h"
#include <stdlib.h>
#include "core/base/answer.h"
#include "core/base/json.h"
#include "core/engine.h"
#include "core/peer/tracing.h"
#include "core/service.h"
#include "core/stream/streams.h"
#include "core/stream/traced.h"
#include "core/trace/book.h"

static void put_entry(struct shunt_json *json, const struct shunt_trace *trace, bool first)
{
	shunt_json_put(json, "%s{\"id\":\"%016llx\",\"answer\":%s,", first ? "" : ",",
		       (unsigned long long)trace->id, trace->answer ? "true" : "false");
	json->comma = false;
	shunt_json_number(json, "peer", trace->peer);
	shunt_json_number(json, "fd", trace->fd < 0 ? 0 : (uint64_t)trace->fd);
	shunt_json_number(json, "stream", trace->stream);
	shunt_json_number(json, "end", trace->end);
	shunt_json_number(json, "bytes", trace->bytes);
	shunt_json_number(json, "called_ns", trace->called);
	shunt_json_number(json, "accepted_ns", trace->accepted);
	shunt_json_number(json, "posted_ns", trace->posted);
	shunt_json_number(json, "placed_ns", trace->placed);
	shunt_json_number(json, "seen_ns", trace->seen);
	shunt_json_number(json, "read_ns", trace->read);
	shunt_json_number(json, "error_ns", trace->error);
	shunt_json_put(json, "}");
}

static void put_counts(struct shunt_json *json, struct shunt_trace_book *book)
{
	shunt_json_put(json, "\"counts\":{");
	json->comma = false;
	for (int i = 0; i < SHUNT_TRACE_COUNTS; i++)
		shunt_json_number(json, shunt_trace_count_names[i],
				  book ? atomic_load(&book->counts[i]) : 0);
	shunt_json_put(json, "},");
}

static void put_peers(struct shunt_json *json, const struct shunt_service *service)
{
	bool first = true;

	shunt_json_put(json, "\"peers\":[");
	for (const struct shunt_link *link = service->links; link; link = link->next) {
		if (atomic_load(&((struct shunt_link *)link)->state) != SHUNT_LINK_UP)
			continue;
		shunt_json_put(json, "%s{\"pid\":%u,\"same_host\":%s}", first ? "" : ",",
			       link->peer_pid,
			       link->channel.kind == SHUNT_CHANNEL_UNIX ? "true" : "false");
		first = false;
	}
	shunt_json_put(json, "],");
}

static int stream_tell(struct shunt_stream *stream, void *unused)
{
	(void)unused;
	shunt_traced_tell(stream);
	return 0;
}

void shunt_trace_settle(struct shunt_engine *engine)
{
	shunt_lock_take(&engine->streams_lock);
	shunt_streams_each(engine, stream_tell, NULL);
	shunt_lock_leave(&engine->streams_lock);
}

int shunt_trace_show(struct shunt_engine *engine, struct shunt_answer *answer)
{
	struct shunt_trace_book *book = atomic_load(&engine->lanes.book);
	struct shunt_trace *entries = book ? malloc(SHUNT_TRACE_KEPT * sizeof(*entries)) : NULL;
	struct shunt_json json;
	uint32_t count = 0;
	size_t bytes;
	char *text;

	shunt_tracing_settle(engine);
	shunt_trace_settle(engine);
	shunt_json_begin(&json);
	shunt_json_put(&json, "{\"schema\":1,");
	shunt_json_number(&json, "pid", (uint64_t)engine->forks.pid);
	shunt_json_number(&json, "now_ns", shunt_now(engine));
	shunt_json_number(&json, "every",
			  engine->config.trace ? 1ull << (engine->config.trace - 1) : 0);
	shunt_json_put(&json, ",");
	put_counts(&json, book);
	put_peers(&json, engine->service);
	shunt_json_put(&json, "\"records\":[");
	if (entries)
		count = shunt_trace_book_copy(book, entries);
	for (uint32_t i = 0; i < count; i++)
		put_entry(&json, &entries[i], i == 0);
	shunt_json_put(&json, "]}\n");
	free(entries);
	text = shunt_json_end(&json, &bytes);
	if (!text) {
		shunt_answer_put(answer, "out of memory\n");
		return -1;
	}
	shunt_answer_give(answer, text, bytes);
	return 0;
}
