/* Writes JSON. It adds commas and escapes strings. It begins a new line only after psd_json_line(). */
#ifndef PSD_SIM_JSON_H
#define PSD_SIM_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { PSD_JSON_MAX_DEPTH = 16 }; /* largest number of objects and arrays inside each other */

/* State of a JSON writer. To initialise it, set `out`, and all other members to zero. Write errors set the error flag
 * of `out`, see ferror(). */
struct psd_json {
	FILE *out;
	unsigned depth; /* number of open objects and arrays */
	/* per open object or array: it has an element, so the next one needs a comma in front */
	bool has_element[PSD_JSON_MAX_DEPTH];
};

/* Begins an object (bracket '{') or an array ('['). key, in this and the next functions: key of the value in the
 * enclosing object; NULL inside an array and for the outermost value. */
void psd_json_begin(struct psd_json *json, const char *key, char bracket);
/* Ends the innermost object (bracket '}') or array (']'). */
void psd_json_end(struct psd_json *json, char bracket);
/* Writes `text` in quotes, escaped. key: as in psd_json_begin(), also in the next functions. */
void psd_json_string(struct psd_json *json, const char *key, const char *text);
/* Writes true or false; null if is_there is false. */
void psd_json_flag(struct psd_json *json, const char *key, bool is_there, bool flag);
/* Writes a number with `significant` (1 to 17) significant digits; null if it is infinite or NaN. */
void psd_json_number(struct psd_json *json, const char *key, double value, int significant);
void psd_json_count(struct psd_json *json, const char *key, uint64_t value);
/* Makes the next element begin on a new line of the output. */
void psd_json_line(struct psd_json *json);

/* Writes text to `out` in quotes, escaped. Bytes that are not UTF-8 become U+FFFD, so that the result is always
 * valid. */
void psd_json_write_string(FILE *out, const char *text);

#endif
