/* The document's functions read; the writer finds the shortest number that reads back unchanged. */
#include "engine/document/value.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/inputs.h"

const char *const psd_value_flag_names[] = {"false", "true", NULL};

static const struct {
	size_t bytes;
	const char *words;
} types[] = {
	[PSD_KEY_SECTION] = {0, "mapping"},
	[PSD_KEY_OTHER] = {0, "see there"},
	[PSD_KEY_TEXT] = {sizeof(const char *), "text"},
	[PSD_KEY_PATH] = {sizeof(const char *), "path"},
	[PSD_KEY_NAME] = {sizeof(const char *), ""},
	[PSD_KEY_CHOICE] = {sizeof(unsigned), ""},
	[PSD_KEY_FLAG] = {sizeof(bool), ""},
	[PSD_KEY_RATE] = {sizeof(double), "rate"},
	[PSD_KEY_BYTES] = {sizeof(uint64_t), "size"},
	[PSD_KEY_SECONDS] = {sizeof(double), "time"},
	[PSD_KEY_RATIO] = {sizeof(double), "ratio, "},
	[PSD_KEY_NUMBER] = {sizeof(double), ""},
	[PSD_KEY_UNSIGNED] = {sizeof(unsigned), ""},
	[PSD_KEY_PAIR] = {2 * sizeof(unsigned), ""},
	[PSD_KEY_COUNT] = {sizeof(uint64_t), ""},
};

size_t psd_value_bytes(enum psd_key_type type)
{
	return types[type].bytes;
}

void psd_value_add_kind(struct psd_text *text, const struct psd_key *key)
{
	psd_text_add(text, "%s", types[key->type].words);
	if (key->type == PSD_KEY_NAME || key->type == PSD_KEY_CHOICE || key->type == PSD_KEY_FLAG)
		psd_value_add_names(text, key, ~0u);
	else if (key->type >= PSD_KEY_UNSIGNED)
		psd_text_add(text, "%.0f to %.0f", key->lowest, key->highest);
	else if (key->type >= PSD_KEY_RATIO)
		psd_text_add(text, "%.10g to %.10g", key->lowest, key->highest);
	if (key->word)
		psd_text_add(text, ", or `%s`", key->word);
	if (key->per)
		psd_text_add(text, "; `%s` may follow", key->per);
}

void psd_value_add_names(struct psd_text *text, const struct psd_key *key, unsigned choices)
{
	const char *const *names = key->names ? key->names : psd_value_flag_names;
	const char *separator = "";

	for (unsigned i = 0; names[i]; i++)
		if (choices >> i & 1) {
			psd_text_add(text, "%s`%s`", separator, names[i]);
			separator = ", ";
		}
}

/* ---- reading ---- */

static enum psd_status read_whole(void *value, const struct psd_node *node, const struct psd_key *key,
				  struct psd_error *err)
{
	uint64_t count;

	PSD_TRY(psd_node_count(node, (uint64_t)key->lowest, (uint64_t)key->highest, &count, err));
	if (key->type == PSD_KEY_COUNT) {
		memcpy(value, &count, sizeof(count));
	} else {
		const unsigned narrow = (unsigned)count;

		assert(count <= UINT_MAX);
		memcpy(value, &narrow, sizeof(narrow));
	}
	return PSD_OK;
}

static enum psd_status read_pair(unsigned pair[2], const struct psd_node *node, const struct psd_key *key,
				 struct psd_error *err)
{
	const bool is_list = node->kind == PSD_NODE_SEQUENCE;

	if (is_list && node->n_children != 2)
		return psd_error_set(err, PSD_EINVAL, node->at, "'%s' has %u entries, must have 2", key->name,
				     node->n_children);
	PSD_TRY(read_whole(&pair[0], is_list ? node->first : node, key, err));
	return read_whole(&pair[1], is_list ? node->first->next : node, key, err);
}

/* Adds the word that a key also accepts, in front of the values that an error says it accepts. */
static void offer_word(const struct psd_key *key, struct psd_error *err)
{
	static const char must[] = ", must be ";
	struct psd_text offered = {.bytes = NULL};
	char *place = NULL;

	for (char *found = strstr(err->text, must); found; found = strstr(place, must))
		place = found + strlen(must);
	if (!place)
		return;
	psd_text_add(&offered, "'%s' or %s", key->word, place);
	if (offered.bytes)
		snprintf(place, sizeof(err->text) - (size_t)(place - err->text), "%s", offered.bytes);
	psd_text_release(&offered);
}

static enum psd_status read_named(void *value, const struct psd_node *node, const struct psd_key *key,
				  struct psd_error *err)
{
	unsigned position;

	PSD_TRY(psd_node_choice(node, key->names, &position, err));
	if (key->type == PSD_KEY_NAME)
		memcpy(value, &key->names[position], sizeof(key->names[position]));
	else if (key->type == PSD_KEY_CHOICE)
		memcpy(value, &position, sizeof(position));
	else
		*(bool *)value = position == 1;
	return PSD_OK;
}

