/* Any bytes as the files of a data set: either every sample can be read and has a label of the network, or an error
 * with a text. Never a crash, leak or hang. The first byte chooses the format, its top bit whether the checksums of a
 * packed file are put right; then come two bytes of length for each file but the last, and the files. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/hash.h"
#include "real/data/data_parts.h"
#include "real/data/pack_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_ELEMENTS = 3 * 32 * 32, N_FORMATS = 5, PACKED = 2, MOST_LABELS = 3 };

static const struct {
	struct psd_data_options options;
	unsigned n_files;
} formats[N_FORMATS] = {
	{{.source = {.kind = PSD_DATA_CIFAR10}, .shape = {3, 32, 32}, .classes = 10, .labels = 1}, 2},
	{{.source = {.kind = PSD_DATA_IDX}, .shape = {1, 2, 3}, .classes = 10, .labels = 1}, 4},
	{{.source = {.kind = PSD_DATA_PACKED, .is_mirrored = true}, .shape = {3, 8, 8}, .classes = 3, .labels = 1}, 2},
	{{.source = {.kind = PSD_DATA_TEXT}, .shape = {1, 3, 1}, .classes = 128, .labels = 3, .vocabulary = 128}, 2},
	{{.source = {.kind = PSD_DATA_TOKENS}, .shape = {1, 3, 1}, .classes = 999, .labels = 1, .vocabulary = 512}, 2},
};

static void put_u64(uint8_t *bytes, uint64_t value)
{
	for (unsigned i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
}

/* Otherwise no change would get past the checksums. */
static void seal(uint8_t *bytes, uint64_t n_bytes)
{
	uint64_t n_samples, checksum;

	if (n_bytes < PSD_PACK_HEADER_BYTES)
		return;
	n_samples = psd_little_u64(bytes + 16);
	if (n_samples > (n_bytes - PSD_PACK_HEADER_BYTES) / PSD_PACK_ENTRY_BYTES)
		return;
	put_u64(bytes + 48, n_bytes);
	for (uint64_t i = 0; i < n_samples; i++) {
		uint8_t *entry = bytes + PSD_PACK_HEADER_BYTES + i * PSD_PACK_ENTRY_BYTES;
		const uint64_t offset = psd_little_u64(entry), length = psd_little_u32(entry + 8);

		if (offset <= n_bytes && length <= n_bytes - offset)
			put_u64(entry + 16, psd_hash_bytes(PSD_HASH_START, bytes + offset, length));
	}
	checksum = psd_hash_bytes(PSD_HASH_START, bytes, 64);
	put_u64(bytes + 64, psd_hash_bytes(checksum, bytes + PSD_PACK_HEADER_BYTES, n_samples * PSD_PACK_ENTRY_BYTES));
}

/* Each file in memory of its own, so that a read behind its end is seen. */
static void cut_files(struct psd_data_files *files, uint8_t *copies[], unsigned n_files, bool is_sealed,
		      const uint8_t *data, size_t size)
{
	for (unsigned i = 0; i < n_files; i++) {
		size_t n_bytes = size;

		if (i + 1 < n_files && size >= 2) {
			n_bytes = data[0] | (size_t)data[1] << 8;
			data += 2;
			size -= 2;
			n_bytes = n_bytes < size ? n_bytes : size;
		}
		copies[i] = malloc(n_bytes ? n_bytes : 1);
		if (!copies[i])
			abort();
		memcpy(copies[i], data, n_bytes);
		if (is_sealed)
			seal(copies[i], n_bytes);
		if (psd_mapping_borrow(&files->files[files->n_files++], "fuzz", copies[i], n_bytes, NULL))
			abort();
		data += n_bytes;
		size -= n_bytes;
	}
}

static void read_samples(struct psd_data *data, const struct psd_data_options *options)
{
	static float image[MAX_ELEMENTS];

	for (unsigned part = PSD_DATA_TRAINING; part <= PSD_DATA_TEST; part++)
		for (uint64_t sample = 0; sample < psd_data_samples(data, (enum psd_data_part)part) && sample < 64;
		     sample++) {
			struct psd_error err = {.text = ""};
			int32_t labels[MOST_LABELS] = {0};

			if (psd_data_read(data, (enum psd_data_part)part, 1, sample, image, labels, &err)) {
				if (!*err.text)
					abort();
				continue;
			}
			for (uint64_t i = 0; i < options->labels; i++)
				if (labels[i] < 0 || labels[i] >= (int32_t)options->classes)
					abort();
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const unsigned format = size ? (data[0] & 0x7f) % N_FORMATS : 0;
	struct psd_data_files files = {.n_files = 0};
	uint8_t *copies[PSD_DATA_MAX_FILES] = {NULL};
	struct psd_error err = {.text = ""};
	struct psd_data *set;

	if (!size)
		return 0;
	cut_files(&files, copies, formats[format].n_files, format == PACKED && data[0] & 0x80, data + 1, size - 1);
	if (psd_data_open_mapped(&set, &formats[format].options, &files, &err) == PSD_OK) {
		read_samples(set, &formats[format].options);
		psd_data_close(set);
	} else if (!*err.text) {
		abort();
	}
	for (unsigned i = 0; i < PSD_DATA_MAX_FILES; i++)
		free(copies[i]);
	return 0;
}
