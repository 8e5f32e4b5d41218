/* Named tensors in one file, in the safetensors format, which other programs (PyTorch, NumPy) read and write as well.
 * Integers are little-endian and unsigned. Values are never converted. Offset, length and content of each part:
 *
 *      0   8  N, the number of bytes of the header
 *      8   N  header: a JSON object in UTF-8, with blanks after it
 *   8+N       data: the values of all tensors, little-endian, without gaps
 *
 *   {"__metadata__": {"KEY": "TEXT", ...},
 *    "NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [BEGIN, END]}, ...}
 *
 * Offsets are counted in bytes from the beginning of the data. A tensor without dimensions has one value. psd adds
 * blanks to the header so that the data begin at a multiple of 8 bytes. It writes types with larger values first, so
 * that the offset of each value is a multiple of its size. Source: https://github.com/huggingface/safetensors
 *
 * The header is read by the YAML reader, which accepts nearly all JSON. So a few valid headers are an error:
 *   - headers of more than 16 MiB, which is about a hundred thousand tensors;
 *   - names and keys of more than 1,000 characters, or with a zero byte;
 *   - characters beyond U+FFFF that are written as two escapes (without escapes they are accepted);
 *   - the characters delete, U+FFFE and U+FFFF without escapes; in names and keys also the characters that end a line
 *     in Unicode (in texts such a character may become a blank);
 *   - tensors of more than 8 dimensions, or of a type that is not in enum psd_tensor_type.
 * Some headers that are not valid JSON are accepted. Keys that the format does not know are ignored.
 *
 * A file that psd has written has a text 'psd_checksums' in __metadata__: "psd_xxh64 FRONT FIRST SECOND ...". FRONT,
 * FIRST and so on are checksums of 16 hexadecimal digits. FRONT is the checksum of all bytes before the data, in which
 * its own digits count as '0'. The others are checksums of the tensors' values, in the order of the data. A changed bit
 * of the header is found when the file is opened, a changed bit of the values by psd_tensor_file_verify(). A file
 * without this text has no checksums. Source of XXH64: engine/base/xxh64.h
 *
 * Values stay in the file until they are read. The host's memory is little-endian, as everywhere in real/. */
#ifndef PSD_REAL_TENSOR_FILE_H
#define PSD_REAL_TENSOR_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"

struct psd_mapping;
struct psd_tensor;

#define PSD_CHECKSUMS_KEY "psd_checksums" /* key, in __metadata__, of the text with the checksums */
/* First word of the text of the checksums; it names the kind of checksum. */
#define PSD_CHECKSUMS_KIND "psd_xxh64"
enum { PSD_CHECKSUM_DIGITS = 16 }; /* hexadecimal digits of a checksum */

/* Types of values, with the names that the format uses. psd writes only some of these types, and reads all of them. */
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

enum { PSD_FILE_TENSOR_DIMS = 8 }; /* largest number of dimensions of a tensor */

struct psd_file_tensor {
	/* Name of the tensor. When a file is written, the name belongs to the caller; when a file is read, it is valid
	 * until the file is closed. */
	const char *name;
	enum psd_tensor_type type;
	unsigned n_dims; /* number of dimensions, up to PSD_FILE_TENSOR_DIMS; 0: the tensor is one value */
	uint64_t dims[PSD_FILE_TENSOR_DIMS];
};

/* Note: a key and its text in __metadata__. When a file is written, both belong to the caller, and the note with the
 * checksums is added to the caller's notes. */
struct psd_file_note {
	const char *key, *value;
};

const char *psd_tensor_type_name(enum psd_tensor_type type); /* name of the type in the file, such as "F32" */
unsigned psd_tensor_type_bytes(enum psd_tensor_type type);   /* bytes of one value of the type */
/* Returns the description of a model's tensor, whose name it borrows. Pure. */
struct psd_file_tensor psd_file_tensor_of(const struct psd_tensor *tensor);
/* Sets *n_bytes to the bytes of all values of a tensor. Returns false if the number is 2^64 or more; then *n_bytes is
 * unchanged. Pure. */
bool psd_file_tensor_bytes(const struct psd_file_tensor *tensor, uint64_t *n_bytes);

/* ---- writing ---- */

struct psd_tensor_writer;

/* Begins to write a tensor file. The new file is PATH.part until psd_tensor_writer_finish(); a file at `path` stays
 * unchanged until then. If a killed process has left a PATH.part, it is overwritten. If `path` is a symbolic link to a
 * file, that file is replaced. Several writers may be open, each used by one thread. tensors, notes: all tensors and
 * notes of the file, with unique names and keys; they must stay valid during this call. On success the caller calls
 * psd_tensor_writer_close(). PSD_EFILE: PATH.part cannot be written, or another process is writing it; PSD_EINVAL:
 * psd_tensor_file_open() would not accept a name, or there are too many values; PSD_ENOMEM. */
enum psd_status psd_tensor_writer_open(struct psd_tensor_writer **writer, const char *path,
				       const struct psd_file_tensor tensors[], unsigned n_tensors,
				       const struct psd_file_note notes[], unsigned n_notes,
				       struct psd_error *err) PSD_MUST_CHECK;
