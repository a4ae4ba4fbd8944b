/* SPDX-License-Identifier: MIT */
/* The name of a device. */
#include "core/base/config.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	const char *name = "", *same;
	int choice;

	fuzz_check(text);
	memcpy(text, data, size);
	text[size] = 0;
	choice = shunt_config_device(text, &name);
	fuzz_check(choice >= -1 && choice <= SHUNT_DEVICE_NONE);
	fuzz_check(!name || (choice == SHUNT_DEVICE_VERBS && name == text + 6 && *name && !strncmp(text, "verbs:", 6)));
	fuzz_check(name || choice != SHUNT_DEVICE_VERBS || !strcmp(text, "verbs"));
	fuzz_check(shunt_config_device(text, &same) == choice && same == name);
	free(text);
	return 0;
}
