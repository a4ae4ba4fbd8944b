/* SPDX-License-Identifier: MIT */
#include "core/trace/book.h"
#include <stdlib.h>
#include <string.h>

const char *const shunt_trace_count_names[SHUNT_TRACE_COUNTS] = {
	[SHUNT_TRACE_SENDS] = "sends",	   [SHUNT_TRACE_CHOSEN] = "chosen",
	[SHUNT_TRACE_ANSWERS] = "answers", [SHUNT_TRACE_WRITTEN] = "written",
	[SHUNT_TRACE_LOST] = "lost",	   [SHUNT_TRACE_ABANDONED] = "abandoned",
	[SHUNT_TRACE_REFUSED] = "refused", [SHUNT_TRACE_MISSED] = "missed",
	[SHUNT_TRACE_UNREAD] = "unread",   [SHUNT_TRACE_READ] = "read",
};

struct shunt_trace_book *shunt_trace_book_make(void)
{
	struct shunt_trace_book *book = calloc(1, sizeof(*book));

	if (book)
		shunt_lock_rank(&book->lock, SHUNT_RANK_BOOK);
	return book;
}

void shunt_trace_book_inherit(struct shunt_trace_book *book)
{
	memset(book, 0, sizeof(*book));
	shunt_lock_rank(&book->lock, SHUNT_RANK_BOOK);
}

void shunt_trace_book_add(struct shunt_trace_book *book, const struct shunt_trace *trace)
{
	shunt_lock_take(&book->lock);
	book->of[book->entries++ % SHUNT_TRACE_KEPT] = *trace;
	shunt_lock_leave(&book->lock);
	shunt_trace_count(book, SHUNT_TRACE_READ, 1);
}

uint32_t shunt_trace_book_copy(struct shunt_trace_book *book,
			       struct shunt_trace out[SHUNT_TRACE_KEPT])
{
	uint64_t first;
	uint32_t count = 0;

	shunt_lock_take(&book->lock);
	first = book->entries > SHUNT_TRACE_KEPT ? book->entries - SHUNT_TRACE_KEPT : 0;
	for (uint64_t i = first; i < book->entries; i++)
		out[count++] = book->of[i % SHUNT_TRACE_KEPT];
	shunt_lock_leave(&book->lock);
	return count;
}