static enum psd_status read_value(void *value, const struct psd_node *node, const struct psd_key *key,
				  struct psd_error *err)
{
	switch (key->type) {
	case PSD_KEY_SECTION:
	case PSD_KEY_OTHER: break;
	case PSD_KEY_TEXT:
	case PSD_KEY_PATH: return psd_node_text(node, value, err);
	case PSD_KEY_FLAG:
		if (!key->names)
			return psd_node_bool(node, value, err);
		return read_named(value, node, key, err);
	case PSD_KEY_NAME:
	case PSD_KEY_CHOICE: return read_named(value, node, key, err);
	case PSD_KEY_RATE: return psd_node_rate(node, value, err);
	case PSD_KEY_BYTES: return psd_node_bytes(node, value, err);
	case PSD_KEY_SECONDS: return psd_node_seconds(node, key->highest, value, err);
	case PSD_KEY_RATIO: return psd_node_ratio(node, key->lowest, key->highest, value, err);
	case PSD_KEY_NUMBER: return psd_node_number(node, key->lowest, key->highest, value, err);
	case PSD_KEY_PAIR: return read_pair(value, node, key, err);
	case PSD_KEY_UNSIGNED:
	case PSD_KEY_COUNT: return read_whole(value, node, key, err);
	}
	return PSD_OK;
}

/* Copies the node without the words key->per at its end; `text` holds the rest. Returns `node` if they are not there,
 * or if the rest is too long for a number. */
static const struct psd_node *without_per(const struct psd_node *node, const struct psd_key *key, struct psd_node *copy,
					  char *text, size_t room)
{
	const size_t n_per = key->per ? strlen(key->per) : 0;
	const size_t length = node->kind == PSD_NODE_SCALAR && n_per > 0 ? strlen(node->text) : 0;
	size_t rest = length - n_per;

	if (length <= n_per || rest >= room || node->text[rest - 1] != ' ' || strcmp(node->text + rest, key->per) != 0)
		return node;
	while (rest > 0 && node->text[rest - 1] == ' ')
		rest--;
	memcpy(text, node->text, rest);
	text[rest] = '\0';
	*copy = *node;
	copy->text = text;
	return copy;
}

static void offer_per(const struct psd_key *key, struct psd_error *err)
{
	const size_t length = strlen(err->text);

	snprintf(err->text + length, sizeof(err->text) - length, "; '%s' may follow", key->per);
}

enum psd_status psd_value_read(void *value, const struct psd_node *node, const struct psd_key *key,
			       struct psd_error *err)
{
	struct psd_node copy;
	char text[64];
	const struct psd_node *rest = without_per(node, key, &copy, text, sizeof(text));
	const enum psd_status status = read_value(value, rest, key, err);

	if (status && key->per && rest == node && node->kind == PSD_NODE_SCALAR && strchr(node->text, ' '))
		offer_per(key, err);
	if (status && key->word)
		offer_word(key, err);
	return status;
}

/* ---- writing ---- */

static uint64_t whole(const void *value, const struct psd_key *key)
{
	return psd_value_bytes(key->type) == sizeof(unsigned) ? *(const unsigned *)value : *(const uint64_t *)value;
}

bool psd_value_is_absent(const void *value, const struct psd_key *key, bool is_needed)
{
	static const uint64_t zero = 0; /* as large as any type */
	const bool may_be_zero = is_needed && key->lowest <= 0.0 && key->type >= PSD_KEY_SECONDS;
	const size_t bytes = psd_value_bytes(key->type);

	if (key->fallback || key->type == PSD_KEY_CHOICE || key->type == PSD_KEY_FLAG || key->type == PSD_KEY_PAIR)
		return false;
	if (key->type == PSD_KEY_BYTES
		    ? whole(value, key) == UINT64_MAX
		    : key->type > PSD_KEY_BYTES && key->type < PSD_KEY_UNSIGNED && isinf(*(const double *)value))
		return true;
	return !may_be_zero && !memcmp(value, &zero, bytes);
}

/* Units of engine/base/units.c, which multiplies rates and divides times. The last prefix is for all other values. */
struct prefix {
	const char *name;
	double factor;
};

static const struct prefix rate_prefixes[] = {{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}, {"", 1.0}};
static const struct prefix time_parts[] = {{"", 1.0}, {"m", 1e3}, {"u", 1e6}, {"n", 1e9}, {"", 1.0}};
enum { N_PREFIXES = 5 };

static const struct prefix byte_prefixes[] = {{"Gi", 0x1p30}, {"Mi", 0x1p20}, {"Ki", 0x1p10}, {"G", 1e9},
					      {"M", 1e6},     {"k", 1e3},     {"", 1.0}};

