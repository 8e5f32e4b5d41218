/* Types and functions shared by the files of the reader of safetensors. Private to real/data/tensor_file*.c. */
#ifndef PSD_REAL_TENSOR_FILE_PARTS_H
#define PSD_REAL_TENSOR_FILE_PARTS_H

#include "engine/base/arena.h"
#include "engine/base/names.h"
#include "real/data/mapping.h"
#include "real/data/tensor_file.h"

/* Tensor of an open file. */
struct psd_file_entry {
	/* must be the first member: a pointer to `tensor` is converted to a pointer to the entry */
	struct psd_file_tensor tensor;
	/* first byte, and byte behind the last one, counted from the begin of the data */
	uint64_t begin, end;
	uint64_t checksum; /* checksum of the values, if the file has checksums */
	/* line and column in the header, for messages; valid only while the header is read */
	struct psd_place at;
};

struct psd_tensor_file {
	struct psd_mapping mapping;
	const uint8_t *data;		/* begin of the data in the mapping */
	struct psd_arena arena;		/* memory of entries, notes and numbers */
	struct psd_file_entry *entries; /* tensors, in the order of their data */
	unsigned n_entries;
	struct psd_file_note *notes;
	unsigned n_notes;
	bool has_checksums;
	struct psd_names numbers; /* numbers of the entries by name */
};

/* Reads the checksums of a file whose header has been read, and compares the checksum of the header. PSD_EINVAL: it
 * differs, or the checksums are malformed. */
enum psd_status psd_tensor_file_read_checksums(struct psd_tensor_file *file, struct psd_error *err) PSD_MUST_CHECK;

#endif
