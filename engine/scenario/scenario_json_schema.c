/* The keys of a scenario as a JSON schema (draft 7), by which editors complete and check a file. A schema is weaker
 * than the reader: rules between keys are only in its descriptions. */
#include "engine/document/value.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/scenario_keys.h"

#define FIGURE "[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)? *"

static void add_properties(struct psd_text *text, const struct psd_section *section);

/* `sweep` takes any key of a scenario by its path. */
static void add_object(struct psd_text *text, const struct psd_section *section)
{
	const struct psd_key *key;
	const char *separator = "";

	psd_text_add(text, "\"type\": \"object\", ");
	if (section == &psd_scenario_sweep)
		psd_text_add(text, "\"patternProperties\": {\".\": true}, ");
	psd_text_add(text, "\"additionalProperties\": false, \"properties\": {");
	add_properties(text, section);
	psd_text_add(text, "}");
	for (unsigned i = 0; (key = psd_section_key(section, i)); i++) {
		if (!key->is_required || key->rival)
			continue;
		psd_text_add(text, "%s\"%s\"", *separator ? separator : ", \"required\": [", key->name);
		separator = ", ";
	}
	psd_text_add(text, "%s", *separator ? "]" : "");
}

static void add_names(struct psd_text *text, const struct psd_key *key)
{
	psd_text_add(text, "\"enum\": [");
	for (unsigned i = 0; key->names[i]; i++) {
		psd_text_add(text, "%s", i ? ", " : "");
		psd_text_add_json(text, key->names[i]);
	}
	psd_text_add(text, "]");
}

static void add_limits(struct psd_text *text, const char *type, const struct psd_key *key)
{
	psd_text_add(text, "{\"type\": \"%s\", \"minimum\": %.17g, \"maximum\": %.17g}", type, key->lowest,
		     key->highest);
}

static void add_quantity(struct psd_text *text, const char *pattern)
{
	psd_text_add(text, "{\"type\": \"string\", \"pattern\": \"^" FIGURE "%s$\"}", pattern);
}

/* A schema of one plain value. */
static void add_plain(struct psd_text *text, const struct psd_key *key)
{
	static const char *const units[] = {
		[PSD_KEY_RATE] = "[kMGT]?([bB]ps|[bB](it|its|yte|ytes)?/s|its?ps)",
		[PSD_KEY_BYTES] = "([kMGT]i?|Ki)?(B|[bB]ytes?)",
		[PSD_KEY_SECONDS] = "([mun\xc2\xb5\xce\xbc]?s|min|h|d|sec|hours|days)",
	};

	switch (key->type) {
	case PSD_KEY_SECTION:
	case PSD_KEY_OTHER: psd_text_add(text, "{}"); break;
	case PSD_KEY_TEXT:
	case PSD_KEY_PATH: psd_text_add(text, "{\"type\": [\"string\", \"number\", \"boolean\"]}"); break;
	case PSD_KEY_NAME:
	case PSD_KEY_CHOICE:
		psd_text_add(text, "{");
		add_names(text, key);
		psd_text_add(text, "}");
		break;
	case PSD_KEY_FLAG:
		if (key->names) {
			psd_text_add(text, "{");
			add_names(text, key);
			psd_text_add(text, "}");
		} else {
			psd_text_add(text, "{\"type\": \"boolean\"}");
		}
		break;
	case PSD_KEY_RATE:
	case PSD_KEY_BYTES:
	case PSD_KEY_SECONDS:
		psd_text_add(text, "%s", key->type == PSD_KEY_RATE ? "{\"const\": \"free\"}, " : "");
		add_quantity(text, units[key->type]);
		break;
	case PSD_KEY_RATIO:
		add_limits(text, "number", key);
		psd_text_add(text, ", ");
		add_quantity(text, "%");
		break;
	case PSD_KEY_NUMBER: add_limits(text, "number", key); break;
	case PSD_KEY_PAIR:
		psd_text_add(text, "{\"type\": \"array\", \"minItems\": 2, \"maxItems\": 2, \"items\": ");
		add_limits(text, "integer", key);
		psd_text_add(text, "}, ");
		add_limits(text, "integer", key);
		break;
	case PSD_KEY_UNSIGNED:
	case PSD_KEY_COUNT: add_limits(text, "integer", key); break;
	}
	if (key->word)
		psd_text_add(text, ", {\"const\": \"%s\"}", key->word);
	if (key->per)
		psd_text_add(text, ", {\"type\": \"string\", \"pattern\": \"^[0-9].* %s$\"}", key->per);
}

