#include "engine/base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 256 };

/* Room for `length` more bytes and the terminating zero. */
static bool has_room(struct psd_text *text, size_t length)
{
	const size_t needed = text->length + length + 1;
	size_t room = text->room ? text->room : FIRST_ROOM;

	if (text->is_out_of_memory)
		return false;
	if (needed <= text->room)
		return true;
	while (room < needed)
		room *= 2;
	char *grown = realloc(text->bytes, room);
	if (!grown) {
		text->is_out_of_memory = true;
		return false;
	}
	text->bytes = grown;
	text->room = room;
	return true;
}

void psd_text_add_bytes(struct psd_text *text, const char *bytes, size_t length)
{
	if (!has_room(text, length))
		return;
	memcpy(text->bytes + text->length, bytes, length);
	text->length += length;
	text->bytes[text->length] = '\0';
}

void psd_text_add(struct psd_text *text, const char *format, ...)
{
	va_list values, again;
	const size_t room = text->is_out_of_memory ? 0 : text->room - text->length;

	va_start(values, format);
	va_copy(again, values);
	const int length = vsnprintf(room > 0 ? text->bytes + text->length : NULL, room, format, values);
	if (length >= 0 && (size_t)length < room) {
		text->length += (size_t)length;
	} else if (length >= 0 && has_room(text, (size_t)length)) {
		vsnprintf(text->bytes + text->length, (size_t)length + 1, format, again);
		text->length += (size_t)length;
	} else if (room > 0) {
		text->bytes[text->length] = '\0';
	}
	va_end(again);
	va_end(values);
}

static void add_wrapped(struct psd_text *text, const char *words, int at, int indent, const char *mark, int width)
{
	const int begin = indent + (int)strlen(mark);
	bool has_word = at > begin;

	while (*words) {
		const int length = (int)strcspn(words, " ");

		if (has_word && at + 1 + length > width) {
			psd_text_add(text, "\n%*s%s", indent, "", mark);
			at = begin;
			has_word = false;
		}
		psd_text_add(text, "%s%.*s", has_word ? " " : "", length, words);
		at += length + has_word;
		has_word = true;
		words += length + (words[length] == ' ');
	}
	psd_text_add(text, "\n");
}

void psd_text_add_wrapped(struct psd_text *text, const char *words, int at, int indent, int width)
{
	add_wrapped(text, words, at, indent, "", width);
}

void psd_text_add_commented(struct psd_text *text, const char *words, int indent, int width)
{
	add_wrapped(text, words, indent + (int)strlen("# "), indent, "# ", width);
}

static bool is_continuation(unsigned char byte)
{
	return (byte & 0xc0) == 0x80;
}

/* Bytes of the UTF-8 sequence at string; 0: invalid, overlong, a surrogate, or beyond U+10FFFF. */
static unsigned sequence_bytes(const char *string)
{
	const unsigned char *bytes = (const unsigned char *)string;
	unsigned n_bytes, lowest_second = 0x80, highest_second = 0xbf;

	if (bytes[0] < 0x80)
		return 1;
	if (bytes[0] < 0xc2 || bytes[0] > 0xf4)
		return 0;
	n_bytes = bytes[0] < 0xe0 ? 2 : bytes[0] < 0xf0 ? 3 : 4;
	/* RFC 3629: the second byte shows overlong forms, surrogates and numbers beyond U+10FFFF */
	if (bytes[0] == 0xe0)
		lowest_second = 0xa0;
	else if (bytes[0] == 0xed)
		highest_second = 0x9f;
	else if (bytes[0] == 0xf0)
		lowest_second = 0x90;
	else if (bytes[0] == 0xf4)
		highest_second = 0x8f;
	if (bytes[1] < lowest_second || bytes[1] > highest_second)
		return 0;
	for (unsigned i = 2; i < n_bytes; i++)
		if (!is_continuation(bytes[i]))
			return 0;
	return n_bytes;
}

unsigned psd_text_plain_bytes(const char *string)
{
	const unsigned char first = (unsigned char)string[0], second = first ? (unsigned char)string[1] : 0;
	const bool is_control = first < 0x20 || first == 0x7f || (first == 0xc2 && second < 0xa0); /* C0, delete, C1 */

	return is_control ? 0 : sequence_bytes(string);
}

unsigned psd_text_next_json(const char **string, char piece[PSD_TEXT_PIECE])
{
	const char *at = *string;
	const unsigned n_bytes = sequence_bytes(at);
	const unsigned char first = (unsigned char)*at;
	unsigned length = n_bytes;

	*string += n_bytes ? n_bytes : 1;
	if (n_bytes == 0)
		return (unsigned)snprintf(piece, PSD_TEXT_PIECE, "\\ufffd");
	if (first == '"' || first == '\\')
		return (unsigned)snprintf(piece, PSD_TEXT_PIECE, "\\%c", first);
	if (!psd_text_plain_bytes(at)) /* the second byte of one beyond ASCII is its number */
		return (unsigned)snprintf(piece, PSD_TEXT_PIECE, "\\u%04x", n_bytes > 1 ? (unsigned char)at[1] : first);
	memcpy(piece, at, length);
	return length;
}

void psd_text_add_json(struct psd_text *text, const char *string)
{
	char piece[PSD_TEXT_PIECE];

	psd_text_add_bytes(text, "\"", 1);
	while (*string) {
		const unsigned length = psd_text_next_json(&string, piece);

		psd_text_add_bytes(text, piece, length);
	}
	psd_text_add_bytes(text, "\"", 1);
}

void psd_text_make_plain(char *string)
{
	while (*string) {
		const unsigned n_bytes = psd_text_plain_bytes(string);

		if (n_bytes == 0)
			*string = '?';
		string += n_bytes ? n_bytes : 1;
	}
}

void psd_text_add_plain(struct psd_text *text, const char *string)
{
	const size_t before = text->length;

	psd_text_add_bytes(text, string, strlen(string));
	if (text->length > before)
		psd_text_make_plain(text->bytes + before);
}

void psd_text_add_csv(struct psd_text *text, const char *field)
{
	const size_t before = text->length;
	const char *mark = strpbrk(field, ",\"") || *field == '#' ? "\"" : ""; /* psd_csv has comments */
	const char first = field[strspn(field, "'")];

	psd_text_add(text, "%s%s", mark, first && strchr("=+-@", first) ? "'" : "");
	for (; *field; field++)
		psd_text_add_bytes(text, *field == '"' ? "\"\"" : field, *field == '"' ? 2 : 1);
	psd_text_add(text, "%s", mark);
	if (text->length > before)
		psd_text_make_plain(text->bytes + before);
}

void psd_text_clear(struct psd_text *text)
{
	text->length = 0;
	if (text->bytes)
		text->bytes[0] = '\0';
}

void psd_text_release(struct psd_text *text)
{
	free(text->bytes);
	*text = (struct psd_text){.bytes = NULL};
}

int psd_text_places(const char *string)
{
	int n_places = 0;

	for (; *string; string++)
		n_places += ((unsigned char)*string & 0xc0) != 0x80;
	return n_places;
}

const char *psd_text_plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}
