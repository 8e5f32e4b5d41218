/* Writer of safetensors: writes PATH.part and renames it when it is complete. Refuses tensors that tensor_file.c would
 * not read again. */
#define _GNU_SOURCE
#include "real/data/tensor_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/output.h"
#include "engine/base/text.h"
#include "engine/base/xxh64.h"
#include "real/data/mapping.h"

enum { LENGTH_BYTES = 8, WIDEST_BYTES = 8, MODE = 0666, MODE_BITS = 0777, MOST_TRIES = 100 };
enum { MOST_BYTES_AT_ONCE = 1 << 30 }; /* Linux writes a little less than 2 GiB in a call */

struct part {
	uint64_t offset; /* offset of the values, first from the begin of the data, later from the begin of the file */
	uint64_t n_bytes;
	uint64_t checksum;
};

struct psd_tensor_writer {
	char *path;	   /* the caller's path */
	char *target_path; /* path after symbolic links are followed: the file that is replaced */
	char *part_path;   /* target_path + ".part" */
	int descriptor;	   /* file at part_path, locked; -1: none */
	bool is_finished;
	struct part *parts; /* one for each tensor, in the caller's order */
	unsigned n_parts;
	unsigned current; /* number of the tensor whose values come next; all earlier tensors are written */
	uint64_t n_current_bytes;
	uint64_t n_data_bytes;
	struct psd_xxh64 sum;	/* checksum of the current tensor's values written so far */
	struct psd_text front;	/* header with its length before it; digits of checksums are '0' until all are known */
	size_t checksums_begin; /* position of the checksums' digits in `front` */
};

static enum psd_status cannot_write(const struct psd_tensor_writer *writer, enum psd_status status,
				    struct psd_error *err)
{
	return psd_error_set(err, status, (struct psd_place){.path = writer->path}, "cannot be written: %s",
			     strerror(errno));
}

/* ---- the header ---- */

/* Offsets with wide types first: then each value lies at a multiple of its size. */
static enum psd_status lay_out(struct psd_tensor_writer *writer, const struct psd_file_tensor tensors[],
			       struct psd_error *err)
{
	for (unsigned i = 0; i < writer->n_parts; i++) {
		assert(tensors[i].n_dims <= PSD_FILE_TENSOR_DIMS);
		if (!psd_file_tensor_bytes(&tensors[i], &writer->parts[i].n_bytes))
			return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = writer->path},
					     "tensor '%.80s' has more values than can be counted", tensors[i].name);
	}
	for (unsigned width = WIDEST_BYTES; width; width /= 2)
		for (unsigned i = 0; i < writer->n_parts; i++) {
			struct part *part = &writer->parts[i];

			if (psd_tensor_type_bytes(tensors[i].type) != width)
				continue;
			if (part->n_bytes > INT64_MAX / 2 - writer->n_data_bytes)
				return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = writer->path},
						     "the tensors have more bytes together than a file can have");
			part->offset = writer->n_data_bytes;
			writer->n_data_bytes += part->n_bytes;
		}
	return PSD_OK;
}

/* Room for the checksums, one of the front and one of each tensor, comes last. */
static void add_notes(struct psd_text *header, struct psd_tensor_writer *writer, const struct psd_file_note notes[],
		      unsigned n_notes)
{
	psd_text_add(header, "\"__metadata__\":{");
	for (unsigned i = 0; i < n_notes; i++) {
		psd_text_add_json(header, notes[i].key);
		psd_text_add(header, ":");
		psd_text_add_json(header, notes[i].value);
		psd_text_add(header, ",");
	}
	psd_text_add(header, "\"%s\":\"%s", PSD_CHECKSUMS_KEY, PSD_CHECKSUMS_KIND);
	writer->checksums_begin = LENGTH_BYTES + header->length;
	for (unsigned i = 0; i <= writer->n_parts; i++)
		psd_text_add(header, " %0*d", PSD_CHECKSUM_DIGITS, 0);
	psd_text_add(header, "\"}");
}

