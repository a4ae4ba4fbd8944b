/* SPDX-License-Identifier: MIT */
/* HMAC-SHA-256 against the test cases of RFC 4231, in one piece and byte by byte; and the comparison of codes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "core/base/hmac.h"

#define TEXT_BYTES (2 * SHUNT_HMAC_BYTES + 1)

static void code_of(const uint8_t *key, size_t key_bytes, const uint8_t *data, size_t bytes,
		    size_t piece, char text[TEXT_BYTES])
{
	uint8_t code[SHUNT_HMAC_BYTES];
	struct shunt_hmac hmac;

	shunt_hmac_begin(&hmac, key, key_bytes);
	for (size_t at = 0; at < bytes; at += piece)
		shunt_hmac_add(&hmac, data + at, bytes - at < piece ? bytes - at : piece);
	shunt_hmac_end(&hmac, code);
	for (int i = 0; i < SHUNT_HMAC_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", code[i]);
}

/* `key` and `data` are texts, or as many bytes of one value. */
static const struct {
	const char *key;
	uint8_t key_value;
	size_t key_bytes;
	const char *data;
	uint8_t data_value;
	size_t data_bytes;
	size_t shown;	/* bytes of the code that the RFC has */
	const char *code;
} cases[] = {
	{ NULL, 0x0b, 20, "Hi There", 0, 8, 32,
	  "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
	{ "Jefe", 0, 4, "what do ya want for nothing?", 0, 28, 32,
	  "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" },
	{ NULL, 0xaa, 20, NULL, 0xdd, 50, 32,
	  "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe" },
	{ "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19",
	  0, 25, NULL, 0xcd, 50, 32,
	  "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b" },
	{ NULL, 0x0c, 20, "Test With Truncation", 0, 20, 16, "a3b6167473100ee06e0c796c2955552b" },
	{ NULL, 0xaa, 131, "Test Using Larger Than Block-Size Key - Hash Key First", 0, 54, 32,
	  "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54" },
	{ NULL, 0xaa, 131,
	  "This is a test using a larger than block-size key and a larger than block-size data. "
	  "The key needs to be hashed before being used by the HMAC algorithm.", 0, 152, 32,
	  "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2" },
};

static void rfc_4231(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t key[200], data[200];
		char text[TEXT_BYTES];

		memset(key, cases[i].key_value, sizeof(key));
		memset(data, cases[i].data_value, sizeof(data));
		if (cases[i].key)
			memcpy(key, cases[i].key, cases[i].key_bytes);
		if (cases[i].data)
			memcpy(data, cases[i].data, cases[i].data_bytes);
		for (size_t piece = 1; piece <= 200; piece += 199) {
			code_of(key, cases[i].key_bytes, data, cases[i].data_bytes, piece, text);
			assert_memory_equal(text, cases[i].code, 2 * cases[i].shown);
		}
	}
}

static void every_byte_counts(void **state)
{
	uint8_t a[16], b[16];

	(void)state;
	memset(a, 7, sizeof(a));
	memcpy(b, a, sizeof(b));
	assert_true(shunt_hmac_equal(a, b, sizeof(a)));
	for (size_t i = 0; i < sizeof(a); i++)
		for (int bit = 0; bit < 8; bit++) {
			b[i] ^= (uint8_t)(1 << bit);
			assert_false(shunt_hmac_equal(a, b, sizeof(a)));
			b[i] ^= (uint8_t)(1 << bit);
		}
}

static void nothing_of_the_key_stays(void **state)
{
	uint8_t code[SHUNT_HMAC_BYTES];
	struct shunt_hmac hmac;

	(void)state;
	shunt_hmac_begin(&hmac, "secret", 6);
	shunt_hmac_end(&hmac, code);
	for (size_t i = 0; i < sizeof(hmac); i++)
		assert_int_equal(((uint8_t *)&hmac)[i], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rfc_4231),
		cmocka_unit_test(every_byte_counts),
		cmocka_unit_test(nothing_of_the_key_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
