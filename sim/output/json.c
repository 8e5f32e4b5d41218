/* JSON by RFC 8259. Numbers that JSON cannot hold become null. */
#include "sim/output/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "engine/base/text.h"

/* Writes a comma behind an earlier element. */
static void begin_value(struct psd_json *json, const char *key)
{
	bool *has_element = &json->has_element[json->depth];

	if (*has_element)
		fputc(',', json->out);
	*has_element = true;
	if (!key)
		return;
	psd_json_write_string(json->out, key);
	fputc(':', json->out);
}

void psd_json_begin(struct psd_json *json, const char *key, char bracket)
{
	begin_value(json, key);
	fputc(bracket, json->out);
	json->depth++;
	assert(json->depth < PSD_JSON_MAX_DEPTH);
	json->has_element[json->depth] = false;
}

void psd_json_end(struct psd_json *json, char bracket)
{
	assert(json->depth > 0);
	json->depth--;
	fputc(bracket, json->out);
}

void psd_json_string(struct psd_json *json, const char *key, const char *text)
{
	begin_value(json, key);
	psd_json_write_string(json->out, text);
}

void psd_json_number(struct psd_json *json, const char *key, double value, int significant)
{
	begin_value(json, key);
	if (isfinite(value))
		fprintf(json->out, "%.*g", significant, value);
	else
		fputs("null", json->out);
}

void psd_json_count(struct psd_json *json, const char *key, uint64_t value)
{
	begin_value(json, key);
	fprintf(json->out, "%" PRIu64, value);
}

void psd_json_flag(struct psd_json *json, const char *key, bool is_there, bool flag)
{
	begin_value(json, key);
	fputs(!is_there ? "null" : flag ? "true" : "false", json->out);
}

void psd_json_line(struct psd_json *json)
{
	/* the comma must precede the line break, so it is written here */
	if (json->has_element[json->depth])
		fputc(',', json->out);
	json->has_element[json->depth] = false;
	fputc('\n', json->out);
}

void psd_json_write_string(FILE *out, const char *text)
{
	char piece[PSD_TEXT_PIECE];

	fputc('"', out);
	while (*text) {
		const unsigned length = psd_text_next_json(&text, piece);

		fwrite(piece, 1, length, out);
	}
	fputc('"', out);
}
