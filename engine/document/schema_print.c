#include "engine/document/schema.h"

#include <stdio.h>
#include <string.h>

#include "engine/document/value.h"

struct whole {
	const void *base;
	const struct psd_section *section;
};

/* whole: NULL outside of a file; node: the value's node in the file; NULL: absent. */
static void add_value(struct psd_text *text, const struct whole *whole, const void *base, const struct psd_key *key,
		      const struct psd_node *node);

static unsigned n_entries(const void *base, const struct psd_key *key)
{
	return *(const unsigned *)((const char *)base + key->n_entries_offset);
}

/* True if the key has a value that a printed file needs. */
static bool is_printed(const struct whole *whole, const void *base, const struct psd_section *section,
		       const struct psd_key *key, const struct psd_node *mapping)
{
	size_t offset = 0;

	if (!psd_schema_is_said(base, section, key))
		return false;
	if (!whole || !key->varies_by || psd_node_child(mapping, key->name))
		return true;
	const struct psd_key *list = psd_section_find(whole->section, key->varies_by, &offset);
	return n_entries((const char *)whole->base + offset - list->offset, list) == 0;
}

static void add_flow(struct psd_text *text, const struct whole *whole, const void *base,
		     const struct psd_section *section, const struct psd_node *mapping)
{
	const struct psd_key *key;
	const char *separator = "";

	psd_text_add(text, "{");
	for (unsigned i = 0; (key = psd_section_key(section, i)); i++) {
		if (!is_printed(whole, base, section, key, mapping))
			continue;
		psd_text_add(text, "%s%s: ", separator, key->name);
		add_value(text, whole, base, key, psd_node_child(mapping, key->name));
		separator = ", ";
	}
	psd_text_add(text, "}");
}

static const void *entry_of(const void *base, const struct psd_key *key, unsigned i)
{
	const size_t bytes = key->type == PSD_KEY_SECTION ? key->entry_bytes : psd_value_bytes(key->type);

	return (const char *)base + key->offset + i * bytes;
}

/* A plain value counts as a list of one. */
static const struct psd_node *first_entry(const struct psd_node *list)
{
	return list && list->kind == PSD_NODE_SCALAR ? list : list ? list->first : NULL;
}

static void add_list(struct psd_text *text, const struct whole *whole, const void *base, const struct psd_key *key,
		     const struct psd_node *list)
{
	const struct psd_node *node = first_entry(list);

	psd_text_add(text, "[");
	for (unsigned i = 0; i < n_entries(base, key); i++, node = node ? node->next : NULL) {
		psd_text_add(text, "%s", i ? ", " : "");
		if (key->type == PSD_KEY_SECTION)
			add_flow(text, whole, entry_of(base, key, i), key->section, node);
		else
			psd_value_add_as_written(text, entry_of(base, key, i), key, node);
	}
	psd_text_add(text, "]");
}

/* Adds entries "name=value" as a mapping. */
static void add_named(struct psd_text *text, const void *base, const struct psd_key *key)
{
	const char *const *entries = entry_of(base, key, 0);

	psd_text_add(text, "{");
	for (unsigned i = 0; i < n_entries(base, key); i++) {
		const char *equals = strrchr(entries[i], '=');
		struct psd_text name = {.bytes = NULL};

		psd_text_add_bytes(&name, entries[i], (size_t)(equals - entries[i]));
		psd_text_add(text, "%s", i ? ", " : "");
		psd_text_add_json(text, name.bytes ? name.bytes : "");
		psd_text_add(text, ": ");
		psd_text_add_json(text, equals + 1);
		psd_text_release(&name);
	}
	psd_text_add(text, "}");
}

static void add_value(struct psd_text *text, const struct whole *whole, const void *base, const struct psd_key *key,
		      const struct psd_node *node)
{
	const void *value = (const char *)base + key->offset;

	if (key->are_named)
		add_named(text, base, key);
	else if (key->most_entries)
		add_list(text, whole, base, key, node);
	else if (key->type == PSD_KEY_SECTION)
		add_flow(text, whole, value, key->section, node);
	else if (key->word && *(const bool *)((const char *)base + key->word_offset))
		psd_text_add(text, "%s", key->word);
	else
		psd_value_add_as_written(text, value, key, node);
}

void psd_schema_add_value(struct psd_text *text, const void *base, const struct psd_key *key)
{
	add_value(text, NULL, base, key, NULL);
}

/* True when an entry's section equals the one that its defaults come from. */
static bool is_inherited(const struct whole *whole, const void *base, const struct psd_key *key)
{
	struct psd_text own = {.bytes = NULL}, inherited = {.bytes = NULL};
	size_t offset = 0;

	if (!key->inherits)
		return false;
	psd_section_find(whole->section, key->inherits, &offset);
	add_flow(&own, NULL, (const char *)base + key->offset, key->section, NULL);
	add_flow(&inherited, NULL, (const char *)whole->base + offset, key->section, NULL);
	const bool is_same = own.bytes && inherited.bytes && !strcmp(own.bytes, inherited.bytes);
	psd_text_release(&own);
	psd_text_release(&inherited);
	return is_same;
}

