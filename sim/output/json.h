/* A small writer of JSON: puts the commas, escapes strings, leaves line breaks to the caller's psd_json_line(). */
#ifndef PSD_SIM_JSON_H
#define PSD_SIM_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { PSD_JSON_MAX_DEPTH = 16 };

/* Zeros but for the stream, in whose flag write errors stay. */
struct psd_json {
	FILE *out;
	unsigned depth;
	bool has_element[PSD_JSON_MAX_DEPTH]; /* of each open object and array */
};

/* Here and below: key: of the value, in an object; NULL: in an array, or outermost. bracket: '{' or '['. */
void psd_json_begin(struct psd_json *json, const char *key, char bracket);
void psd_json_end(struct psd_json *json, char bracket);
void psd_json_string(struct psd_json *json, const char *key, const char *text);
/* significant: digits of it, 1 to 17. null when value is not finite. */
void psd_json_number(struct psd_json *json, const char *key, double value, int significant);
void psd_json_count(struct psd_json *json, const char *key, uint64_t value);
/* A line break before the next element. */
void psd_json_line(struct psd_json *json);

/* Writes text between quotes, escaped; bytes that are no UTF-8 as U+FFFD, so that the result is always valid. */
void psd_json_write_string(FILE *out, const char *text);

#endif
