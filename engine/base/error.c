#include "engine/base/error.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "engine/base/text.h"

/* Writes "path:line:column: " without the unknown parts; returns its length, always less than the room. */
static size_t write_place(char *text, size_t room, struct psd_place at)
{
	int length = 0;

	if (at.path && at.line && at.column)
		length = snprintf(text, room, "%s:%u:%u: ", at.path, at.line, at.column);
	else if (at.path && at.line)
		length = snprintf(text, room, "%s:%u: ", at.path, at.line);
	else if (at.path)
		length = snprintf(text, room, "%s: ", at.path);
	return (size_t)length < room ? (size_t)length : room - 1;
}

enum psd_status psd_error_set(struct psd_error *err, enum psd_status status, struct psd_place at, const char *format,
			      ...)
{
	va_list values;

	if (!err)
		return status;
	err->status = status;
	err->is_limit = false;
	err->text[0] = '\0';
	const size_t length = write_place(err->text, sizeof(err->text), at);
	va_start(values, format);
	vsnprintf(err->text + length, sizeof(err->text) - length, format, values);
	va_end(values);
	psd_text_make_plain(err->text); /* the message stays one line even if it quotes a file */
	return status;
}

enum psd_status psd_out_of_memory(struct psd_error *err)
{
	return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
}
