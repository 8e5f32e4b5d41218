/* Named tensors in one file, in the safetensors format, which other programs (PyTorch, NumPy) read and write as well.
 * Integers are little-endian and unsigned. Refuses to convert values.
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
 * The header is read as YAML, of which JSON is nearly a part. So a few valid headers are refused:
 *   - more than 16 MiB, which is about a hundred thousand tensors;
 *   - names and keys of more than 1,000 characters, or with a zero byte;
 *   - characters beyond U+FFFF that are written as two escapes (written as themselves they are taken);
 *   - delete, U+FFFE and U+FFFF that are written as themselves, and in names and keys what ends a line in Unicode (in
 *     texts it may become a blank);
 *   - tensors of more than 8 dimensions, or of a type that is not below.
 * Some headers that are no JSON are taken. Keys that the format does not know are ignored.
 *
 * Values stay in the file until they are read. The host's memory is little-endian, as everywhere in real/. */
#ifndef PSD_REAL_TENSOR_FILE_H
#define PSD_REAL_TENSOR_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"

struct psd_mapping;

/* Types of values. psd writes some of them; files of other programs may have all. */
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

/* A text of __metadata__; borrowed when writing. */
struct psd_file_note {
	const char *key, *value;
};

const char *psd_tensor_type_name(enum psd_tensor_type type); /* as in the file: "F32" */
unsigned psd_tensor_type_bytes(enum psd_tensor_type type);   /* of one value */
/* *n_bytes: of all its values. False, and *n_bytes as it was: they are more than 64 bits can count. Pure. */
bool psd_file_tensor_bytes(const struct psd_file_tensor *tensor, uint64_t *n_bytes);

/* ---- writing ---- */

struct psd_tensor_writer;

/* Begins PATH.part, beside the file at path, which stays as it is until psd_tensor_writer_finish(). A PATH.part that a
 * killed process left is overwritten; a symbolic link to a file is followed. Several writers may be open, each in one
 * thread. tensors, notes: all that the file will have, names and keys unique; borrowed during this call. On success
 * *writer is the caller's to close. PSD_EFILE: it cannot be written there, or another process is writing it;
 * PSD_EINVAL: names that no reader would take, or too many values; PSD_ENOMEM. */
enum psd_status psd_tensor_writer_open(struct psd_tensor_writer **writer, const char *path,
				       const struct psd_file_tensor tensors[], unsigned n_tensors,
				       const struct psd_file_note notes[], unsigned n_notes,
				       struct psd_error *err) PSD_MUST_CHECK;
/* The next n_bytes of the values, in the order of tensors[], in pieces of any length: a piece may end inside a value
 * and cover several tensors. All pieces together have no more bytes than the tensors. A piece takes a system call for
 * each tensor. PSD_ERUN: they cannot be written. */
enum psd_status psd_tensor_writer_add(struct psd_tensor_writer *writer, const void *values, uint64_t n_bytes,
				      struct psd_error *err) PSD_MUST_CHECK;
/* Once, after all values: brings the file to the disk and then into its place. PSD_ERUN: it may not be there; what lies
 * at path is whole all the same, the old one or this. */
enum psd_status psd_tensor_writer_finish(struct psd_tensor_writer *writer, struct psd_error *err) PSD_MUST_CHECK;
/* Removes PATH.part where the file is not finished. NULL is allowed. */
void psd_tensor_writer_close(struct psd_tensor_writer *writer);

/* ---- reading ---- */

struct psd_tensor_file;

/* On success *file is the caller's to close. It stays mapped until then, and may be replaced meanwhile. PSD_EFILE: it
 * cannot be opened; PSD_EINVAL with the byte, or line and column of the header: it is no whole file of this format, or
 * its tensors leave gaps or overlap; PSD_ERUN: it was shortened meanwhile; PSD_ENOMEM. */
enum psd_status psd_tensor_file_open(struct psd_tensor_file **file, const char *path,
				     struct psd_error *err) PSD_MUST_CHECK;
/* What these three return is borrowed until psd_tensor_file_close(). Any thread. */

/* The tensors in the order of their values, from number 0; NULL: there are no more. */
const struct psd_file_tensor *psd_tensor_file_at(const struct psd_tensor_file *file, unsigned number);
/* By a table of names, without a search through all. NULL: there is none of this name. */
const struct psd_file_tensor *psd_tensor_file_find(const struct psd_tensor_file *file, const char *name);
/* The text of a key of __metadata__; NULL: there is none. */
const char *psd_tensor_file_note(const struct psd_tensor_file *file, const char *key);
/* Copies n_bytes of a tensor of this file, from its first_byte on and no more than it has, to memory of any alignment.
 * Several threads may read at a time. PSD_ERUN: the file was shortened since it was opened. */
enum psd_status psd_tensor_file_read(struct psd_tensor_file *file, const struct psd_file_tensor *tensor,
				     uint64_t first_byte, uint64_t n_bytes, void *to,
				     struct psd_error *err) PSD_MUST_CHECK;
/* NULL is allowed. */
void psd_tensor_file_close(struct psd_tensor_file *file);

/* ---- for the writer and the tests ---- */

/* psd_tensor_file_open() of what is mapped already; owns *mapping from now on, on failure too. */
enum psd_status psd_tensor_file_open_mapped(struct psd_tensor_file **file, struct psd_mapping *mapping,
					    struct psd_error *err) PSD_MUST_CHECK;
/* Whether psd_tensor_file_open() would take a header of this text before n_data_bytes of data. PSD_EINVAL with line and
 * column, PSD_ENOMEM. */
enum psd_status psd_tensor_file_check_header(const char *path, const char *text, uint64_t length, uint64_t n_data_bytes,
					     struct psd_error *err) PSD_MUST_CHECK;

#endif
