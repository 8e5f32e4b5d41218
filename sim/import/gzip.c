#include "sim/import/gzip.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "engine/base/file.h"

enum { CHUNK_BYTES = 1 << 16, ANY_WINDOW_OF_GZIP = 15 + 16 };

struct psd_gzip {
	const char *path;
	int descriptor;	       /* -1: the bytes are in memory */
	const uint8_t *memory; /* rest of them */
	size_t memory_bytes;
	size_t taken_bytes; /* number of bytes in memory before the rest */
	uint8_t chunk[CHUNK_BYTES];
	const uint8_t *rest; /* part of the chunk that is not used yet */
	size_t rest_bytes;
	bool is_begun; /* bytes were read from the descriptor */
	bool is_packed;
	bool is_inside; /* a member of the gzip file is not at its end */
	z_stream stream;
};

static enum psd_status fill(struct psd_gzip *gzip, struct psd_error *err)
{
	if (gzip->rest_bytes)
		return PSD_OK;
	gzip->rest = gzip->chunk;
	if (gzip->descriptor >= 0) {
		PSD_TRY(psd_file_take(gzip->descriptor, gzip->is_begun, gzip->chunk, CHUNK_BYTES, &gzip->rest_bytes,
				      gzip->path, err));
		gzip->is_begun |= gzip->rest_bytes > 0;
		return PSD_OK;
	}
	gzip->rest = gzip->memory;
	gzip->rest_bytes = gzip->memory_bytes < CHUNK_BYTES ? gzip->memory_bytes : CHUNK_BYTES;
	gzip->memory += gzip->rest_bytes;
	gzip->memory_bytes -= gzip->rest_bytes;
	gzip->taken_bytes += gzip->rest_bytes;
	return PSD_OK;
}

/* Reads the first bytes, which tell whether the file is gzip's. */
static enum psd_status begin(struct psd_gzip *gzip, struct psd_error *err)
{
	PSD_TRY(fill(gzip, err));
	if (gzip->rest_bytes < 2 || gzip->rest[0] != 0x1f || gzip->rest[1] != 0x8b)
		return PSD_OK;
	if (inflateInit2(&gzip->stream, ANY_WINDOW_OF_GZIP) != Z_OK)
		return psd_out_of_memory(err);
	gzip->is_packed = true;
	return PSD_OK;
}

static enum psd_status start(struct psd_gzip **opened, struct psd_gzip with, struct psd_error *err)
{
	struct psd_gzip *gzip = calloc(1, sizeof(*gzip));
	enum psd_status status = gzip ? PSD_OK : psd_out_of_memory(err);

	if (status) {
		if (with.descriptor >= 0)
			close(with.descriptor);
		return status;
	}
	*gzip = with;
	status = begin(gzip, err);
	if (status)
		psd_gzip_close(gzip);
	else
		*opened = gzip;
	return status;
}

enum psd_status psd_gzip_open(struct psd_gzip **gzip, const char *path, struct psd_error *err)
{
	int descriptor;

	PSD_TRY(psd_file_open(&descriptor, path, PSD_FILE_PIPE, err));
	return start(gzip, (struct psd_gzip){.path = path, .descriptor = descriptor}, err);
}

enum psd_status psd_gzip_open_bytes(struct psd_gzip **gzip, const char *path, const void *bytes, size_t length,
				    struct psd_error *err)
{
	return start(gzip, (struct psd_gzip){.path = path, .descriptor = -1, .memory = bytes, .memory_bytes = length},
		     err);
}

static enum psd_status take_plain(struct psd_gzip *gzip, void *bytes, size_t room, size_t *length,
				  struct psd_error *err)
{
	PSD_TRY(fill(gzip, err));
	*length = gzip->rest_bytes < room ? gzip->rest_bytes : room;
	memcpy(bytes, gzip->rest, *length);
	gzip->rest += *length;
	gzip->rest_bytes -= *length;
	return PSD_OK;
}

static enum psd_status refuse_damage(const struct psd_gzip *gzip, const char *how, struct psd_error *err)
{
	return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = gzip->path},
			     "%s, must be a whole gzip file or plain JSON", how);
}

/* A step of inflation. *is_done: bytes were made, or the file is at its end. */
static enum psd_status inflate_some(struct psd_gzip *gzip, bool *is_done, struct psd_error *err)
{
	const uInt room = gzip->stream.avail_out;

	PSD_TRY(fill(gzip, err));
	if (!gzip->rest_bytes) {
		*is_done = true;
		return gzip->is_inside ? refuse_damage(gzip, "the compressed data end too early", err) : PSD_OK;
	}
	gzip->stream.next_in = (Bytef *)gzip->rest;
	gzip->stream.avail_in = (uInt)gzip->rest_bytes;
	gzip->is_inside = true;
	const int code = inflate(&gzip->stream, Z_NO_FLUSH);

	gzip->rest += gzip->rest_bytes - gzip->stream.avail_in;
	gzip->rest_bytes = gzip->stream.avail_in;
	if (code == Z_STREAM_END) {
		gzip->is_inside = false;
		inflateReset(&gzip->stream); /* another member may follow */
	} else if (code == Z_MEM_ERROR) {
		return psd_out_of_memory(err);
	} else if (code != Z_OK && code != Z_BUF_ERROR) {
		return refuse_damage(gzip, "the compressed data are damaged", err);
	}
	*is_done = gzip->stream.avail_out < room;
	return PSD_OK;
}

enum psd_status psd_gzip_take(struct psd_gzip *gzip, void *bytes, size_t room, size_t *length, struct psd_error *err)
{
	bool is_done = false;

	if (!gzip->is_packed)
		return take_plain(gzip, bytes, room, length, err);
	gzip->stream.next_out = bytes;
	gzip->stream.avail_out = (uInt)room;
	while (!is_done)
		PSD_TRY(inflate_some(gzip, &is_done, err));
	*length = room - gzip->stream.avail_out;
	return PSD_OK;
}

const void *psd_gzip_peek(const struct psd_gzip *gzip, size_t *length)
{
	*length = gzip->rest_bytes;
	return gzip->rest;
}

bool psd_gzip_rewind(struct psd_gzip *gzip)
{
	if (gzip->descriptor >= 0 && lseek(gzip->descriptor, 0, SEEK_SET) < 0)
		return false;
	gzip->memory -= gzip->taken_bytes;
	gzip->memory_bytes += gzip->taken_bytes;
	gzip->taken_bytes = gzip->rest_bytes = 0;
	gzip->is_inside = false;
	if (gzip->is_packed)
		inflateReset(&gzip->stream);
	return true;
}

void psd_gzip_close(struct psd_gzip *gzip)
{
	if (gzip->is_packed)
		inflateEnd(&gzip->stream);
	if (gzip->descriptor >= 0)
		close(gzip->descriptor);
	free(gzip);
}
