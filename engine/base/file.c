/* Whole files, with a limit: an input of this program is written by a person. */
#include "engine/base/file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/inputs.h"

/* Doubles the room until the file or the limit ends. Returns the length, or sets *failure to an errno value. */
static size_t read_all(FILE *in, char **text, int *failure)
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
		if (length < room || length > PSD_FILE_BYTES_MAX)
			return length;
		room *= 2;
	}
}

static bool is_utf16(const char *text, size_t length)
{
	return length >= 2 && (!memcmp(text, "\xff\xfe", 2) || !memcmp(text, "\xfe\xff", 2));
}

/* Some editors put one in front of UTF-8, where it says nothing. Returns the length. */
static size_t skip_byte_order_mark(char *text, size_t length)
{
	static const char mark[] = "\xef\xbb\xbf";
	const size_t mark_length = sizeof(mark) - 1;

	if (length < mark_length || memcmp(text, mark, mark_length) != 0)
		return length;
	memmove(text, text + mark_length, length - mark_length + 1);
	return length - mark_length;
}

enum psd_status psd_file_read(char **text, size_t *length, const char *path, struct psd_error *err)
{
	const struct psd_place at = {.path = path};
	FILE *in = fopen(path, "rb");
	char *read = NULL;
	size_t read_length;
	int failure;

	if (!in)
		return psd_error_set(err, PSD_EFILE, at, "cannot be opened: %s", strerror(errno));
	psd_inputs_note(path);
	read_length = read_all(in, &read, &failure);
	fclose(in);
	if (!failure && read_length <= PSD_FILE_BYTES_MAX && !is_utf16(read, read_length)) {
		read[read_length] = '\0';
		*text = read;
		*length = skip_byte_order_mark(read, read_length);
		return PSD_OK;
	}
	free(read);
	if (failure == ENOMEM)
		return psd_error_set(err, PSD_ENOMEM, at, "out of memory");
	if (failure)
		return psd_error_set(err, PSD_EFILE, at, "cannot be read: %s", strerror(failure));
	if (read_length <= PSD_FILE_BYTES_MAX)
		return psd_error_set(err, PSD_EINVAL, at, "is UTF-16, must be UTF-8");
	return psd_error_set(err, PSD_EFILE, at, "is longer than 16 MiB, too long for an input file");
}