/* Adds the shortest number that reads back as value; false when there is none with this prefix. */
static bool add_exact(struct psd_text *text, double value, const struct prefix *prefix, bool is_part)
{
	const double figure = is_part ? value * prefix->factor : value / prefix->factor;
	char figures[40];

	for (int significant = 15; significant <= 17; significant++) {
		snprintf(figures, sizeof(figures), "%.*g", significant, figure);
		if ((is_part ? strtod(figures, NULL) / prefix->factor : strtod(figures, NULL) * prefix->factor) !=
		    value)
			continue;
		psd_text_add(text, "%s%s", figures, prefix->name);
		return true;
	}
	return false;
}

static bool is_too_large(double value, const struct prefix *prefix, bool is_part)
{
	return is_part ? value > 0.0 && value * prefix->factor < 0.9999995 : value < prefix->factor;
}

/* Uses the largest prefix that suits and is exact. */
static void add_scaled(struct psd_text *text, double value, const struct prefix prefixes[N_PREFIXES], bool is_part)
{
	unsigned i = 0;

	while (i + 1 < N_PREFIXES &&
	       (is_too_large(value, &prefixes[i], is_part) || !add_exact(text, value, &prefixes[i], is_part)))
		i++;
	if (i + 1 == N_PREFIXES)
		add_exact(text, value, &prefixes[i], is_part);
}

/* With the first prefix that leaves a whole number. */
static void add_bytes(struct psd_text *text, uint64_t bytes)
{
	const struct prefix *prefix = byte_prefixes;

	while (prefix->factor > 1.0 && (bytes == 0 || bytes % (uint64_t)prefix->factor > 0))
		prefix++;
	psd_text_add(text, "%" PRIu64 "%sB", bytes / (uint64_t)prefix->factor, prefix->name);
}

/* Uses bytes instead of bits where that makes a fraction shorter: 2.29GBps are 18.32Gbps. */
static void add_rate(struct psd_text *text, double bits_per_sec)
{
	struct psd_text bytes = {.bytes = NULL};
	const size_t begin = text->length;

	add_scaled(text, bits_per_sec, rate_prefixes, false);
	add_scaled(&bytes, bits_per_sec / 8.0, rate_prefixes, false);
	if (bytes.bytes && text->bytes && strchr(text->bytes + begin, '.') && bytes.length < text->length - begin) {
		text->length = begin;
		psd_text_add(text, "%sB", bytes.bytes);
	} else {
		psd_text_add(text, "b");
	}
	psd_text_add(text, "ps");
	psd_text_release(&bytes);
}

static void add_path(struct psd_text *text, const char *path)
{
	char *shortest = psd_inputs_shorten_path(path);

	psd_text_add_json(text, shortest ? shortest : path);
	free(shortest);
}

static void add_value(struct psd_text *text, const void *value, const struct psd_key *key)
{
	const char *const *names = key->names ? key->names : psd_value_flag_names;

	switch (key->type) {
	case PSD_KEY_SECTION:
	case PSD_KEY_OTHER: break;
	case PSD_KEY_TEXT: /* YAML's double-quoted strings take all escapes of JSON */
		psd_text_add_json(text, *(const char *const *)value);
		break;
	case PSD_KEY_PATH: add_path(text, *(const char *const *)value); break;
	case PSD_KEY_NAME: psd_text_add(text, "%s", *(const char *const *)value); break;
	case PSD_KEY_CHOICE: psd_text_add(text, "%s", names[*(const unsigned *)value]); break;
	case PSD_KEY_FLAG: psd_text_add(text, "%s", names[*(const bool *)value]); break;
	case PSD_KEY_RATE: add_rate(text, *(const double *)value); break;
	case PSD_KEY_SECONDS:
		add_scaled(text, *(const double *)value, time_parts, true);
		psd_text_add(text, "s");
		break;
	case PSD_KEY_RATIO:
	case PSD_KEY_NUMBER: add_exact(text, *(const double *)value, &(struct prefix){"", 1.0}, false); break;
	case PSD_KEY_BYTES: add_bytes(text, whole(value, key)); break;
	case PSD_KEY_PAIR:
		psd_text_add(text, "[%u, %u]", ((const unsigned *)value)[0], ((const unsigned *)value)[1]);
		break;
	case PSD_KEY_UNSIGNED:
	case PSD_KEY_COUNT: psd_text_add(text, "%" PRIu64, whole(value, key)); break;
	}
}

void psd_value_add_as_written(struct psd_text *text, const void *value, const struct psd_key *key,
			      const struct psd_node *node)
{
	const bool is_quantity = key->type >= PSD_KEY_RATE && key->type <= PSD_KEY_RATIO;
	uint64_t written[2]; /* as large as any type */
	struct psd_error err;

	if (node && is_quantity && node->kind == PSD_NODE_SCALAR && !psd_value_read(written, node, key, &err) &&
	    !memcmp(written, value, psd_value_bytes(key->type)))
		psd_text_add(text, "%s", node->text);
	else
		add_value(text, value, key);
}
