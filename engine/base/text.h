/* Text that grows in memory. The engine itself prints nothing. */
#ifndef PSD_TEXT_H
#define PSD_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* A text; all zeros: empty. */
struct psd_text {
	char *bytes; /* bytes of the text, zero-terminated; NULL while nothing was added */
	size_t length;
	size_t room;
	bool is_out_of_memory; /* memory ran out, so some text is missing; stays true until psd_text_release() */
};

void psd_text_add(struct psd_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void psd_text_add_bytes(struct psd_text *text, const char *bytes, size_t length);
/* Adds words in lines of at most `width` characters, and a line's end. The first line continues at column `at`, the
 * others begin with `indent` blanks. */
void psd_text_add_wrapped(struct psd_text *text, const char *words, int at, int indent, int width);
/* Adds the string with each control character or invalid byte replaced, see psd_text_make_plain(). */
void psd_text_add_plain(struct psd_text *text, const char *string);
/* Adds the string in double quotes with the escapes of JSON, which YAML's double-quoted strings accept, too. Bytes that
 * are not UTF-8 become U+FFFD, so that the result is always valid. */
void psd_text_add_json(struct psd_text *text, const char *string);
/* Adds a name as one field of CSV, made plain, and quoted where RFC 4180 requires it. A spreadsheet would take a field
 * that begins with one of = + - @ for a formula: it gets an apostrophe in front, as does one with apostrophes before
 * these. Readers remove it. */
void psd_text_add_csv(struct psd_text *text, const char *field);
/* Makes the text empty, without releasing its memory. */
void psd_text_clear(struct psd_text *text);
void psd_text_release(struct psd_text *text);

/* Writes the next character of a string, which is not at its end, as psd_text_add_json() does; for output to a stream.
 * Moves *string behind it. Returns the length of the piece, which is not zero-terminated. */
enum { PSD_TEXT_PIECE = 8 };
unsigned psd_text_next_json(const char **string, char piece[PSD_TEXT_PIECE]);

/* Length of the UTF-8 sequence at string, bytes; 0: it is invalid, or a control character. */
unsigned psd_text_plain_bytes(const char *string);
/* Replaces control characters and invalid UTF-8 by '?', so that no name or file controls the terminal. */
void psd_text_make_plain(char *string);
/* Number of characters of a string: bytes that begin a UTF-8 sequence. */
int psd_text_places(const char *string);

#endif
