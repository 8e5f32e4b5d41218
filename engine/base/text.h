/* Text that grows in memory, for whoever prints it: the engine itself prints nothing. */
#ifndef PSD_TEXT_H
#define PSD_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* All zero is an empty text. */
struct psd_text {
	char *bytes; /* zero-terminated; NULL while nothing was added */
	size_t length;
	size_t room;
	bool is_out_of_memory; /* something is missing; stays until psd_text_release() */
};

void psd_text_add(struct psd_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void psd_text_add_bytes(struct psd_text *text, const char *bytes, size_t length);
/* Words in lines of `width` characters, and a line's end: from column `at` on, further lines behind `indent` blanks. */
void psd_text_add_wrapped(struct psd_text *text, const char *words, int at, int indent, int width);
/* As psd_text_make_plain() makes it. */
void psd_text_add_plain(struct psd_text *text, const char *string);
/* In double quotes and escaped as JSON has it, which YAML's double-quoted strings take, too. What is no UTF-8 becomes
 * U+FFFD, so that the result is valid whatever comes in. */
void psd_text_add_json(struct psd_text *text, const char *string);
/* One field of CSV, plain and quoted where it has to be (RFC 4180). */
void psd_text_add_csv(struct psd_text *text, const char *field);
/* Empties it and keeps its room. */
void psd_text_clear(struct psd_text *text);
void psd_text_release(struct psd_text *text);

/* The next character of a string that is not at its end, as psd_text_add_json() writes it, for those who write to a
 * stream; moves *string on. Returns the length of the piece, which is not terminated. */
enum { PSD_TEXT_PIECE = 8 };
unsigned psd_text_next_json(const char **string, char piece[PSD_TEXT_PIECE]);

/* Bytes of the UTF-8 sequence at string, or 0 when there is none or one that a terminal may act upon. */
unsigned psd_text_plain_bytes(const char *string);
/* Puts '?' for each byte that is of no such sequence, so that whatever file or name is printed, it drives no terminal.
 */
void psd_text_make_plain(char *string);
/* Characters of a string: bytes that begin a UTF-8 sequence. */
int psd_text_places(const char *string);

#endif