static void add_type(struct psd_text *text, const struct psd_key *key)
{
	if (key->are_named) {
		psd_text_add(text, "\"type\": \"object\", \"minProperties\": 1, \"maxProperties\": %u",
			     key->most_entries);
	} else if (key->section && key->most_entries) {
		psd_text_add(text, "\"type\": \"array\", \"minItems\": 1, \"maxItems\": %u, \"items\": {",
			     key->most_entries);
		add_object(text, key->section);
		psd_text_add(text, "}");
	} else if (key->section) {
		add_object(text, key->section);
	} else {
		psd_text_add(text, "\"anyOf\": [");
		add_plain(text, key);
		if (key->most_entries) {
			psd_text_add(
				text,
				", {\"type\": \"array\", \"minItems\": 1, \"maxItems\": %u, \"items\": {\"anyOf\": [",
				key->most_entries);
			add_plain(text, key);
			psd_text_add(text, "]}}, {\"type\": \"string\", \"pattern\": \"^[^ ]+[.][.][^ ]+$\"}");
		}
		psd_text_add(text, "]");
	}
}

/* A number or a flag stands as such, any other default as text. */
static void add_default(struct psd_text *text, const struct psd_section *section, const struct psd_key *key)
{
	const bool is_plain = (key->type == PSD_KEY_FLAG && !key->names) || key->type == PSD_KEY_NUMBER ||
			      key->type == PSD_KEY_UNSIGNED || key->type == PSD_KEY_COUNT;

	if (!key->fallback || key->most_entries || section == &psd_scenario_host) /* its stack sets these */
		return;
	psd_text_add(text, ", \"default\": ");
	if (is_plain)
		psd_text_add(text, "%s", key->fallback);
	else
		psd_text_add_json(text, key->fallback);
}

static void add_description(struct psd_text *text, const struct psd_section *section, const struct psd_key *key)
{
	struct psd_text words = {.bytes = NULL};

	for (const char *c = key->help ? key->help : ""; *c; c++)
		if (*c != '`')
			psd_text_add_bytes(&words, c, 1);
	if (key->when.key) {
		size_t offset = 0;
		const struct psd_key *chooser = psd_section_find(section, key->when.key, &offset);
		const char *const *names = chooser->names ? chooser->names : psd_value_flag_names;
		const char *separator = "";

		psd_text_add(&words, ". Only with %s ", key->when.key);
		for (unsigned i = 0; names[i]; i++) {
			if (!(key->when.choices >> i & 1))
				continue;
			psd_text_add(&words, "%s%s", separator, names[i]);
			separator = ", ";
		}
	}
	psd_text_add(text, "\"description\": ");
	psd_text_add_json(text, words.bytes ? words.bytes : "");
	text->is_out_of_memory = text->is_out_of_memory || words.is_out_of_memory;
	psd_text_release(&words);
}

static void add_properties(struct psd_text *text, const struct psd_section *section)
{
	const struct psd_key *key;

	for (unsigned i = 0; (key = psd_section_key(section, i)); i++) {
		psd_text_add(text, "%s\n\"%s\": {", i ? "," : "", key->name);
		add_description(text, section, key);
		psd_text_add(text, ", ");
		add_type(text, key);
		add_default(text, section, key);
		psd_text_add(text, "}");
	}
}

void psd_scenario_add_json_schema(struct psd_text *text)
{
	psd_text_add(text, "{\"$schema\": \"http://json-schema.org/draft-07/schema#\",\n"
			   "\"title\": \"Scenario of psd-sim and psd-run\",\n");
	add_object(text, psd_scenario_root.section);
	psd_text_add(text, "}\n");
}
