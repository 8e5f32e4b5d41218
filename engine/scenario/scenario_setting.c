/* Suggests whole paths for a setting whose path begins in the middle. Keys in lists are not offered, since entries have
 * numbers. */
#include <string.h>

#include "engine/document/schema.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/scenario_keys.h"

struct search {
	const char *path; /* up to its '=' */
	size_t length;
	struct psd_text found; /* "'cluster.nodes' or 'sweep.nodes'" */
	bool has_first;	       /* it begins with a key of the root */
};

static bool ends_with(const char *whole, const struct search *search)
{
	const size_t length = strlen(whole);

	return length > search->length && whole[length - search->length - 1] == '.' &&
	       !memcmp(whole + length - search->length, search->path, search->length);
}

static bool look_at(const struct psd_schema_spot *spot)
{
	struct search *search = spot->context;
	const size_t first_length = strcspn(search->path, ".=");

	if (strlen(spot->path) == first_length && !memcmp(spot->path, search->path, first_length))
		search->has_first = true;
	if (ends_with(spot->path, search))
		psd_text_add(&search->found, "%s'%s'", search->found.bytes ? " or " : "", spot->path);
	return !spot->key->section || !spot->key->most_entries;
}

enum psd_status psd_scenario_check_setting(const char *setting, struct psd_error *err)
{
	struct search search = {.path = setting, .length = strcspn(setting, "=")};
	enum psd_status status = PSD_OK;

	if (!strncmp(setting, "--", 2)) /* its option has a prefix from the root */
		return PSD_OK;
	psd_schema_walk(&psd_scenario_root, NULL, NULL, look_at, &search);
	if (!search.has_first && search.found.bytes)
		status = psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = "--set"},
				       "no key '%.*s', did you mean %s?", (int)search.length, setting,
				       search.found.bytes);
	psd_text_release(&search.found);
	return status;
}
