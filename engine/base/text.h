/* Text that grows in memory. The engine prints nothing itself; programs print such texts. */
#ifndef PSD_TEXT_H
#define PSD_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A text of `length` bytes, with memory for `room` bytes. A text of all zeros is empty. */
struct psd_text {
	char *bytes; /* bytes of the text and a zero at the end; NULL: nothing was added */
	size_t length;
	size_t room;
	/* Memory ran out, so a part of the text is missing. It stays true until psd_text_release(). */
	bool is_out_of_memory;
};

void psd_text_add(struct psd_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void psd_text_add_bytes(struct psd_text *text, const char *bytes, size_t length);
/* Appends words, broken into lines of at most `width` characters, and a newline. The first line continues at column
 * `at`; the other lines begin with `indent` blanks. */
void psd_text_add_wrapped(struct psd_text *text, const char *words, int at, int indent, int width);
/* Appends words as a comment of YAML, behind its first "# ": further lines begin with `indent` blanks and "# ". */
void psd_text_add_commented(struct psd_text *text, const char *words, int indent, int width);
/* Appends the string. Each control character and each byte that is not UTF-8 is replaced, see
 * psd_text_make_plain(). */
void psd_text_add_plain(struct psd_text *text, const char *string);
/* Appends the string in double quotes, with JSON's escapes, which YAML accepts in double quotes as well. Bytes that
 * are not UTF-8 become U+FFFD, so the result is always valid. */
void psd_text_add_json(struct psd_text *text, const char *string);
/* Appends a string as one field of CSV, without control characters, and quoted if RFC 4180 requires it. A spreadsheet
 * would treat a field that begins with = + - or @ as a formula, so an apostrophe is put in front of it. Fields that
 * begin with apostrophes followed by such a character get one more. Readers remove one apostrophe. */
void psd_text_add_csv(struct psd_text *text, const char *field);
/* Makes the text empty, without releasing its memory. */
void psd_text_clear(struct psd_text *text);
void psd_text_release(struct psd_text *text);

/* Writes the next character of a string to `piece`, escaped as by psd_text_add_json(), and moves *string behind
 * the character. The string must not be at its end. Returns the number of bytes in `piece`, which has no zero at
 * its end. */
enum { PSD_TEXT_PIECE = 8 };
unsigned psd_text_next_json(const char **string, char piece[PSD_TEXT_PIECE]);

/* Returns the length of the UTF-8 sequence at the begin of string, bytes. 0: it is not valid UTF-8, or is a control
 * character. */
unsigned psd_text_plain_bytes(const char *string);
/* Replaces control characters and bytes that are not UTF-8 by '?', so that a name or file cannot control the
 * terminal. */
void psd_text_make_plain(char *string);
/* Returns the number of characters of a string, counted as bytes that begin a UTF-8 sequence. */
int psd_text_places(const char *string);
/* Returns the ending of a noun behind the number n: "" for 1, else "s". */
const char *psd_text_plural(uint64_t n);

#endif
