/* Files that a scenario names: an error of one of them gets the place of the key with its path. */
#include <string.h>

#include "engine/document/schema.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/scenario_keys.h"

struct search {
	const char *text; /* "PATH: cannot be opened", or a file in a folder PATH */
	const struct psd_node *found;
};

static bool visit(const struct psd_schema_spot *spot)
{
	struct search *search = spot->context;
	const char *path;
	size_t length;

	if (search->found || spot->key->type != PSD_KEY_PATH || !spot->node || spot->node->kind != PSD_NODE_SCALAR)
		return !search->found;
	path = *(const char *const *)(const void *)((const char *)spot->base + spot->key->offset);
	length = path ? strlen(path) : 0;
	if (path && !strncmp(search->text, path, length) &&
	    (search->text[length] == ':' || search->text[length] == '/'))
		search->found = spot->node;
	return true;
}

enum psd_status psd_scenario_place_file(const struct psd_scenario *scenario, enum psd_status status,
					struct psd_error *err)
{
	struct psd_error cause;
	struct search search = {.text = cause.text};

	if (status != PSD_EFILE || !err)
		return status;
	cause = *err;
	psd_schema_walk(&psd_scenario_root, scenario, scenario->root, visit, &search);
	return search.found ? psd_error_set(err, status, search.found->at,
					    "'%s' is '%.200s': %s (paths count from the scenario's folder)",
					    search.found->key, search.found->text, cause.text)
			    : status;
}
