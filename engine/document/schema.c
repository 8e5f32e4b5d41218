/* Reads by rows: keys, values, then rules between rows, then the section's hooks. */
#include "engine/document/schema.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/hash.h"
#include "engine/base/inputs.h"
#include "engine/document/value.h"

enum { MAX_KEYS = 32 }; /* in one section */

const struct psd_key *psd_section_key(const struct psd_section *section, unsigned i)
{
	for (unsigned t = 0; t < PSD_SECTION_TABLES && section->tables[t]; t++)
		for (const struct psd_key *key = section->tables[t]; key->name; key++)
			if (i-- == 0)
				return key;
	return NULL;
}

const struct psd_key *psd_section_find(const struct psd_section *section, const char *path, size_t *offset)
{
	const size_t length = strcspn(path, ".");
	const struct psd_key *key;

	for (unsigned i = 0; (key = psd_section_key(section, i)); i++) {
		if (strlen(key->name) != length || strncmp(key->name, path, length) != 0)
			continue;
		*offset += key->offset;
		return path[length] ? psd_section_find(key->section, path + length + 1, offset) : key;
	}
	return NULL;
}

enum psd_status psd_schema_check_text(const struct psd_key *key, const char *name, const char *text,
				      struct psd_error *err)
{
	const struct psd_node node = {.kind = PSD_NODE_SCALAR, .key = name, .text = text};
	struct psd_key named = *key;
	uint64_t value[2]; /* as large as any type */

	named.name = name;
	return psd_value_read(value, &node, &named, err);
}

/* ---- defaults ---- */

static enum psd_status read_fallback(void *value, const struct psd_key *key)
{
	const struct psd_node node = {.kind = PSD_NODE_SCALAR, .key = key->name, .text = key->fallback};

	return psd_value_read(value, &node, key, NULL);
}

static void set_defaults(void *base, const struct psd_section *section)
{
	const struct psd_key *key;

	for (unsigned i = 0; (key = psd_section_key(section, i)); i++) {
		void *value = (char *)base + key->offset;

		if (key->type == PSD_KEY_SECTION && !key->most_entries)
			set_defaults(value, key->section);
		else if (key->fallback && read_fallback(value, key))
			assert(!"a default that its own row refuses");
	}
}

/* ---- rules between rows ---- */

static unsigned position_of(const void *value, const struct psd_key *chooser)
{
	return chooser->type == PSD_KEY_FLAG ? *(const bool *)value : *(const unsigned *)value;
}

static const char *const *names_of(const struct psd_key *chooser)
{
	return chooser->names ? chooser->names : psd_value_flag_names;
}

/* True when the row has no `when`, or its key has one of these choices. Fills *chooser and *position if it has one. */
static bool has_choice(const void *base, const struct psd_section *section, const struct psd_key *key, unsigned choices,
		       const struct psd_key **chooser, unsigned *position)
{
	size_t offset = 0;

	if (!key->when.key)
		return true;
	*chooser = psd_section_find(section, key->when.key, &offset);
	assert(*chooser); /* rows name rows */
	*position = position_of((const char *)base + offset, *chooser);
	return choices & 1u << *position;
}

static bool is_needed(const void *base, const struct psd_section *section, const struct psd_key *key)
{
	const struct psd_key *chooser;
	unsigned position;

	return key->is_required ||
	       (key->when.needed && has_choice(base, section, key, key->when.needed, &chooser, &position));
}

static bool is_empty(const void *base, const struct psd_section *section);

static bool is_there(const void *base, const struct psd_section *section, const struct psd_key *key)
{
	const void *value = (const char *)base + key->offset;

	if (key->most_entries)
		return *(const unsigned *)((const char *)base + key->n_entries_offset) > 0;
	if (key->type != PSD_KEY_SECTION)
		return (key->word && *(const bool *)((const char *)base + key->word_offset)) ||
		       !psd_value_is_absent(value, key, is_needed(base, section, key));
	if (key->has_offset && !*(const bool *)((const char *)base + key->has_offset))
		return false;
	return !is_empty(value, key->section);
}

