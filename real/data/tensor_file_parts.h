/* Types and functions that the files real/data/tensor_file*.c share. Private to them. They read the safetensors
 * format. */
#ifndef PSD_REAL_TENSOR_FILE_PARTS_H
#define PSD_REAL_TENSOR_FILE_PARTS_H

#include "engine/base/arena.h"
#include "engine/base/names.h"
#include "real/data/mapping.h"
#include "real/data/tensor_file.h"

/* Tensor of an open file, and its position in the file. */
struct psd_file_entry {
	/* must be the first member: a pointer to `tensor` is converted to a pointer to the entry */
	struct psd_file_tensor tensor;
	/* The values are the bytes begin to end - 1, counted from the beginning of the data. */
	uint64_t begin, end;
	uint64_t checksum; /* checksum of the values; valid only if the file has checksums */
	/* Line and column of the tensor in the header, for error messages; valid only while the header is read. */
	struct psd_place at;
};

struct psd_tensor_file {
	struct psd_mapping mapping;
	const uint8_t *data;		/* beginning of the data in the mapping */
	struct psd_arena arena;		/* memory for entries, notes and `numbers` */
	struct psd_file_entry *entries; /* tensors, in the order of their data */
	unsigned n_entries;
	struct psd_file_note *notes;
	unsigned n_notes;
	bool has_checksums;
	struct psd_names numbers; /* map from a tensor's name to its index in `entries` */
};

/* Names of types in files, indexed by enum psd_tensor_type; the last entry is NULL. */
extern const char *const psd_tensor_type_names[PSD_TENSOR_TYPES + 1];

/* Reads the checksums of a file whose header has been read, and compares the checksum of the header. checksums: the
 * note of the header that has them. PSD_EINVAL: the checksum of the header differs, or the checksums are malformed. */
enum psd_status psd_tensor_file_read_checksums(struct psd_tensor_file *file, const char *checksums,
					       struct psd_error *err) PSD_MUST_CHECK;

#endif
