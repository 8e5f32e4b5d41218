/* Any bytes as a file of tensors: either every tensor can be read and found by its name, and all of them together are
 * the data, or an error with a text. Never a crash, leak or hang. Each input is tried as it is, and with a length of
 * the header that is in the file. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "real/data/mapping.h"
#include "real/data/tensor_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LENGTH_BYTES = 8 };

/* Returns the bytes that are of the tensors. */
static uint64_t read_tensors(struct psd_tensor_file *file, const uint8_t *data)
{
	const struct psd_file_tensor *tensor;
	uint64_t n_data_bytes = 0;

	for (unsigned i = 0; (tensor = psd_tensor_file_at(file, i)); i++) {
		uint64_t n_bytes;
		uint8_t *values;

		if (psd_tensor_file_find(file, tensor->name) != tensor || tensor->n_dims > PSD_FILE_TENSOR_DIMS ||
		    !psd_file_tensor_bytes(tensor, &n_bytes))
			abort();
		values = malloc(n_bytes ? n_bytes : 1);
		if (!values || psd_tensor_file_read(file, tensor, 0, n_bytes, values, NULL) ||
		    memcmp(values, data + n_data_bytes, n_bytes) != 0)
			abort();
		n_data_bytes += n_bytes;
		free(values);
	}
	return n_data_bytes;
}

static void try_file(const uint8_t *bytes, size_t n_bytes)
{
	struct psd_error err = {.text = ""};
	struct psd_tensor_file *file;
	struct psd_mapping mapping;
	uint64_t n_front_bytes;
	bool has_checksums;

	if (psd_mapping_borrow(&mapping, "fuzz", bytes, n_bytes, NULL))
		abort();
	if (psd_tensor_file_open_mapped(&file, &mapping, &err)) {
		if (!*err.text)
			abort();
		return;
	}
	n_front_bytes = LENGTH_BYTES + psd_little_u64(bytes);
	if (n_front_bytes + read_tensors(file, bytes + n_front_bytes) != n_bytes)
		abort();
	(void)psd_tensor_file_note(file, "format");
	if (psd_tensor_file_verify(file, &has_checksums, &err) && !has_checksums)
		abort();
	psd_tensor_file_close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1); /* so that a read behind its end is seen */

	if (!copy)
		abort();
	memcpy(copy, data, size);
	try_file(copy, size);
	if (size >= LENGTH_BYTES) {
		const uint64_t length = psd_little_u64(data) % (size - LENGTH_BYTES + 1);

		for (unsigned i = 0; i < LENGTH_BYTES; i++)
			copy[i] = (uint8_t)(length >> 8 * i);
		try_file(copy, size);
	}
	free(copy);
	return 0;
}