bool psd_schema_is_said(const void *base, const struct psd_section *section, const struct psd_key *key)
{
	const struct psd_key *chooser;
	unsigned position;
	size_t offset = 0;

	if (!has_choice(base, section, key, key->when.choices, &chooser, &position))
		return false;
	if (key->rival && is_there(base, section, psd_section_find(section, key->rival, &offset)))
		return false;
	return is_there(base, section, key);
}

static bool is_empty(const void *base, const struct psd_section *section)
{
	const struct psd_key *key;

	for (unsigned i = 0; (key = psd_section_key(section, i)); i++)
		if (psd_schema_is_said(base, section, key))
			return false;
	return true;
}

bool psd_schema_is_changed(const void *base, const struct psd_section *section, const struct psd_key *key)
{
	const void *value = (const char *)base + key->offset;
	const struct psd_key *below;
	uint64_t fallback = 0; /* as large as any */

	if (!psd_schema_is_said(base, section, key))
		return false;
	if (key->type == PSD_KEY_SECTION && !key->most_entries) {
		for (unsigned i = 0; (below = psd_section_key(key->section, i)); i++)
			if (psd_schema_is_changed(value, key->section, below))
				return true;
		return false;
	}
	if (key->most_entries || !key->fallback || read_fallback(&fallback, key))
		return true;
	return key->type == PSD_KEY_TEXT ? strcmp(*(const char *const *)value, key->fallback) != 0
					 : memcmp(value, &fallback, psd_value_bytes(key->type)) != 0;
}

/* "ps, sfb and ring" */
static void join_choices(const char *const names[], unsigned choices, char *text, size_t room)
{
	unsigned n_left = 0;
	size_t length = 0;

	for (unsigned i = 0; names[i]; i++)
		n_left += choices >> i & 1;
	text[0] = '\0';
	for (unsigned i = 0; names[i] && length < room; i++)
		if (choices >> i & 1) {
			n_left--;
			length += (size_t)snprintf(text + length, room - length, "%s%s", names[i],
						   n_left > 1 ? ", "
						   : n_left   ? " and "
							      : "");
		}
}

static enum psd_status check_key(const struct psd_schema_reader *reader, const void *base,
				 const struct psd_section *section, const struct psd_key *key, const char *what,
				 const struct psd_node *mapping)
{
	const struct psd_node *node = psd_node_child(mapping, key->name);
	const struct psd_node *rival = key->rival ? psd_node_child(mapping, key->rival) : NULL;
	const struct psd_key *chooser;
	unsigned position;
	char choices[160];

	if (!node && !rival && key->is_required)
		return psd_error_set(reader->err, PSD_EINVAL, mapping->at, "'%s' needs '%s%s%s'", what, key->name,
				     key->rival ? "' or '" : "", key->rival ? key->rival : "");
	if (node && rival)
		return psd_error_set(reader->err, PSD_EINVAL, node->key_at,
				     "'%s' cannot be used together with '%s', must be one of them%s", key->name,
				     key->rival, psd_node_is_set(node) ? "; '--set KEY=' removes a key" : "");
	if (!key->when.key)
		return PSD_OK;
	if (node && !has_choice(base, section, key, key->when.choices, &chooser, &position)) {
		join_choices(names_of(chooser), key->when.choices, choices, sizeof(choices));
		return psd_error_set(reader->err, PSD_EINVAL, node->key_at,
				     "'%s' has no effect where '%s' is '%s', only with %s", key->name, key->when.key,
				     names_of(chooser)[position], choices);
	}
	if (!node && has_choice(base, section, key, key->when.needed, &chooser, &position))
		return psd_error_set(reader->err, PSD_EINVAL, mapping->at, "'%s' needs '%s' where '%s' is '%s'", what,
				     key->name, key->when.key, names_of(chooser)[position]);
	return PSD_OK;
}

/* ---- reading ---- */

/* Makes a path that is relative to the file's folder relative to the working directory, in the arena. Notes the file
 * there as an input. */
