/* The one place where a message is put together. Refuses to print. */
#include "engine/base/error.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "engine/base/text.h"

/* Appends what fits; returns the new length, always below the room so that a later call stays inside. */
static size_t append(char *text, size_t room, size_t length, const char *format, va_list values)
{
	const int written = vsnprintf(text + length, room - length, format, values);

	if (written < 0)
		return length;
	return (size_t)written < room - length ? length + (size_t)written : room - 1;
}

static __attribute__((format(printf, 4, 5))) size_t append_text(char *text, size_t room, size_t length,
								const char *format, ...)
{
	va_list values;

	va_start(values, format);
	length = append(text, room, length, format, values);
	va_end(values);
	return length;
}

static size_t append_place(char *text, size_t room, struct psd_place at)
{
	size_t length = 0;

	if (at.path)
		length = append_text(text, room, length, "%s:", at.path);
	if (at.path && at.line)
		length = append_text(text, room, length, "%u:", at.line);
	if (at.path && at.line && at.column)
		length = append_text(text, room, length, "%u:", at.column);
	return at.path ? append_text(text, room, length, " ") : length;
}

enum psd_status psd_error_set(struct psd_error *err, enum psd_status status, struct psd_place at, const char *format,
			      ...)
{
	va_list values;
	size_t length;

	if (!err)
		return status;
	err->status = status;
	err->text[0] = '\0';
	length = append_place(err->text, sizeof(err->text), at);
	va_start(values, format);
	append(err->text, sizeof(err->text), length, format, values);
	va_end(values);
	psd_text_make_plain(err->text); /* one line, whatever file it quotes */
	return status;
}
