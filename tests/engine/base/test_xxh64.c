/* XXH64 against published values and a slow implementation of the specification in Python. */
#include <criterion/criterion.h>
#include <string.h>

#include "engine/base/xxh64.h"

static uint64_t sum_of(const void *bytes, size_t n_bytes, size_t n_piece_bytes)
{
	struct psd_xxh64 sum = psd_xxh64_begin();

	for (size_t at = 0; at < n_bytes; at += n_piece_bytes)
		psd_xxh64_add(&sum, (const char *)bytes + at,
			      n_bytes - at < n_piece_bytes ? n_bytes - at : n_piece_bytes);
	return psd_xxh64_end(&sum);
}

/* The first three lengths are in the test vectors of xxHash, the fourth text in the manual of Python's xxhash. */
Test(xxh64, is_the_published_function)
{
	static const char long_text[] = "Nobody inspects the spammish repetition";
	uint8_t rising[101];

	for (unsigned i = 0; i < sizeof(rising); i++)
		rising[i] = (uint8_t)i;
	cr_expect_eq(sum_of("", 0, 1), UINT64_C(0xef46db3751d8e999));
	cr_expect_eq(sum_of("a", 1, 1), UINT64_C(0xd24ec4f1a98c6e5b));
	cr_expect_eq(sum_of("abc", 3, 3), UINT64_C(0x44bc2cf5ad770999));
	cr_expect_eq(sum_of(long_text, strlen(long_text), 100), UINT64_C(0xfbcea83c8a378bf1));
	cr_expect_eq(sum_of(rising, sizeof(rising), 101), UINT64_C(0xe99038495f85381e));
}

Test(xxh64, pieces_do_not_matter)
{
	uint8_t rising[101];

	for (unsigned i = 0; i < sizeof(rising); i++)
		rising[i] = (uint8_t)i;
	for (size_t n = 1; n <= sizeof(rising); n++)
		cr_expect_eq(sum_of(rising, sizeof(rising), n), UINT64_C(0xe99038495f85381e), "%zu", n);
}
