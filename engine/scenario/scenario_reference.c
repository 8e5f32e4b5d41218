/* Reference of a scenario's keys: an entry for each row of the schema. */
#include "engine/base/share.h"
#include "engine/document/value.h"
#include "engine/model/kind.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/scenario_heed.h"
#include "engine/scenario/scenario_keys.h"

enum { MOST_SECTIONS = 32 };

struct reference {
	struct psd_text *text;
	const struct psd_reference *how;
	const struct psd_section *written[MOST_SECTIONS]; /* a section that two keys name is written once */
	unsigned n_written;
};

/* A key of `host` that a file does not have is filled from the stack, before its fallback. */
static void add_absence(struct psd_text *text, const struct psd_schema_spot *spot)
{
	const struct psd_key *key = spot->key;

	if (spot->section == &psd_scenario_host)
		psd_text_add(text, "set by `cluster.stack`");
	else if (key->fallback)
		psd_text_add(text, "`%s`", key->fallback);
	else if (key->is_required && key->rival)
		psd_text_add(text, "required unless `%s` is given", key->rival);
	else if (key->is_required || (key->when.needed && key->when.needed == key->when.choices))
		psd_text_add(text, "required");
}

/* Names the choices that need the key where all choices allow it. */
static void add_condition(struct psd_text *text, const struct psd_schema_spot *spot)
{
	size_t offset = 0;
	const struct psd_key *key = spot->key, *chooser = psd_section_find(spot->section, key->when.key, &offset);
	const bool has_all = key->when.needed && key->when.needed != key->when.choices;

	psd_text_add(text, ". %s with `%s` ", has_all ? "Required" : "Only", key->when.key);
	psd_value_add_names(text, chooser, has_all ? key->when.needed : key->when.choices);
}

static bool is_first_time(struct reference *reference, const struct psd_section *section)
{
	for (unsigned i = 0; i < reference->n_written; i++)
		if (reference->written[i] == section)
			return false;
	if (section && reference->n_written < MOST_SECTIONS)
		reference->written[reference->n_written++] = section;
	return true;
}

static void add_value(struct psd_text *text, const struct psd_key *key)
{
	if (key->are_named)
		psd_text_add(text, "mapping of up to %u names: ", key->most_entries);
	else if (key->most_entries)
		psd_text_add(text, "list of up to %u%s", key->most_entries, key->section ? "" : ": ");
	if (!key->most_entries || !key->section)
		psd_value_add_kind(text, key);
}

static void add_meaning(struct psd_text *text, const struct psd_schema_spot *spot)
{
	psd_text_add(text, "%s", spot->key->help);
	if (spot->key->when.key)
		add_condition(text, spot);
}

static void add_table_row(struct psd_text *text, const struct psd_schema_spot *spot)
{
	const struct psd_key *key = spot->key;
	char users[PSD_USERS_TEXT_MAX];

	psd_text_add(text, "| `%s` | ", spot->path);
	add_value(text, key);
	psd_text_add(text, " | ");
	add_absence(text, spot);
	psd_text_add(text, " | %s%s | %s | ", psd_scenario_write_users(spot->uses, users),
		     spot->uses & PSD_BY_CHOICE ? "*" : "",
		     key->section		  ? ""
		     : spot->uses & PSD_AGREED	  ? "="
		     : spot->uses & PSD_BY_CHOICE ? "=*"
						  : "");
	add_meaning(text, spot);
	psd_text_add(text, " |\n");
}

/* Appends the path between two quotes, the values that the key accepts, and its default. */
static void add_head(struct psd_text *head, const struct psd_schema_spot *spot, const char *quote)
{
	const bool has_default = spot->key->fallback || spot->section == &psd_scenario_host;
	struct psd_text absence = {.bytes = NULL};

	psd_text_add(head, "%s%s%s: ", quote, spot->path, quote);
	add_value(head, spot->key);
	add_absence(&absence, spot);
	if (absence.bytes)
		psd_text_add(head, "; %s%s", has_default ? "if not given " : "", absence.bytes);
	head->is_out_of_memory = head->is_out_of_memory || absence.is_out_of_memory;
	psd_text_release(&absence);
}

static void add_entry(struct psd_text *text, const struct psd_reference *how, const struct psd_schema_spot *spot)
{
	struct psd_text head = {.bytes = NULL}, meaning = {.bytes = NULL}, use = {.bytes = NULL};
	char users[PSD_USERS_TEXT_MAX];

	add_head(&head, spot, "");
	add_meaning(&meaning, spot);
	psd_text_add(&use, "used by %s%s%s", psd_scenario_write_users(spot->uses, users),
		     spot->uses & PSD_BY_CHOICE && (spot->uses & PSD_BY_ALL) != PSD_BY_ALL
			     ? ", and by psd-run if it chooses methods by predicted time"
			     : "",
		     !spot->key->section && spot->uses & PSD_AGREED ? "; must be the same on all --hosts" : "");
	if (!head.is_out_of_memory && !meaning.is_out_of_memory && !use.is_out_of_memory)
		psd_reference_add(text, how, head.bytes, (const char *const[]){meaning.bytes, use.bytes, NULL});
	else
		text->is_out_of_memory = true;
	psd_text_release(&head);
	psd_text_release(&meaning);
	psd_text_release(&use);
}

static bool add_row(const struct psd_schema_spot *spot)
{
	struct reference *reference = spot->context;

	if (psd_reference_has(reference->how, spot->path, spot->key->help)) {
		if (reference->how->is_markdown)
			add_table_row(reference->text, spot);
		else
			add_entry(reference->text, reference->how, spot);
	}
	return is_first_time(reference, spot->key->section);
}

