/* SPDX-License-Identifier: MIT */
/* The file of a Go program. Each site is in code, with a SYSCALL behind the instruction that is to be replaced. */
#include "core/go/sites.h"
#include "tests/fuzz/fuzz.h"

static void check_site(const struct shunt_go_image *image, const struct shunt_go_site *site)
{
	const uint8_t *code = shunt_go_image_at(image, site->address,
						site->before + 2 + (site->vfork ? 2 : 0));

	fuzz_check(code && site->before >= 2 && site->before <= 5);
	fuzz_check(!memcmp(code + site->before, "\x0f\x05", 2));
	fuzz_check(!site->vfork || !memcmp(code + site->before + 2, "\x41\x54", 2));
}

static void check(const struct shunt_go_image *image, uint64_t hint)
{
	struct shunt_go_sites sites;
	enum shunt_go_verdict verdict = shunt_go_sites_find(&sites, image, hint);

	fuzz_check(sites.count <= SHUNT_GO_SITES && *shunt_go_verdict_text(verdict));
	fuzz_check(!sites.function || strlen(sites.function));
	for (unsigned int i = 0; i < sites.count; i++)
		check_site(image, &sites.site[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct shunt_go_image image;
	char version[SHUNT_GO_VERSION];
	bool is_go;

	if (!shunt_go_image_of_file(&image, data, size, &is_go))
		return 0;
	shunt_go_version(&image, shunt_go_image_section(data, size, ".go.buildinfo"), version);
	fuzz_check(strlen(version) < SHUNT_GO_VERSION);
	check(&image, shunt_go_image_section(data, size, ".gopclntab"));
	check(&image, 0);
	return 0;
}