static enum psd_status join(const struct psd_schema_reader *reader, const char *relative, const char **path)
{
	const char *slash = strrchr(reader->path, '/');
	const size_t folder_length = slash && relative[0] != '/' ? (size_t)(slash - reader->path) + 1 : 0;
	const size_t length = strlen(relative);
	char *joined = psd_arena_take(reader->arena, folder_length + length + 1);

	if (!joined)
		return psd_out_of_memory(reader->err);
	memcpy(joined, reader->path, folder_length);
	memcpy(joined + folder_length, relative, length);
	psd_inputs_note(joined);
	*path = joined;
	return PSD_OK;
}

static enum psd_status read_section(const struct psd_schema_reader *reader, void *base,
				    const struct psd_section *section, const char *what,
				    const struct psd_node *mapping);

static enum psd_status read_plain(const struct psd_schema_reader *reader, void *base, void *value,
				  const struct psd_key *key, const struct psd_node *node)
{
	if (key->word) {
		bool *has_word = (bool *)((char *)base + key->word_offset);

		*has_word = node->kind == PSD_NODE_SCALAR && !strcmp(node->text, key->word);
		if (*has_word)
			return PSD_OK;
	}
	PSD_TRY(psd_value_read(value, node, key, reader->err));
	if (key->type != PSD_KEY_PATH)
		return PSD_OK;
	return join(reader, *(const char **)value, value);
}

static enum psd_status read_entry(const struct psd_schema_reader *reader, void *base, void *entry,
				  const struct psd_key *key, const struct psd_node *node)
{
	if (key->type != PSD_KEY_SECTION)
		return read_plain(reader, base, entry, key, node);
	memset(entry, 0, key->entry_bytes);
	set_defaults(entry, key->section);
	if (key->section->prepare)
		key->section->prepare(reader, entry, node);
	return read_section(reader, entry, key->section, key->name, node);
}

/* Refuses a list of mappings that --set begins or replaces, which a file alone can do. */
static enum psd_status refuse_set_list(const struct psd_key *key, const struct psd_node *list, struct psd_error *err)
{
	const char *path = list->at.path + strlen("--set "), *name = strstr(path, key->name);
	const int length = (int)(name ? (size_t)(name - path) + strlen(key->name) : strcspn(path, "="));
	const char *one = key->section->tables[0][0].name;

	if (list->kind == PSD_NODE_MAPPING)
		return psd_error_set(
			err, PSD_EINVAL, list->at,
			"'%s' is missing in the file: --set changes keys of a list's entries, and begins no list "
			"of mappings",
			key->name);
	if (key->is_required)
		return psd_error_set(
			err, PSD_EINVAL, list->at,
			"'%s' is a list of mappings, which a file must have: --set changes one of their keys "
			"(%.*s.0.%s=VALUE)",
			key->name, length, path, one);
	return psd_error_set(err, PSD_EINVAL, list->at,
			     "'%s' is a list of mappings, which a file must begin: --set changes one of their keys "
			     "(%.*s.0.%s=VALUE) or removes the list (%.*s=)",
			     key->name, length, path, one, length, path);
}

static enum psd_status check_list(const struct psd_key *key, const struct psd_node *list, struct psd_error *err)
{
	const bool is_plain = list->kind != PSD_NODE_SEQUENCE || (list->first && list->first->kind == PSD_NODE_SCALAR);

	if (key->type == PSD_KEY_SECTION && is_plain && psd_node_is_set(list))
		return refuse_set_list(key, list, err);
	if (list->kind != PSD_NODE_SEQUENCE)
		return psd_node_refuse(list, "a list such as [...]", err);
	if (list->n_children < 1 || list->n_children > key->most_entries)
		return psd_error_set(err, PSD_EINVAL, list->at, "'%s' has %u entries, must have 1 to %u", key->name,
				     list->n_children, key->most_entries);
	return PSD_OK;
}

/* Refuses a list of plain values whose newest entry, behind n_before others, equals one of these. */
static enum psd_status check_once(const struct psd_schema_reader *reader, const struct psd_key *key,
				  const struct psd_node *node, const char *entries, unsigned n_before)
{
	const size_t bytes = psd_value_bytes(key->type);

	for (unsigned i = 0; i < n_before; i++)
		if (!memcmp(entries + i * bytes, entries + n_before * bytes, bytes))
			return psd_error_set(reader->err, PSD_EINVAL, node->at, "'%s' has '%.80s' twice", key->name,
					     node->text);
	return PSD_OK;
}

