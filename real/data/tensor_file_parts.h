/* Parts of the reader of safetensors. Private to real/data/tensor_file*.c. */
#ifndef PSD_REAL_TENSOR_FILE_PARTS_H
#define PSD_REAL_TENSOR_FILE_PARTS_H

#include "engine/base/arena.h"
#include "engine/base/names.h"
#include "real/data/mapping.h"
#include "real/data/tensor_file.h"

struct psd_file_entry {
	struct psd_file_tensor tensor; /* first member, so that a caller's pointer leads to the entry */
	uint64_t begin, end;	       /* bytes from the beginning of the data */
	uint64_t checksum;	       /* checksum of the values, if the file has checksums */
	struct psd_place at;	       /* valid while the header's tree exists */
};

struct psd_tensor_file {
	struct psd_mapping mapping;
	const uint8_t *data;
	struct psd_arena arena;		/* owns the members below */
	struct psd_file_entry *entries; /* in the order of their data */
	unsigned n_entries;
	struct psd_file_note *notes;
	unsigned n_notes;
	bool has_checksums;
	struct psd_names numbers; /* entries by name */
};

/* Reads the checksums of a file whose header has been read, and compares that of the header. PSD_EINVAL. */
enum psd_status psd_tensor_file_read_checksums(struct psd_tensor_file *file, struct psd_error *err) PSD_MUST_CHECK;

#endif
