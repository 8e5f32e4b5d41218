/* Search for damage in a tensor file: by checksums, and by values that are infinite or not a number. */
#define _GNU_SOURCE
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/xxh64.h"
#include "real/data/tensor_file_parts.h"

/* ---- checksums ---- */

/* Reads the next checksum of the text and moves *text behind it; returns false if the text has no checksum there. */
static bool take_checksum(const char **text, uint64_t *checksum)
{
	char digits[PSD_CHECKSUM_DIGITS + 1];

	if (*(*text)++ != ' ')
		return false;
	for (unsigned i = 0; i < PSD_CHECKSUM_DIGITS; i++) {
		const char digit = (*text)[i];

		if (!isdigit((unsigned char)digit) && (digit < 'a' || digit > 'f'))
			return false;
		digits[i] = digit;
	}
	digits[PSD_CHECKSUM_DIGITS] = '\0';
	*checksum = strtoull(digits, NULL, 16);
	*text += PSD_CHECKSUM_DIGITS;
	return true;
}

/* Checksum of all bytes before the data. Returns false if its own digits are not where a writer has them. */
static bool sum_front(const struct psd_tensor_file *file, uint64_t *checksum)
{
	static const char before[] = "\"" PSD_CHECKSUMS_KEY "\":\"" PSD_CHECKSUMS_KIND " ";
	static const char zeros[] = "0000000000000000";
	const uint8_t *bytes = file->mapping.bytes;
	const size_t n = (size_t)(file->data - bytes), n_before = sizeof(before) - 1;
	const uint8_t *found = memmem(bytes, n, before, n_before);
	const size_t at = found ? (size_t)(found - bytes) + n_before : n;
	struct psd_xxh64 sum = psd_xxh64_begin();

	_Static_assert(sizeof(zeros) - 1 == PSD_CHECKSUM_DIGITS, "one zero for each digit");
	if (at + PSD_CHECKSUM_DIGITS > n)
		return false;
	psd_xxh64_add(&sum, bytes, at);
	psd_xxh64_add(&sum, zeros, PSD_CHECKSUM_DIGITS);
	psd_xxh64_add(&sum, bytes + at + PSD_CHECKSUM_DIGITS, n - at - PSD_CHECKSUM_DIGITS);
	*checksum = psd_xxh64_end(&sum);
	return true;
}

static bool has_text(const struct psd_tensor_file *file, const char *text)
{
	const uint8_t *bytes = file->mapping.bytes;

	return memmem(bytes, (size_t)(file->data - bytes), text, strlen(text));
}

/* Key or kind alone show that the file had checksums when it was written: a changed bit hides at most one of them. */
static bool had_checksums(const struct psd_tensor_file *file)
{
	return has_text(file, PSD_CHECKSUMS_KEY) || has_text(file, PSD_CHECKSUMS_KIND);
}

/* Takes the checksums from their text; NULL: there is none. */
static bool take_checksums(struct psd_tensor_file *file, const char *text, uint64_t *of_front)
{
	const size_t n_kind = strlen(PSD_CHECKSUMS_KIND);
	bool is_whole = text && !strncmp(text, PSD_CHECKSUMS_KIND, n_kind);

	text = is_whole ? text + n_kind : text;
	is_whole = is_whole && take_checksum(&text, of_front);
	for (unsigned i = 0; i < file->n_entries && is_whole; i++)
		is_whole = take_checksum(&text, &file->entries[i].checksum);
	return is_whole && !*text;
}

enum psd_status psd_tensor_file_read_checksums(struct psd_tensor_file *file, const char *checksums,
					       struct psd_error *err)
{
	uint64_t expected, found;

	if (!had_checksums(file))
		return PSD_OK;
	if (!take_checksums(file, checksums, &expected) || !sum_front(file, &found) || found != expected)
		return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = file->mapping.path},
				     "the header is damaged: its checksum differs. A program that changes such a file "
				     "must remove '" PSD_CHECKSUMS_KEY "' from '__metadata__'");
	file->has_checksums = true;
	return PSD_OK;
}

/* ---- values that are no numbers ---- */

/* Returns the mask of a type's exponent bits: all of them are set in an infinity or NaN. Returns 0 for a type that has
 * no infinities. */