/* Appends an entry "name=value" for each plain value in the mapping. A mapping inside it, which --set makes of a name
 * with dots, becomes one name again. name: name of the mapping with a dot behind it; "" for the outermost. */
static enum psd_status read_named(const struct psd_schema_reader *reader, const struct psd_key *key, const char *name,
				  const struct psd_node *mapping, const char *entries[], unsigned *n)
{
	for (const struct psd_node *node = mapping->first; node; node = node->next) {
		const bool is_deeper = node->kind == PSD_NODE_MAPPING;
		const bool is_plain = node->kind == PSD_NODE_SCALAR;
		const size_t room = strlen(name) + strlen(node->key) + (is_plain ? strlen(node->text) : 0) + 2;
		char *entry;

		if (node->kind == PSD_NODE_SEQUENCE)
			return psd_error_set(reader->err, PSD_EINVAL, node->at, "'%.80s' must be a plain value",
					     node->key);
		if (*n == key->most_entries)
			return psd_error_set(reader->err, PSD_EINVAL, node->at, "'%s' has more than %u entries",
					     key->name, key->most_entries);
		entry = psd_arena_take(reader->arena, room);
		if (!entry)
			return psd_out_of_memory(reader->err);
		snprintf(entry, room, "%s%s%s%s", name, node->key, is_deeper ? "." : "=", is_deeper ? "" : node->text);
		if (is_deeper)
			PSD_TRY(read_named(reader, key, entry, node, entries, n));
		else
			entries[(*n)++] = entry;
	}
	return PSD_OK;
}

static enum psd_status read_mapping(const struct psd_schema_reader *reader, void *base, const struct psd_key *key,
				    const struct psd_node *mapping)
{
	unsigned *n = (unsigned *)(void *)((char *)base + key->n_entries_offset);

	*n = 0;
	if (mapping->kind != PSD_NODE_MAPPING || !mapping->n_children)
		return psd_error_set(reader->err, PSD_EINVAL, mapping->at,
				     "'%s' must be a mapping such as {NAME: VALUE}", key->name);
	return read_named(reader, key, "", mapping, (const char **)(void *)((char *)base + key->offset), n);
}

/* A plain value counts as a list of one, so that --set sweep.nodes=8 works. */
static enum psd_status read_list(const struct psd_schema_reader *reader, void *base, const struct psd_key *key,
				 const struct psd_node *list)
{
	const bool is_plain = key->type != PSD_KEY_SECTION && list->kind == PSD_NODE_SCALAR;
	const size_t entry_bytes = key->type == PSD_KEY_SECTION ? key->entry_bytes : psd_value_bytes(key->type);
	unsigned *n_entries = (unsigned *)(void *)((char *)base + key->n_entries_offset);
	enum psd_status status = is_plain ? PSD_OK : check_list(key, list, reader->err);

	if (is_plain && strchr(list->text, ','))
		return psd_error_set(reader->err, PSD_EINVAL, list->at,
				     "'%s' is '%.80s', must be one value or a list in brackets: [1, 2]", key->name,
				     list->text);
	*n_entries = 0;
	for (const struct psd_node *node = is_plain ? list : list->first; node && !status; node = node->next) {
		status = read_entry(reader, base, (char *)base + key->offset + *n_entries * entry_bytes, key, node);
		if (!status && key->type != PSD_KEY_SECTION)
			status = check_once(reader, key, node, (char *)base + key->offset, *n_entries);
		++*n_entries;
		if (is_plain)
			break;
	}
	return status;
}

static enum psd_status read_key(const struct psd_schema_reader *reader, void *base, const struct psd_key *key,
				const struct psd_node *node)
{
	void *value = (char *)base + key->offset;

	if (key->are_named)
		return read_mapping(reader, base, key, node);
	if (key->most_entries)
		return read_list(reader, base, key, node);
	if (key->type != PSD_KEY_SECTION)
		return read_plain(reader, base, value, key, node);
	if (key->has_offset)
		*(bool *)((char *)base + key->has_offset) = true;
	return read_section(reader, value, key->section, key->name, node);
}

