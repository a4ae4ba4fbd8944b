/* SPDX-License-Identifier: MIT */
/* The text of a cost model. */
#include "core/device/soft/soft.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct soft_model before = { .on = 7, .gbit = 9 };
	struct soft_model model = before;
	char *text = malloc(size + 1);

	fuzz_check(text);
	memcpy(text, data, size);
	text[size] = 0;
	if (soft_model_parse(text, &model)) {
		fuzz_check(!memcmp(&model, &before, sizeof(model)));
	} else {
		fuzz_check(model.on == (*text != 0));
		fuzz_check(model.doorbell <= 1000000000 && model.wqe <= 1000000000 &&
			   model.gbit <= 100 << 10 && model.delay <= 1000000000 &&
			   model.cache <= 1 << 20 && model.miss <= 1000000000 &&
			   model.queue <= 64ull << 30 && model.pause <= 1000000000 &&
			   model.mr <= 1000000000 && model.page <= 1000000000 &&
			   model.sink <= 1000000000 && model.block <= 1000000000);
		fuzz_check(!*model.sinkfile ||
			   (*model.sinkfile == '/' && memchr(model.sinkfile, 0, SOFT_SINKFILE)));
	}
	free(text);
	return 0;
}