static uint64_t exponent_of(enum psd_tensor_type type)
{
	switch ((int)type) {
	case PSD_TENSOR_F16: return 0x7c00;
	case PSD_TENSOR_BF16: return 0x7f80;
	case PSD_TENSOR_F32: return 0x7f800000;
	case PSD_TENSOR_F64: return UINT64_C(0x7ff0000000000000);
	default: return 0;
	}
}

/* Two values at a time: one more in an exponent with all bits set carries into the place of the sign. */
static bool has_odd_float(const uint8_t *values, uint64_t n)
{
	const uint64_t exponents = UINT64_C(0x7f8000007f800000), ones = UINT64_C(0x0080000000800000);
	uint64_t carries = 0, bits;

	for (uint64_t i = 0; i + 1 < n; i += 2) {
		memcpy(&bits, values + i * sizeof(float), sizeof(bits));
		carries |= (bits & exponents) + ones;
	}
	if (n % 2) {
		bits = 0;
		memcpy(&bits, values + (n - 1) * sizeof(float), sizeof(float));
		carries |= (bits & exponents) + ones;
	}
	return carries & UINT64_C(0x8000000080000000);
}

bool psd_find_odd(enum psd_tensor_type type, const void *values, uint64_t n, uint64_t *element)
{
	const uint64_t exponent = exponent_of(type);
	const unsigned n_bytes = psd_tensor_type_bytes(type);
	const uint8_t *at = values;

	if (!exponent || (type == PSD_TENSOR_F32 && !has_odd_float(at, n)))
		return false;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t bits = 0;

		memcpy(&bits, at + i * n_bytes, n_bytes);
		if ((bits & exponent) == exponent) {
			*element = i;
			return true;
		}
	}
	return false;
}

struct search {
	const struct psd_file_entry *entry;
	const uint8_t *values;
	bool is_found;
	uint64_t element;
};

static enum psd_status find_odd(void *context, struct psd_error *err)
{
	struct search *search = context;
	const struct psd_file_entry *entry = search->entry;
	const uint64_t n = (entry->end - entry->begin) / psd_tensor_type_bytes(entry->tensor.type);

	(void)err;
	search->is_found = psd_find_odd(entry->tensor.type, search->values, n, &search->element);
	return PSD_OK;
}

enum psd_status psd_tensor_file_find_odd(struct psd_tensor_file *file, const struct psd_file_tensor *tensor,
					 bool *is_found, uint64_t *element, struct psd_error *err)
{
	const struct psd_file_entry *entry = (const struct psd_file_entry *)tensor;
	struct search search = {.entry = entry, .values = file->data + entry->begin};
	const enum psd_status status = psd_mapping_guard(&file->mapping, 1, find_odd, &search, err);

	*is_found = search.is_found;
	*element = search.element;
	return status;
}

/* ---- comparison with the checksums ---- */

static enum psd_status refuse_values(const struct psd_tensor_file *file, const struct psd_file_entry *entry,
				     struct psd_error *err)
{
	const unsigned n_bytes = psd_tensor_type_bytes(entry->tensor.type);
	uint64_t element;

	if (psd_find_odd(entry->tensor.type, file->data + entry->begin, (entry->end - entry->begin) / n_bytes,
			 &element))
		return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = file->mapping.path},
				     "%.100s has a value that is not a finite number (element %" PRIu64
				     "), and is damaged: its checksum differs",
				     entry->tensor.name, element);
	return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = file->mapping.path},
			     "%.100s is damaged: its checksum differs", entry->tensor.name);
}

static enum psd_status verify(void *context, struct psd_error *err)
{
	struct psd_tensor_file *file = context;

	for (unsigned i = 0; i < file->n_entries; i++) {
		const struct psd_file_entry *entry = &file->entries[i];
		struct psd_xxh64 sum = psd_xxh64_begin();

		psd_xxh64_add(&sum, file->data + entry->begin, (size_t)(entry->end - entry->begin));
		if (psd_xxh64_end(&sum) != entry->checksum)
			return refuse_values(file, entry, err);
	}
	return PSD_OK;
}

enum psd_status psd_tensor_file_verify(struct psd_tensor_file *file, bool *has_checksums, struct psd_error *err)
{
	*has_checksums = file->has_checksums;
	return file->has_checksums ? psd_mapping_guard(&file->mapping, 1, verify, file, err) : PSD_OK;
}
