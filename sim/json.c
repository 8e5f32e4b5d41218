/* JSON as RFC 8259 has it. Refuses numbers that JSON cannot hold: they become null. */
#include "sim/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

struct psd_json psd_json_make(FILE *out)
{
	return (struct psd_json){.out = out};
}

/* A comma where an element came before, nothing after a key. */
static void begin_value(struct psd_json *json)
{
	bool *has_element = &json->has_element[json->depth];

	if (*has_element && !json->has_key)
		fputc(',', json->out);
	*has_element = true;
	json->has_key = false;
}

void psd_json_begin(struct psd_json *json, char bracket)
{
	begin_value(json);
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

void psd_json_key(struct psd_json *json, const char *key)
{
	begin_value(json);
	psd_json_write_string(json->out, key);
	fputc(':', json->out);
	json->has_key = true;
}

void psd_json_string(struct psd_json *json, const char *text)
{
	begin_value(json);
	psd_json_write_string(json->out, text);
}

void psd_json_number(struct psd_json *json, double value, int significant)
{
	begin_value(json);
	if (isfinite(value))
		fprintf(json->out, "%.*g", significant, value);
	else
		fputs("null", json->out);
}

void psd_json_count(struct psd_json *json, uint64_t value)
{
	begin_value(json);
	fprintf(json->out, "%" PRIu64, value);
}

void psd_json_null(struct psd_json *json)
{
	begin_value(json);
	fputs("null", json->out);
}

void psd_json_line(struct psd_json *json)
{
	/* the comma has to come before the break, so it is written here and not by the next value */
	if (json->has_element[json->depth])
		fputc(',', json->out);
	json->has_element[json->depth] = false;
	fputc('\n', json->out);
}

static bool is_continuation(unsigned char byte)
{
	return (byte & 0xc0) == 0x80;
}

unsigned psd_json_sequence_bytes(const char *text)
{
	const unsigned char *bytes = (const unsigned char *)text;
	unsigned n_bytes, lowest_second = 0x80, highest_second = 0xbf;

	if (bytes[0] < 0x80)
		return 1;
	if (bytes[0] < 0xc2 || bytes[0] > 0xf4)
		return 0;
	n_bytes = bytes[0] < 0xe0 ? 2 : bytes[0] < 0xf0 ? 3 : 4;
	/* RFC 3629: overlong forms, surrogates and what is beyond U+10FFFF show in the second byte */
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

void psd_json_write_string(FILE *out, const char *text)
{
	fputc('"', out);
	while (*text) {
		const unsigned n_bytes = psd_json_sequence_bytes(text);

		if (n_bytes == 0)
			fputs("\\ufffd", out);
		else if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else if ((unsigned char)*text < 0x20 || *text == 0x7f)
			fprintf(out, "\\u%04x", (unsigned)(unsigned char)*text);
		else
			fwrite(text, 1, n_bytes, out);
		text += n_bytes ? n_bytes : 1;
	}
	fputc('"', out);
}