/* Adds each key on a line of its own, the first behind `first`. */
static void add_lines(struct psd_text *text, const struct whole *whole, const void *base,
		      const struct psd_section *section, const char *first, const struct psd_node *mapping)
{
	const struct psd_key *key;

	for (unsigned i = 0; (key = psd_section_key(section, i)); i++) {
		if (!is_printed(whole, base, section, key, mapping) || is_inherited(whole, base, key))
			continue;
		psd_text_add(text, "%s%s: ", first, key->name);
		add_value(text, whole, base, key, psd_node_child(mapping, key->name));
		psd_text_add(text, "\n");
		first = first[2] ? "    " : "  ";
	}
}

static void add_block(struct psd_text *text, const struct whole *whole, const struct psd_key *key,
		      const struct psd_node *node)
{
	const struct psd_node *entry = first_entry(node);
	const void *base = whole->base;

	if (!key->most_entries) {
		add_lines(text, whole, (const char *)base + key->offset, key->section, "  ", node);
		return;
	}
	for (unsigned e = 0; e < n_entries(base, key); e++, entry = entry ? entry->next : NULL)
		add_lines(text, whole, entry_of(base, key, e), key->section, "  - ", entry);
}

void psd_schema_add_text(struct psd_text *text, const void *base, const struct psd_section *section,
			 const struct psd_node *mapping)
{
	const struct whole whole = {base, section};
	const struct psd_key *key;

	for (unsigned i = 0; (key = psd_section_key(section, i)); i++) {
		const struct psd_node *node = psd_node_child(mapping, key->name);

		if (!psd_schema_is_said(base, section, key))
			continue;
		psd_text_add(text, "%s:", key->name);
		if (key->type == PSD_KEY_SECTION) {
			psd_text_add(text, "\n");
			add_block(text, &whole, key, node);
			continue;
		}
		psd_text_add(text, " ");
		add_value(text, &whole, base, key, node);
		psd_text_add(text, "\n");
	}
}

/* ---- visits ---- */

enum { MAX_PATH_BYTES = 128 };

static void walk(const struct psd_schema_spot *around, const struct psd_section *section, const void *base,
		 const struct psd_node *mapping, psd_schema_visit_fn visit);

static void walk_below(const struct psd_schema_spot *spot, psd_schema_visit_fn visit)
{
	const struct psd_key *key = spot->key;
	const struct psd_node *entry = spot->node ? spot->node->first : NULL;

	if (!spot->base || !key->most_entries) {
		walk(spot, key->section, spot->base ? (const char *)spot->base + key->offset : NULL, spot->node, visit);
		return;
	}
	for (unsigned i = 0; i < n_entries(spot->base, key); i++, entry = entry ? entry->next : NULL)
		walk(spot, key->section, entry_of(spot->base, key, i), entry, visit);
}

static void walk(const struct psd_schema_spot *around, const struct psd_section *section, const void *base,
		 const struct psd_node *mapping, psd_schema_visit_fn visit)
{
	const struct psd_key *key;
	char path[MAX_PATH_BYTES];

	for (unsigned i = 0; (key = psd_section_key(section, i)); i++) {
		const struct psd_schema_spot spot = {
			.path = path,
			.section = section,
			.key = key,
			.base = base,
			.node = psd_node_child(mapping, key->name),
			.uses = key->uses ? key->uses : around->uses,
			.context = around->context,
		};

		snprintf(path, sizeof(path), "%s%s%s", around->path, *around->path ? "." : "", key->name);
		if (visit(&spot) && key->type == PSD_KEY_SECTION)
			walk_below(&spot, visit);
	}
}

void psd_schema_walk(const struct psd_key *root, const void *base, const struct psd_node *mapping,
		     psd_schema_visit_fn visit, void *context)
{
	const struct psd_schema_spot outermost = {.path = "", .uses = root->uses, .context = context};

	walk(&outermost, root->section, base, mapping, visit);
}

bool psd_schema_read_number(const struct psd_key *key, const struct psd_node *node, double *number)
{
	const bool is_real = key->type == PSD_KEY_RATE || key->type == PSD_KEY_SECONDS || key->type == PSD_KEY_RATIO ||
			     key->type == PSD_KEY_NUMBER;
	struct psd_error err;
	unsigned narrow = 0;
	uint64_t wide = 0;

	if (key->type == PSD_KEY_UNSIGNED && !psd_value_read(&narrow, node, key, &err))
		*number = narrow;
	else if ((key->type == PSD_KEY_BYTES || key->type == PSD_KEY_COUNT) && !psd_value_read(&wide, node, key, &err))
		*number = (double)wide;
	else
		return is_real && !psd_value_read(number, node, key, &err);
	return true;
}

void psd_schema_add_plain(struct psd_text *text, const struct psd_key *key, const struct psd_node *node)
{
	const bool is_choice = key->type == PSD_KEY_NAME || key->type == PSD_KEY_CHOICE || key->type == PSD_KEY_FLAG;
	uint64_t value = 0; /* as large as any of these types */
	struct psd_error err;

	if (is_choice && !psd_value_read(&value, node, key, &err))
		psd_value_add_as_written(text, &value, key, NULL);
	else
		psd_text_add(text, "%s", node->text);
}