static void add_tensor(struct psd_text *header, const struct psd_file_tensor *tensor, const struct part *part)
{
	psd_text_add_json(header, tensor->name);
	psd_text_add(header, ":{\"dtype\":\"%s\",\"shape\":[", psd_tensor_type_name(tensor->type));
	for (unsigned d = 0; d < tensor->n_dims; d++)
		psd_text_add(header, "%s%" PRIu64, d ? "," : "", tensor->dims[d]);
	psd_text_add(header, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", part->offset,
		     part->offset + part->n_bytes);
}

/* Adds tensors in the order of their data. */
static void add_tensors(struct psd_text *header, const struct psd_tensor_writer *writer,
			const struct psd_file_tensor tensors[])
{
	for (unsigned width = WIDEST_BYTES; width; width /= 2)
		for (unsigned i = 0; i < writer->n_parts; i++)
			if (psd_tensor_type_bytes(tensors[i].type) == width) {
				psd_text_add(header, header->length > 1 ? "," : "");
				add_tensor(header, &tensors[i], &writer->parts[i]);
			}
}

/* Makes the header, and checks it by the functions that read one. */
static enum psd_status make_front(struct psd_tensor_writer *writer, const struct psd_file_tensor tensors[],
				  const struct psd_file_note notes[], unsigned n_notes, struct psd_error *err)
{
	struct psd_text header = {.bytes = NULL}, *front = &writer->front;

	psd_text_add(&header, "{");
	add_notes(&header, writer, notes, n_notes);
	add_tensors(&header, writer, tensors);
	psd_text_add(&header, "}");
	while (header.length % WIDEST_BYTES && !header.is_out_of_memory)
		psd_text_add(&header, " ");
	for (unsigned i = 0; i < LENGTH_BYTES; i++)
		psd_text_add_bytes(front, &(char){(char)((uint64_t)header.length >> 8 * i & 0xff)}, 1);
	psd_text_add_bytes(front, header.bytes, header.length);
	const enum psd_status status = header.is_out_of_memory || front->is_out_of_memory
					       ? psd_out_of_memory(err)
					       : psd_tensor_file_check_header(writer->path, header.bytes, header.length,
									      writer->n_data_bytes, err);
	psd_text_release(&header);
	return status;
}

/* ---- the target ---- */

/* The new file gets the mode of the one that it replaces. */
static enum psd_status find_target(struct psd_tensor_writer *writer, bool *exists, mode_t *mode, struct psd_error *err)
{
	struct psd_text part = {.bytes = NULL};
	struct stat facts;

	*exists = !stat(writer->path, &facts);
	*mode = *exists ? facts.st_mode & MODE_BITS : MODE;
	if (*exists && !S_ISREG(facts.st_mode))
		return psd_error_set(err, PSD_EFILE, (struct psd_place){.path = writer->path},
				     "must be a regular file");
	writer->target_path = *exists ? realpath(writer->path, NULL) : psd_mapping_path(NULL, writer->path);
	if (!writer->target_path)
		return *exists ? cannot_write(writer, PSD_EFILE, err) : psd_out_of_memory(err);
	psd_text_add(&part, "%s.part", writer->target_path);
	writer->part_path = part.bytes;
	return part.is_out_of_memory ? psd_out_of_memory(err) : PSD_OK;
}

static bool is_at(int descriptor, const char *path)
{
	struct stat opened, there;

	return !fstat(descriptor, &opened) && !lstat(path, &there) && opened.st_dev == there.st_dev &&
	       opened.st_ino == there.st_ino;
}

/* Opens and locks the file at `path`, so that only one process writes it, and returns its descriptor. Between open and
 * lock another process may have renamed the file; then it is not this path any more, and a new one is opened. Returns
 * -1 with errno, EWOULDBLOCK if another process has the lock. Works without a lock where the file system has none. */
static int open_locked(const char *path)
{
	for (unsigned tries = 0; tries < MOST_TRIES; tries++) {
		const int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, MODE);
		bool is_locked;

		if (descriptor < 0)
			return -1;
		is_locked = flock(descriptor, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
		if (!is_locked && is_at(descriptor, path))
			return descriptor;
		close(descriptor);
		if (is_locked)
			break;
	}
	errno = EWOULDBLOCK;
	return -1;
}

