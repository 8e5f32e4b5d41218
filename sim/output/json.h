/* A small JSON writer. It writes commas and escapes strings; callers break lines by psd_json_line(). */
#ifndef PSD_SIM_JSON_H
#define PSD_SIM_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { PSD_JSON_MAX_DEPTH = 16 };

/* State of a JSON writer. Set `out`, all else zeros. Write errors stay in the error flag of `out`. */
struct psd_json {
	FILE *out;
	unsigned depth;
	bool has_element[PSD_JSON_MAX_DEPTH]; /* per open object or array: a comma comes before the next element */
};

/* Begins an object or array; bracket is '{' or '['. key, here and below, is the key inside an object; NULL in an array
 * or outermost. */
void psd_json_begin(struct psd_json *json, const char *key, char bracket);
void psd_json_end(struct psd_json *json, char bracket);
void psd_json_string(struct psd_json *json, const char *key, const char *text);
/* Writes true or false, or null where there is no value. */
void psd_json_flag(struct psd_json *json, const char *key, bool is_there, bool flag);
/* Writes a number with 1 to 17 significant digits, or null if it is not finite. */
void psd_json_number(struct psd_json *json, const char *key, double value, int significant);
void psd_json_count(struct psd_json *json, const char *key, uint64_t value);
/* Begins a new line before the next element. */
void psd_json_line(struct psd_json *json);

/* Writes text in quotes, escaped. Bytes that are not UTF-8 become U+FFFD, so that the result is valid. */
void psd_json_write_string(FILE *out, const char *text);

#endif
