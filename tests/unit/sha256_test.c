/* SPDX-License-Identifier: MIT */
/* SHA-256 against the examples of FIPS 180-4, and every length around a block, in one piece and byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "core/base/sha256.h"

static void digest_of(const void *data, size_t bytes, size_t piece, char text[2 * SHUNT_SHA256_BYTES + 1])
{
	uint8_t digest[SHUNT_SHA256_BYTES];
	struct shunt_sha256 sum;

	shunt_sha256_begin(&sum);
	for (size_t at = 0; at < bytes; at += piece)
		shunt_sha256_add(&sum, (const uint8_t *)data + at, bytes - at < piece ? bytes - at : piece);
	shunt_sha256_end(&sum, digest);
	for (int i = 0; i < SHUNT_SHA256_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", digest[i]);
}

static void examples(void **state)
{
	static const struct {
		const char *data, *digest;
	} known[] = {
		{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
	};
	char text[2 * SHUNT_SHA256_BYTES + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		digest_of(known[i].data, strlen(known[i].data), 1000, text);
		assert_string_equal(text, known[i].digest);
	}
}

/* The digests of 0 to 199 letters a, one behind the other, hashed: `sha256sum` says the same. */
static void all_lengths(void **state)
{
	char letters[200], texts[200 * 2 * SHUNT_SHA256_BYTES], text[2 * SHUNT_SHA256_BYTES + 1];

	(void)state;
	memset(letters, 'a', sizeof(letters));
	for (size_t bytes = 0; bytes < sizeof(letters); bytes++) {
		char by_byte[2 * SHUNT_SHA256_BYTES + 1];

		digest_of(letters, bytes, sizeof(letters), text);
		digest_of(letters, bytes, 1, by_byte);
		assert_string_equal(text, by_byte);
		memcpy(texts + bytes * 2 * SHUNT_SHA256_BYTES, text, 2 * SHUNT_SHA256_BYTES);
	}
	digest_of(texts, sizeof(texts), 77, text);
	assert_string_equal(text, "019f2b9f1af27a53a1f046da7e98af2c179f431e4b5bebb000e74040917a4123");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(examples),
		cmocka_unit_test(all_lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
