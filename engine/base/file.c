/* Reads whole files up to a limit, which exceeds any text that a person writes. */
#include "engine/base/file.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/inputs.h"

/* Doubles the memory until the file ends or exceeds the limit. Returns the length, or sets *failure to an errno value.
 */
static size_t read_all(FILE *in, char **text, size_t most, int *failure)
{
	size_t room = 16384, length = 0;

	*failure = 0;
	for (;;) {
		char *larger = realloc(*text, room + 1);

		if (!larger) {
			*failure = ENOMEM;
			return 0;
		}
		*text = larger;
		errno = 0;
		length += fread(*text + length, 1, room - length, in);
		if (ferror(in))
			*failure = errno ? errno : EIO;
		if (length < room || length > most)
			return length;
		room *= 2;
	}
}

static bool is_utf16(const char *text, size_t length)
{
	return length >= 2 && (!memcmp(text, "\xff\xfe", 2) || !memcmp(text, "\xfe\xff", 2));
}

/* Some editors put a mark in front of UTF-8, where it has no meaning. Returns the length. */
static size_t skip_byte_order_mark(char *text, size_t length)
{
	static const char mark[] = "\xef\xbb\xbf";
	const size_t mark_length = sizeof(mark) - 1;

	if (length < mark_length || memcmp(text, mark, mark_length) != 0)
		return length;
	memmove(text, text + mark_length, length - mark_length + 1);
	return length - mark_length;
}

enum psd_status psd_file_read_bytes(char **bytes, size_t *length, size_t most, const char *path, struct psd_error *err)
{
	const struct psd_place at = {.path = path};
	FILE *in = fopen(path, "rb");
	char *read = NULL;
	size_t read_length;
	int failure;

	if (!in)
		return psd_error_set(err, PSD_EFILE, at, "cannot be opened: %s", strerror(errno));
	psd_inputs_note(path);
	read_length = read_all(in, &read, most, &failure);
	fclose(in);
	if (!failure && read_length <= most) {
		read[read_length] = '\0';
		*bytes = read;
		*length = read_length;
		return PSD_OK;
	}
	free(read);
	if (failure == ENOMEM)
		return psd_error_set(err, PSD_ENOMEM, at, "out of memory");
	if (failure)
		return psd_error_set(err, PSD_EFILE, at, "cannot be read: %s", strerror(failure));
	return psd_error_set(err, PSD_EFILE, at, "is longer than %zu MiB, too long for an input file", most >> 20);
}

enum psd_status psd_file_read_part(void *bytes, size_t length, uint64_t offset, const char *path, struct psd_error *err)
{
	const struct psd_place at = {.path = path};
	FILE *in = fopen(path, "rb");
	size_t read = 0;

	if (!in)
		return psd_error_set(err, PSD_EFILE, at, "cannot be opened: %s", strerror(errno));
	psd_inputs_note(path);
	if (offset <= LONG_MAX && !fseek(in, (long)offset, SEEK_SET))
		read = fread(bytes, 1, length, in);
	fclose(in);
	if (read == length)
		return PSD_OK;
	return psd_error_set(err, PSD_EFILE, at, "ends before byte %llu", (unsigned long long)(offset + length));
}

enum psd_status psd_file_read(char **text, size_t *length, const char *path, struct psd_error *err)
{
	char *read;
	size_t read_length;

	PSD_TRY(psd_file_read_bytes(&read, &read_length, PSD_FILE_BYTES_MAX, path, err));
	if (is_utf16(read, read_length)) {
		free(read);
		return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = path}, "is UTF-16, must be UTF-8");
	}
	*text = read;
	*length = skip_byte_order_mark(read, read_length);
	return PSD_OK;
}