/* Layers have keys, too, in another file: for a topic that is a kind or a key of one. */
static void add_kinds(struct psd_text *text, const struct psd_reference *how)
{
	for (const struct psd_layer_kind *const *kind = psd_layer_kinds; *kind; kind++) {
		const char *words[] = {NULL, "see scenarios/models/README.md", NULL};
		struct psd_text head = {.bytes = NULL}, keys = {.bytes = NULL};
		bool is_meant = psd_reference_has(how, (*kind)->name, "");

		for (const struct psd_key *key = (*kind)->keys; key && key->name; key++) {
			is_meant = is_meant || psd_reference_has(how, key->name, "");
			psd_text_add(&keys, "%s%s", keys.length ? ", " : "keys ", key->name);
		}
		psd_text_add(&head, "%s, a kind of layer in a model file", (*kind)->name);
		words[0] = keys.bytes ? keys.bytes : "";
		if (is_meant && head.bytes)
			psd_reference_add(text, how, head.bytes, words);
		text->is_out_of_memory = text->is_out_of_memory || head.is_out_of_memory || keys.is_out_of_memory;
		psd_text_release(&head);
		psd_text_release(&keys);
	}
}

enum psd_status psd_scenario_add_reference(struct psd_text *text, const struct psd_reference *how,
					   struct psd_error *err)
{
	struct reference reference = {.text = text, .how = how};
	struct psd_reference in_texts;

	if (how->is_markdown)
		psd_text_add(text,
			     "| key | value | if not given | used by | hosts | meaning |\n|---|---|---|---|---|---|\n");
	psd_schema_walk(&psd_scenario_root, NULL, NULL, add_row, &reference);
	if (psd_reference_searches_texts(text, how, &in_texts)) {
		reference = (struct reference){.text = text, .how = &in_texts};
		psd_schema_walk(&psd_scenario_root, NULL, NULL, add_row, &reference);
	}
	if (text->length == 0)
		add_kinds(text, how);
	return psd_reference_check(text, how, "key", err);
}

/* ---- the manual page ---- */

static bool add_manual_row(const struct psd_schema_spot *spot)
{
	struct reference *reference = spot->context;
	struct psd_text head = {.bytes = NULL}, meaning = {.bytes = NULL};
	char users[PSD_USERS_TEXT_MAX];

	add_head(&head, spot, "`");
	add_meaning(&meaning, spot);
	psd_text_add(&meaning, ". Heeded by %s.", psd_scenario_write_users(spot->uses, users));
	psd_text_add(reference->text, ".TP\n");
	psd_manual_add_line(reference->text, head.bytes ? head.bytes : "");
	psd_manual_add_line(reference->text, meaning.bytes ? meaning.bytes : "");
	if (head.is_out_of_memory || meaning.is_out_of_memory)
		reference->text->is_out_of_memory = true;
	psd_text_release(&head);
	psd_text_release(&meaning);
	return is_first_time(reference, spot->key->section);
}

void psd_scenario_add_manual(struct psd_text *text, const char *version)
{
	static const char *const lines[] = {
		"A scenario is a YAML file that names a network, a cluster and the systems to compare.",
		"`psd-sim` predicts it, `psd-run` executes it.",
		"Every quantity carries its unit: a rate is 40Gbps or 2.3GB/s, a size 256KiB or 2MB,",
		"a time 30us or 24h, a ratio 0.15 or 15%.",
		"Paths count from the folder of the scenario.",
		"An unknown key, a wrong unit and an impossible value are errors with file, line and column.",
	};
	struct reference reference = {.text = text};

	psd_manual_add_title(text, "psd-scenario", 5, version);
	psd_text_add(text, ".SH NAME\npsd\\-scenario \\- file that psd\\-sim predicts and psd\\-run executes\n"
			   ".SH DESCRIPTION\n");
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		psd_manual_add_line(text, lines[i]);
	psd_text_add(text, ".SH KEYS\n");
	psd_schema_walk(&psd_scenario_root, NULL, NULL, add_manual_row, &reference);
	psd_text_add(text, ".SH SEE ALSO\n.BR psd\\-sim (1),\n.BR psd\\-run (1)\n");
}

/* ---- a comment ---- */

void psd_scenario_add_meaning(struct psd_text *text, const char *path)
{
	size_t offset = 0;
	const struct psd_key *key = psd_section_find(psd_scenario_root.section, path, &offset);
	struct psd_text words = {.bytes = NULL};

	psd_text_add(&words, "%s", key->help);
	if (!key->section && key->type >= PSD_KEY_NAME && (key->type < PSD_KEY_RATE || key->type > PSD_KEY_SECONDS)) {
		psd_text_add(&words, ". Values: ");
		add_value(&words, key);
	}
	for (const char *c = words.bytes; c && *c; c++)
		if (*c != '`')
			psd_text_add_bytes(text, c, 1);
	text->is_out_of_memory = text->is_out_of_memory || words.is_out_of_memory;
	psd_text_release(&words);
}

/* ---- words for completion ---- */

static bool add_path(const struct psd_schema_spot *spot)
{
	struct psd_text *text = spot->context;

	if (!spot->key->section)
		psd_text_add(text, "%s%s", text->length ? " " : "", spot->path);
	return true;
}

enum psd_status psd_scenario_add_share(struct psd_text *text, const struct psd_command_table *table, const char *kind,
				       const char *version, struct psd_error *err)
{
	struct psd_text keys = {.bytes = NULL};

	psd_schema_walk(&psd_scenario_root, NULL, NULL, add_path, &keys);
	const enum psd_status status =
		psd_command_table_add_share(text, table, &(struct psd_share){kind, version, keys.bytes}, err);
	text->is_out_of_memory = text->is_out_of_memory || keys.is_out_of_memory;
	psd_text_release(&keys);
	return status;
}