static enum psd_status open_part(struct psd_tensor_writer *writer, struct psd_error *err)
{
	bool exists;
	mode_t mode;

	PSD_TRY(find_target(writer, &exists, &mode, err));
	PSD_TRY(psd_output_check(writer->part_path, err));
	writer->descriptor = open_locked(writer->part_path);
	if (writer->descriptor < 0 && errno == EWOULDBLOCK)
		return psd_error_set(err, PSD_EFILE, (struct psd_place){.path = writer->path},
				     "is being written by another run");
	if (writer->descriptor < 0 || ftruncate(writer->descriptor, 0))
		return cannot_write(writer, PSD_EFILE, err);
	if (exists)
		(void)fchmod(writer->descriptor, mode); /* if not allowed it keeps the mode of a new file */
	return PSD_OK;
}

/* Returns false and sets errno on failure. */
static bool write_at(int descriptor, uint64_t offset, const void *bytes, uint64_t n_bytes)
{
	const uint8_t *at = bytes;

	while (n_bytes) {
		const size_t wanted = (size_t)(n_bytes < MOST_BYTES_AT_ONCE ? n_bytes : MOST_BYTES_AT_ONCE);
		const ssize_t n_written = pwrite(descriptor, at, wanted, (off_t)offset);

		if (n_written < 0 && errno != EINTR)
			return false;
		if (n_written == 0) {
			errno = EIO;
			return false;
		}
		if (n_written > 0) {
			at += n_written;
			offset += (uint64_t)n_written;
			n_bytes -= (uint64_t)n_written;
		}
	}
	return true;
}

/* ---- public functions ---- */

static enum psd_status begin(struct psd_tensor_writer *writer, const struct psd_file_tensor tensors[],
			     const struct psd_file_note notes[], unsigned n_notes, struct psd_error *err)
{
	PSD_TRY(lay_out(writer, tensors, err));
	PSD_TRY(make_front(writer, tensors, notes, n_notes, err));
	PSD_TRY(open_part(writer, err));
	if (!write_at(writer->descriptor, 0, writer->front.bytes, writer->front.length))
		return cannot_write(writer, PSD_ERUN, err);
	writer->sum = psd_xxh64_begin();
	for (unsigned i = 0; i < writer->n_parts; i++) {
		writer->parts[i].offset += writer->front.length;
		writer->parts[i].checksum = psd_xxh64_end(&writer->sum);
	}
	return PSD_OK;
}

enum psd_status psd_tensor_writer_open(struct psd_tensor_writer **writer, const char *path,
				       const struct psd_file_tensor tensors[], unsigned n_tensors,
				       const struct psd_file_note notes[], unsigned n_notes, struct psd_error *err)
{
	struct psd_tensor_writer *fresh = calloc(1, sizeof(*fresh));
	enum psd_status status = PSD_OK;

	if (!fresh)
		return psd_out_of_memory(err);
	fresh->descriptor = -1;
	fresh->n_parts = n_tensors;
	fresh->path = psd_mapping_path(NULL, path);
	fresh->parts = calloc(n_tensors + (size_t)1, sizeof(*fresh->parts));
	if (!fresh->path || !fresh->parts)
		status = psd_out_of_memory(err);
	if (!status)
		status = begin(fresh, tensors, notes, n_notes, err);
	if (status)
		psd_tensor_writer_close(fresh);
	else
		*writer = fresh;
	return status;
}

/* Finishes the current tensor, and begins the next one. */
static void end_part(struct psd_tensor_writer *writer)
{
	writer->parts[writer->current++].checksum = psd_xxh64_end(&writer->sum);
	writer->n_current_bytes = 0;
	writer->sum = psd_xxh64_begin();
}

enum psd_status psd_tensor_writer_add(struct psd_tensor_writer *writer, const void *values, uint64_t n_bytes,
				      struct psd_error *err)
{
	const uint8_t *from = values;

