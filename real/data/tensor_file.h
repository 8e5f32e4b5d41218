/* Named tensors in one file, in the safetensors format, which other programs (PyTorch, NumPy) read and write, too.
 * Integers are little-endian and unsigned.
 *
 *      0   8  bytes of the header, N
 *      8   N  header: a JSON object in UTF-8; blanks behind it
 *   8+N       data: the values of all tensors, little-endian, without a gap
 *
 *   {"__metadata__": {"KEY": "TEXT", ...},
 *    "NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [BEGIN, END]}, ...}
 *
 * Offsets count from the beginning of the data. A shape of no dimensions is one value. psd pads the header so that data
 * begin at a multiple of 8, and puts wide types first, so that each value lies at a multiple of its size. Source:
 * https://github.com/huggingface/safetensors
 *
 * The header is read as YAML, of which JSON is nearly a part. So a few right headers are refused: more than 16 MiB, or
 * a hundred thousand tensors or so; names and keys of more than 1,000 characters, or with a zero byte; characters
 * beyond U+FFFF as two escapes (as themselves they are taken); as themselves delete, U+FFFE, U+FFFF and, in names and
 * keys, what ends a line in Unicode (in texts it may become a blank). So are tensors of more than 8 dimensions, or of
 * another type than those below. Some headers that are no JSON are taken. Keys that the format does not know say
 * nothing.
 *
 * Values stay in the file until they are read. The host's memory is little-endian, as everywhere in real/. */
#ifndef PSD_REAL_TENSOR_FILE_H
#define PSD_REAL_TENSOR_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"

struct psd_mapping;

/* How values are kept. psd writes some of them; files of other programs may have all. */
enum psd_tensor_type {
	PSD_TENSOR_F32,
	PSD_TENSOR_F64,
	PSD_TENSOR_F16,
	PSD_TENSOR_BF16,
	PSD_TENSOR_F8_E4M3,
	PSD_TENSOR_F8_E5M2,
	PSD_TENSOR_I8,
	PSD_TENSOR_I16,
	PSD_TENSOR_I32,
	PSD_TENSOR_I64,
	PSD_TENSOR_U8,
	PSD_TENSOR_U16,
	PSD_TENSOR_U32,
	PSD_TENSOR_U64,
	PSD_TENSOR_BOOL,
	PSD_TENSOR_TYPES
};

enum { PSD_FILE_TENSOR_DIMS = 8 };

struct psd_file_tensor {
	const char *name; /* borrowed when writing; the file's when reading */
	enum psd_tensor_type type;
	unsigned n_dims; /* 0: one value */
	uint64_t dims[PSD_FILE_TENSOR_DIMS];
};

/* Of __metadata__. */
struct psd_file_note {
	const char *key, *value;
};

const char *psd_tensor_type_name(enum psd_tensor_type type); /* as in the file: "F32" */
unsigned psd_tensor_type_bytes(enum psd_tensor_type type);   /* of one value */
/* Of all its values. False: more than 64 bits count. */
bool psd_file_tensor_bytes(const struct psd_file_tensor *tensor, uint64_t *n_bytes);

/* ---- writing ---- */

struct psd_tensor_writer;

/* Begins PATH.part, beside what lies at path, which stays whole until psd_tensor_writer_finish(). What a killed process
 * left there is overwritten; a symbolic link at path is followed. Several writers may be open, each in one thread.
 * tensors, notes: all that the file will have, names and keys unique; borrowed during this call. Afterwards *writer is
 * the caller's to close. PSD_EFILE: it cannot be written there, or another process does so; PSD_EINVAL: names that no
 * reader would take, too many values; PSD_ENOMEM. */
enum psd_status psd_tensor_writer_open(struct psd_tensor_writer **writer, const char *path,
				       const struct psd_file_tensor tensors[], unsigned n_tensors,
				       const struct psd_file_note notes[], unsigned n_notes,
				       struct psd_error *err) PSD_MUST_CHECK;
/* The next n_bytes of the values, in the order of tensors[], in as many pieces as the caller likes: a piece may end
 * inside a value and go over several tensors. No more than there are. Each piece is a system call or more. PSD_ERUN:
 * they cannot be written. */
enum psd_status psd_tensor_writer_add(struct psd_tensor_writer *writer, const void *values, uint64_t n_bytes,
				      struct psd_error *err) PSD_MUST_CHECK;
/* After all values: the file is on the disk and in its place, whole or not at all. Once. PSD_ERUN: it is not known to
 * be. */
enum psd_status psd_tensor_writer_finish(struct psd_tensor_writer *writer, struct psd_error *err) PSD_MUST_CHECK;
/* Takes away what is not finished. NULL is allowed. */
void psd_tensor_writer_close(struct psd_tensor_writer *writer);

/* ---- reading ---- */

struct psd_tensor_file;

/* The file stays mapped until psd_tensor_file_close(), and may be replaced meanwhile. From one thread at a time.
 * PSD_EFILE: it cannot be opened; PSD_EINVAL with the byte, or line and column of the header: it is no file of this
 * format, whole and without overlaps or gaps; PSD_ERUN: it was shortened meanwhile; PSD_ENOMEM. */
enum psd_status psd_tensor_file_open(struct psd_tensor_file **file, const char *path,
				     struct psd_error *err) PSD_MUST_CHECK;
/* The tensors in the order of their values; NULL: there are no more. The file's, as all that is returned here. */
const struct psd_file_tensor *psd_tensor_file_at(const struct psd_tensor_file *file, unsigned number);
/* NULL: none. Not linear. */
const struct psd_file_tensor *psd_tensor_file_find(const struct psd_tensor_file *file, const char *name);
/* NULL: none. */
const char *psd_tensor_file_note(const struct psd_tensor_file *file, const char *key);
/* n_bytes of a tensor of this file, from first_byte on, to memory of any alignment. No more than it has. Several
 * threads may read at a time. PSD_ERUN: the file was shortened since it was opened. */
enum psd_status psd_tensor_file_read(struct psd_tensor_file *file, const struct psd_file_tensor *tensor,
				     uint64_t first_byte, uint64_t n_bytes, void *to,
				     struct psd_error *err) PSD_MUST_CHECK;
/* NULL is allowed. */
void psd_tensor_file_close(struct psd_tensor_file *file);

/* ---- for the writer and the tests ---- */

/* psd_tensor_file_open() of what is mapped already; takes *mapping over in any case. */
enum psd_status psd_tensor_file_open_mapped(struct psd_tensor_file **file, struct psd_mapping *mapping,
					    struct psd_error *err) PSD_MUST_CHECK;
/* Whether psd_tensor_file_open() would take a header of this text before n_data_bytes of data. PSD_EINVAL with line and
 * column, PSD_ENOMEM. */
enum psd_status psd_tensor_file_check_header(const char *path, const char *text, uint64_t length, uint64_t n_data_bytes,
					     struct psd_error *err) PSD_MUST_CHECK;

#endif