/* Keys that were renamed. */
static enum psd_status check_former(const struct psd_key *key, const struct psd_node *mapping, struct psd_error *err)
{
	const struct psd_node *node = key->former ? psd_node_child(mapping, key->former) : NULL;

	return node ? psd_error_set(err, PSD_EINVAL, node->key_at, "'%s' is now called '%s'", key->former, key->name)
		    : PSD_OK;
}

static enum psd_status check_names(const struct psd_section *section, const char *what, const struct psd_node *mapping,
				   struct psd_error *err)
{
	const char *known[MAX_KEYS + 1];
	const struct psd_key *key;
	unsigned n_known = 0;

	for (; (key = psd_section_key(section, n_known)); n_known++) {
		assert(n_known < MAX_KEYS);
		known[n_known] = key->name;
		PSD_TRY(check_former(key, mapping, err));
	}
	known[n_known] = NULL;
	return psd_node_check_keys(mapping, what, known, err);
}

static enum psd_status read_keys(const struct psd_schema_reader *reader, void *base, const struct psd_section *section,
				 const char *what, const struct psd_node *mapping)
{
	const struct psd_key *key;

	PSD_TRY(check_names(section, what, mapping, reader->err));
	for (unsigned i = 0; (key = psd_section_key(section, i)); i++) {
		const struct psd_node *node = psd_node_child(mapping, key->name);

		if (node)
			PSD_TRY(read_key(reader, base, key, node));
	}
	return PSD_OK;
}

static enum psd_status read_section(const struct psd_schema_reader *reader, void *base,
				    const struct psd_section *section, const char *what, const struct psd_node *mapping)
{
	enum psd_status status = read_keys(reader, base, section, what, mapping);
	const struct psd_key *key;

	if (!status && section->settle)
		status = section->settle(reader, base, mapping);
	for (unsigned i = 0; !status && (key = psd_section_key(section, i)); i++)
		status = check_key(reader, base, section, key, what, mapping);
	return !status && section->check ? section->check(reader, base, mapping) : status;
}

enum psd_status psd_schema_read(const struct psd_schema_reader *reader, const struct psd_key *root,
				const struct psd_node *mapping)
{
	set_defaults(reader->base, root->section);
	return read_section(reader, reader->base, root->section, root->name, mapping);
}

static bool is_named(const struct psd_key *key, const struct psd_node *const mappings[], unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (psd_node_child(mappings[i], key->name))
			return true;
	return false;
}

static void fill_key(char *base, const char *from, const struct psd_key *key)
{
	if (key->most_entries) {
		const unsigned n_entries = *(const unsigned *)(const void *)(from + key->n_entries_offset);
		const size_t bytes = key->type == PSD_KEY_SECTION ? key->entry_bytes : psd_value_bytes(key->type);

		memcpy(base + key->n_entries_offset, &n_entries, sizeof(n_entries));
		memcpy(base + key->offset, from + key->offset, n_entries * bytes);
		return;
	}
	if (key->word)
		memcpy(base + key->word_offset, from + key->word_offset, sizeof(bool));
	memcpy(base + key->offset, from + key->offset, psd_value_bytes(key->type));
}

void psd_schema_fill(void *base, const void *from, const struct psd_section *section,
		     const struct psd_node *const mappings[], unsigned n)
{
	const struct psd_key *key;

	for (unsigned i = 0; (key = psd_section_key(section, i)); i++)
		if (!is_named(key, mappings, n))
			fill_key(base, from, key);
}

uint64_t psd_schema_hash_number(uint64_t hash, const void *base, const struct psd_key *key)
{
	assert(key->type == PSD_KEY_CHOICE || key->type == PSD_KEY_FLAG || key->type >= PSD_KEY_RATE);
	return psd_hash_bytes(hash, (const char *)base + key->offset, psd_value_bytes(key->type));
}
