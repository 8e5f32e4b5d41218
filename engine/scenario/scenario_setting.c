/* Suggests whole paths for a setting whose path begins in the middle. Keys of lists' entries, which have numbers, are
 * offered where there is no other. */
#include <string.h>

#include "engine/document/schema.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/scenario_keys.h"

struct search {
	const char *path; /* up to its '=' */
	size_t length;
	struct psd_text found;	  /* "'cluster.nodes' or 'sweep.nodes'" */
	struct psd_text in_lists; /* "'systems.N.sync'" */
	bool has_first;		  /* it begins with a key of the root */
};

static bool ends_with(const char *whole, const struct search *search)
{
	const size_t length = strlen(whole);

	return length > search->length && whole[length - search->length - 1] == '.' &&
	       !memcmp(whole + length - search->length, search->path, search->length);
}

static bool is_first(const char *name, const struct search *search)
{
	const size_t length = strcspn(search->path, ".=");

	return strlen(name) == length && !memcmp(name, search->path, length);
}

static void look_in_list(const struct psd_schema_spot *spot, struct search *search)
{
	const struct psd_key *key;

	for (unsigned i = 0; (key = psd_section_key(spot->key->section, i)); i++)
		if (strlen(key->name) == search->length && !memcmp(key->name, search->path, search->length))
			psd_text_add(&search->in_lists, "%s'%s.N.%s'", search->in_lists.bytes ? " or " : "", spot->path,
				     key->name);
}

static bool look_at(const struct psd_schema_spot *spot)
{
	struct search *search = spot->context;
	const bool is_list = spot->key->section && spot->key->most_entries;

	search->has_first |= is_first(spot->path, search);
	if (ends_with(spot->path, search))
		psd_text_add(&search->found, "%s'%s'", search->found.bytes ? " or " : "", spot->path);
	if (is_list)
		look_in_list(spot, search);
	return !is_list;
}

/* Prefix of the settings that --sweep makes. */
static const char of_sweep[] = "--sweep sweep. ";

enum psd_status psd_scenario_check_setting(const char *setting, struct psd_error *err)
{
	const bool is_sweep = !strncmp(setting, of_sweep, strlen(of_sweep));
	const char *path = is_sweep ? setting + strlen(of_sweep) : setting;
	struct search search = {.path = path, .length = strcspn(path, "=")};
	enum psd_status status = PSD_OK;

	psd_schema_walk(&psd_scenario_root, NULL, NULL, look_at, &search);
	for (unsigned i = 0; is_sweep && psd_section_key(&psd_scenario_sweep, i); i++)
		search.has_first |= is_first(psd_section_key(&psd_scenario_sweep, i)->name, &search);
	const char *found = search.found.bytes ? search.found.bytes : search.in_lists.bytes;
	if (!search.has_first && found)
		status = psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = is_sweep ? "--sweep" : "--set"},
				       "no key '%.*s', did you mean %s%s?", (int)search.length, path, found,
				       found == search.found.bytes ? "" : " (N: number or name of the entry)");
	psd_text_release(&search.found);
	psd_text_release(&search.in_lists);
	return status;
}