/* Appends n_bytes bytes of the tensors' values, in the order of tensors[]. A call may cover several tensors, and may
 * end inside a value. All calls together must not append more than the bytes of all tensors. A call needs one system
 * call per tensor. PSD_ERUN: writing failed. */
enum psd_status psd_tensor_writer_add(struct psd_tensor_writer *writer, const void *values, uint64_t n_bytes,
				      struct psd_error *err) PSD_MUST_CHECK;
/* Completes the file; called once, after all values are appended. Flushes PATH.part to the disk, then renames it to
 * `path`. PSD_ERUN: a step failed. Even then the file at `path` is complete: it is either the old one or the new
 * one. */
enum psd_status psd_tensor_writer_finish(struct psd_tensor_writer *writer, struct psd_error *err) PSD_MUST_CHECK;
/* Frees a writer, and removes PATH.part unless psd_tensor_writer_finish() has succeeded. NULL is allowed. */
void psd_tensor_writer_close(struct psd_tensor_writer *writer);

/* ---- reading ---- */

struct psd_tensor_file;

/* Opens a tensor file for reading; the caller calls psd_tensor_file_close(). The file stays mapped until then; in the
 * meantime another process may replace it, but not shorten it. PSD_EFILE: the file cannot be opened; PSD_EINVAL: it is
 * incomplete or of another format, its tensors leave gaps or overlap, or the checksum of the header differs. The text
 * has the byte offset, or the line and column of the header. PSD_ERUN: the file was shortened during this call;
 * PSD_ENOMEM. */
enum psd_status psd_tensor_file_open(struct psd_tensor_file **file, const char *path,
				     struct psd_error *err) PSD_MUST_CHECK;
/* The results of the next three functions stay valid until psd_tensor_file_close(). Any thread. */

/* Returns tensor number `number`, counted from 0 in the order of the values in the file. NULL: the file has no tensor
 * with this number. */
const struct psd_file_tensor *psd_tensor_file_at(const struct psd_tensor_file *file, unsigned number);
/* Returns the tensor with this name; NULL if there is none. Takes constant time. */
const struct psd_file_tensor *psd_tensor_file_find(const struct psd_tensor_file *file, const char *name);
/* Returns the text of a key in __metadata__; NULL if there is none. */
const char *psd_tensor_file_note(const struct psd_tensor_file *file, const char *key);
/* Copies n_bytes bytes of a tensor's values to `to`, which may have any alignment. The first copied byte is byte
 * first_byte of the tensor. Several threads may call it at the same time. PSD_ERUN: the file was shortened since it was
 * opened. */
enum psd_status psd_tensor_file_read(struct psd_tensor_file *file, const struct psd_file_tensor *tensor,
				     uint64_t first_byte, uint64_t n_bytes, void *to,
				     struct psd_error *err) PSD_MUST_CHECK;
/* Compares the values of all tensors with the checksums in the file. *has_checksums becomes false if the file has none.
 * PSD_EINVAL: a checksum differs; the text names the tensor; PSD_ERUN: the file was shortened since it was opened. */
enum psd_status psd_tensor_file_verify(struct psd_tensor_file *file, bool *has_checksums,
				       struct psd_error *err) PSD_MUST_CHECK;
/* Finds the first value of a tensor that is infinite or not a number (NaN), and sets *element to its index. *is_found
 * becomes false if there is none, or if the tensor's type is not a floating-point type of 2, 4 or 8 bytes. Threads and
 * statuses as psd_tensor_file_read(). */
enum psd_status psd_tensor_file_find_odd(struct psd_tensor_file *file, const struct psd_file_tensor *tensor,
					 bool *is_found, uint64_t *element, struct psd_error *err) PSD_MUST_CHECK;
/* Finds the first of n values in memory that is infinite or not a number (NaN), sets *element to its index and returns
 * true. Returns false if there is none. Pure. */
bool psd_find_odd(enum psd_tensor_type type, const void *values, uint64_t n, uint64_t *element);
/* Closes a file. NULL is allowed. */
void psd_tensor_file_close(struct psd_tensor_file *file);

/* ---- for the writer and the tests ---- */

/* Does the same as psd_tensor_file_open() for a file that is mapped already. It takes ownership of *mapping, even
 * on failure. */
enum psd_status psd_tensor_file_open_mapped(struct psd_tensor_file **file, struct psd_mapping *mapping,
					    struct psd_error *err) PSD_MUST_CHECK;
/* Checks that psd_tensor_file_open() would accept a file with this header (the `length` bytes of `text`) and
 * n_data_bytes bytes of data. path: name of the file for errors. PSD_EINVAL: it would not; the text has line and
 * column. PSD_ENOMEM. */
enum psd_status psd_tensor_file_check_header(const char *path, const char *text, uint64_t length, uint64_t n_data_bytes,
					     struct psd_error *err) PSD_MUST_CHECK;

#endif
