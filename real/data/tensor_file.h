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
 * A file of psd has a text 'psd_checksums' in __metadata__: "psd_xxh64 FRONT FIRST SECOND ...", each of 16 hexadecimal
 * digits. FRONT is of all bytes before the data, with '0' as its own digits; the others are of the tensors' values, in
 * the order of the data. A changed bit of the header is found when the file is opened, one of the values by
 * psd_tensor_file_verify(). A file without this text has no checksums. Source of XXH64: engine/base/xxh64.h
 *
 * Values stay in the file until they are read. The host's memory is little-endian, as everywhere in real/. */
#ifndef PSD_REAL_TENSOR_FILE_H
#define PSD_REAL_TENSOR_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"

struct psd_mapping;

#define PSD_CHECKSUMS_KEY  "psd_checksums"
#define PSD_CHECKSUMS_KIND "psd_xxh64"
enum { PSD_CHECKSUM_DIGITS = 16 };

/* Types of values. psd writes some of them; files of other programs may have any. */
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
	const char *name; /* name of the tensor; borrowed when writing, owned by the file when reading */
	enum psd_tensor_type type;
	unsigned n_dims; /* number of dimensions; 0: the tensor is one value */
	uint64_t dims[PSD_FILE_TENSOR_DIMS];
};

/* Note: a key and its text in __metadata__; borrowed when writing. Checksums are added to those of a caller. */
struct psd_file_note {
	const char *key, *value;
};

const char *psd_tensor_type_name(enum psd_tensor_type type); /* name of the type in the file, "F32" */
unsigned psd_tensor_type_bytes(enum psd_tensor_type type);   /* bytes of one value of the type */
/* Bytes of all values of a tensor. Returns false, with *n_bytes unchanged, if they exceed 64 bits. Pure. */
bool psd_file_tensor_bytes(const struct psd_file_tensor *tensor, uint64_t *n_bytes);

/* ---- writing ---- */

struct psd_tensor_writer;

/* Begins PATH.part beside the file at path, which stays unchanged until psd_tensor_writer_finish(). Overwrites a
 * PATH.part that a killed process left; follows a symbolic link to a file. Several writers may be open, each in one
 * thread. tensors, notes: the whole contents, with unique names and keys; borrowed during this call. On success the
 * caller closes *writer. PSD_EFILE: it cannot be written, or another process is writing it; PSD_EINVAL: the reader
 * would refuse a name, or there are too many values; PSD_ENOMEM. */
enum psd_status psd_tensor_writer_open(struct psd_tensor_writer **writer, const char *path,
				       const struct psd_file_tensor tensors[], unsigned n_tensors,
				       const struct psd_file_note notes[], unsigned n_notes,
				       struct psd_error *err) PSD_MUST_CHECK;
/* Appends n_bytes of values, in the order of tensors[]. A piece may have any length, end inside a value and cover
 * several tensors. All pieces together have at most the bytes of the tensors. A piece takes a system call for each
 * tensor. PSD_ERUN: writing failed. */
enum psd_status psd_tensor_writer_add(struct psd_tensor_writer *writer, const void *values, uint64_t n_bytes,
				      struct psd_error *err) PSD_MUST_CHECK;
/* Completes the file after all values, called once: flushes it to the disk, then renames it to path. PSD_ERUN: the new
 * file may be missing; the file at path is complete all the same, old or new. */
enum psd_status psd_tensor_writer_finish(struct psd_tensor_writer *writer, struct psd_error *err) PSD_MUST_CHECK;
/* Closes a writer, and removes PATH.part unless the file is finished. NULL is allowed. */
void psd_tensor_writer_close(struct psd_tensor_writer *writer);

/* ---- reading ---- */

struct psd_tensor_file;

/* Opens a file, which the caller closes. It stays mapped until then, and may be replaced meanwhile. PSD_EFILE: it
 * cannot be opened; PSD_EINVAL with the byte, or line and column of the header: the file is incomplete or of another
 * format, its tensors leave gaps or overlap, or the checksum of the header differs; PSD_ERUN: it was shortened
 * meanwhile; PSD_ENOMEM. */
enum psd_status psd_tensor_file_open(struct psd_tensor_file **file, const char *path,
				     struct psd_error *err) PSD_MUST_CHECK;
/* Results of these three functions are borrowed until psd_tensor_file_close(). Any thread. */

/* Returns tensor `number`, in the order of their values, from 0; NULL behind the last one. */
const struct psd_file_tensor *psd_tensor_file_at(const struct psd_tensor_file *file, unsigned number);
/* Finds a tensor by name, quickly; NULL if there is none. */
const struct psd_file_tensor *psd_tensor_file_find(const struct psd_tensor_file *file, const char *name);
/* Finds the text of a key in __metadata__; NULL if there is none. */
const char *psd_tensor_file_note(const struct psd_tensor_file *file, const char *key);
/* Copies n_bytes of a tensor of this file, from first_byte on, to memory of any alignment. Several threads may read at
 * a time. PSD_ERUN: the file was shortened since it was opened. */
enum psd_status psd_tensor_file_read(struct psd_tensor_file *file, const struct psd_file_tensor *tensor,
				     uint64_t first_byte, uint64_t n_bytes, void *to,
				     struct psd_error *err) PSD_MUST_CHECK;
/* Compares all values with their checksums. *has_checksums: the file has some. PSD_EINVAL: the text names the tensor
 * that differs; PSD_ERUN: the file was shortened since it was opened. */
enum psd_status psd_tensor_file_verify(struct psd_tensor_file *file, bool *has_checksums,
				       struct psd_error *err) PSD_MUST_CHECK;
/* Finds the first value of a tensor of this file that is infinite or not a number. *is_found is false if there is none,
 * or its type is not of floating point in 2, 4 or 8 bytes. As psd_tensor_file_read(). */
enum psd_status psd_tensor_file_find_odd(struct psd_tensor_file *file, const struct psd_file_tensor *tensor,
					 bool *is_found, uint64_t *element, struct psd_error *err) PSD_MUST_CHECK;
/* The same for n values in memory. Pure. */
bool psd_find_odd(enum psd_tensor_type type, const void *values, uint64_t n, uint64_t *element);
/* Closes a file. NULL is allowed. */
void psd_tensor_file_close(struct psd_tensor_file *file);

/* ---- for the writer and the tests ---- */

/* Opens a file by its mapping, which it owns from now on, also on failure; see psd_tensor_file_open(). */
enum psd_status psd_tensor_file_open_mapped(struct psd_tensor_file **file, struct psd_mapping *mapping,
					    struct psd_error *err) PSD_MUST_CHECK;
/* Checks that psd_tensor_file_open() would accept this header before n_data_bytes of data. PSD_EINVAL with line and
 * column, PSD_ENOMEM. */
enum psd_status psd_tensor_file_check_header(const char *path, const char *text, uint64_t length, uint64_t n_data_bytes,
					     struct psd_error *err) PSD_MUST_CHECK;

#endif
