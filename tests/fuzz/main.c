/* SPDX-License-Identifier: MIT */
/* In place of libFuzzer: runs the inputs that are named. */
#include "tests/fuzz/fuzz.h"

static void run(const char *name)
{
	FILE *file = fopen(name, "rb");
	uint8_t *data = NULL;
	long size;

	if (!file || fseek(file, 0, SEEK_END) || (size = ftell(file)) < 0 || fseek(file, 0, SEEK_SET)) {
		perror(name);
		exit(2);
	}
	data = malloc(size ? size : 1);	/* of this size exactly: AddressSanitizer sees what reads beyond it */
	if (!data || fread(data, 1, size, file) != (size_t)size) {
		perror(name);
		exit(2);
	}
	fclose(file);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		run(argv[i]);
	printf("%d inputs\n", argc - 1);
	return 0;
}