	while (n_bytes) {
		const struct part *part = &writer->parts[writer->current];
		const uint64_t n_left_bytes = part->n_bytes - writer->n_current_bytes;
		const uint64_t n_piece_bytes = n_bytes < n_left_bytes ? n_bytes : n_left_bytes;

		assert(writer->current < writer->n_parts); /* the list ends with a part without bytes */
		if (!write_at(writer->descriptor, part->offset + writer->n_current_bytes, from, n_piece_bytes))
			return cannot_write(writer, PSD_ERUN, err);
		psd_xxh64_add(&writer->sum, from, n_piece_bytes);
		from += n_piece_bytes;
		n_bytes -= n_piece_bytes;
		writer->n_current_bytes += n_piece_bytes;
		if (writer->n_current_bytes == part->n_bytes)
			end_part(writer);
	}
	return PSD_OK;
}

static bool has_all(const struct psd_tensor_writer *writer)
{
	for (unsigned i = writer->current; i < writer->n_parts; i++)
		if (writer->parts[i].n_bytes)
			return false;
	return true;
}

/* Makes the new name survive a crash of the machine, unless the folder is unreadable or the file system cannot. Returns
 * false and sets errno on failure. */
static bool sync_folder(const char *path)
{
	char *folder = psd_mapping_path(NULL, path), *slash = folder ? strrchr(folder, '/') : NULL;
	bool is_synced = true;

	if (!folder)
		return false;
	if (slash)
		slash[slash == folder] = '\0';
	const int descriptor = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (descriptor >= 0) {
		is_synced = !fsync(descriptor) || errno == EINVAL;
		close(descriptor);
	}
	free(folder);
	return is_synced;
}

/* Writes a checksum's digits to `front`; number 0: checksum of `front` itself, number i + 1: of the tensor whose data
 * is number i in the file. */
static void put_checksum(struct psd_tensor_writer *writer, unsigned number, uint64_t checksum)
{
	char digits[PSD_CHECKSUM_DIGITS + 1];

	snprintf(digits, sizeof(digits), "%0*" PRIx64, PSD_CHECKSUM_DIGITS, checksum);
	memcpy(writer->front.bytes + writer->checksums_begin + (size_t)number * (PSD_CHECKSUM_DIGITS + 1) + 1, digits,
	       PSD_CHECKSUM_DIGITS);
}

static int by_offset(const void *left, const void *right)
{
	const struct part *one = left, *other = right;

	if (one->offset != other->offset)
		return one->offset < other->offset ? -1 : 1;
	return (one->n_bytes > other->n_bytes) - (one->n_bytes < other->n_bytes);
}

/* Writes all checksums to the file, after all values. */
static bool write_checksums(struct psd_tensor_writer *writer)
{
	struct psd_xxh64 sum = psd_xxh64_begin();

	qsort(writer->parts, writer->n_parts, sizeof(*writer->parts), by_offset);
	for (unsigned i = 0; i < writer->n_parts; i++)
		put_checksum(writer, i + 1, writer->parts[i].checksum);
	psd_xxh64_add(&sum, writer->front.bytes, writer->front.length);
	put_checksum(writer, 0, psd_xxh64_end(&sum));
	return write_at(writer->descriptor, 0, writer->front.bytes, writer->front.length);
}

enum psd_status psd_tensor_writer_finish(struct psd_tensor_writer *writer, struct psd_error *err)
{
	assert(has_all(writer) && !writer->is_finished);
	if (!write_checksums(writer) || fsync(writer->descriptor) || rename(writer->part_path, writer->target_path))
		return cannot_write(writer, PSD_ERUN, err);
	writer->is_finished = true;
	return sync_folder(writer->target_path) ? PSD_OK : cannot_write(writer, PSD_ERUN, err);
}

void psd_tensor_writer_close(struct psd_tensor_writer *writer)
{
	if (!writer)
		return;
	if (writer->descriptor >= 0) {
		if (!writer->is_finished)
			unlink(writer->part_path);
		close(writer->descriptor);
	}
	psd_text_release(&writer->front);
	free(writer->part_path);
	free(writer->target_path);
	free(writer->parts);
	free(writer->path);
	free(writer);
}
