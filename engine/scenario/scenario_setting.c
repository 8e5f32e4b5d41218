/* Suggests whole paths for a setting whose path begins in the middle, and for a key at the top of a file that belongs
 * deeper. Keys of lists' entries, which have numbers, are offered to settings where there is no other. */
#include <string.h>

#include "engine/base/spelling.h"
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

	return length >= search->length && (length == search->length || whole[length - search->length - 1] == '.') &&
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

/* ---- words that are near a key ---- */

/* Words of other programs, without case and separators, and the keys that do the same. */
static const struct {
	const char *word, *key;
} synonyms[] = {
	{"batchsize", "batch_per_worker"},
	{"bs", "batch_per_worker"},
	{"lr", "learning_rate.base"},
	{"gpus", "workers_per_node"},
	{"gpuspernode", "workers_per_node"},
	{"gpu", "compute.device"},
	{"dtype", "precision"},
	{"worldsize", "sweep.workers"},
	{"optimizer", "train.optimiser"},
	{"seqlen", "sequence"},
	{"allreduce", "sync"},
};

enum { MOST_NAMES = 512 };

struct names {
	const char *all[MOST_NAMES + 1];
	unsigned n;
};

static bool take_name(const struct psd_schema_spot *spot)
{
	struct names *names = spot->context;

	if (names->n < MOST_NAMES)
		names->all[names->n++] = spot->key->name;
	return true;
}

/* The beginning of a name up to one of its words, such as batch of batch_per_worker. */
static bool begins_name(const char *name, const char *path, size_t length)
{
	return !strncmp(name, path, length) && name[length] == '_';
}

/* The last name of a key that the path, which no key has, may mean; NULL: none is near. */
static const char *name_near(const char *path, size_t length)
{
	struct names names = {.n = 0};
	char word[64];
	unsigned index;

	if (length >= sizeof(word) || memchr(path, '.', length))
		return NULL;
	memcpy(word, path, length);
	word[length] = '\0';
	for (size_t i = 0; i < sizeof(synonyms) / sizeof(synonyms[0]); i++)
		if (psd_spelling_find(word, (const char *const[]){synonyms[i].word, NULL}, &index))
			return synonyms[i].key;
	psd_schema_walk(&psd_scenario_root, NULL, NULL, take_name, &names);
	for (unsigned i = 0; i < names.n; i++)
		if (begins_name(names.all[i], path, length))
			return names.all[i];
	return psd_spelling_nearest(word, names.all);
}

/* The name of a key right below `cluster`, where other sections may have it; NULL: the path is another one. */
static const char *name_in_cluster(const char *path, size_t length)
{
	static const char cluster[] = "cluster.";
	const size_t before = strlen(cluster);

	return length > before && !strncmp(path, cluster, before) && !memchr(path + before, '.', length - before)
		       ? path + before
		       : NULL;
}

/* ---- a setting ---- */

/* Prefix of the settings that --sweep makes. */
static const char of_sweep[] = "--sweep sweep. ";

static void look(struct search *search, bool is_sweep)
{
	psd_schema_walk(&psd_scenario_root, NULL, NULL, look_at, search);
	for (unsigned i = 0; is_sweep && psd_section_key(&psd_scenario_sweep, i); i++)
		search->has_first |= is_first(psd_section_key(&psd_scenario_sweep, i)->name, search);
}

enum psd_status psd_scenario_check_setting(const char *setting, struct psd_error *err)
{
	const bool is_sweep = !strncmp(setting, of_sweep, strlen(of_sweep));
	const char *path = is_sweep ? setting + strlen(of_sweep) : setting, *near = NULL;
	const size_t length = strcspn(path, "=");
	struct search search = {.path = path, .length = length};
	enum psd_status status = PSD_OK;

	if (!is_sweep && !strncmp(setting, "--", 2)) /* an option that knows its key */
		return PSD_OK;
	look(&search, is_sweep);
	if (!search.found.bytes && !search.in_lists.bytes)
		near = search.has_first ? name_in_cluster(path, length) : name_near(path, length);
	if (near) {
		search.path = near;
		search.length = strcspn(near, "=");
		look(&search, is_sweep);
		search.has_first = false;
	}
	const char *found = search.found.bytes ? search.found.bytes : search.in_lists.bytes;
	if (search.found.is_out_of_memory || search.in_lists.is_out_of_memory)
		status = psd_out_of_memory(err);
	else if (!search.has_first && found)
		status = psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = is_sweep ? "--sweep" : "--set"},
				       "no key '%.*s', did you mean %s%s?", (int)length, path, found,
				       found == search.found.bytes ? "" : " (N: number or name of the entry)");
	psd_text_release(&search.found);
	psd_text_release(&search.in_lists);
	return status;
}

/* NULL: the section has no such key. */
static const struct psd_key *find_key(const struct psd_section *section, const char *name)
{
	const struct psd_key *key;

	for (unsigned i = 0; (key = psd_section_key(section, i)); i++)
		if (!strcmp(key->name, name))
			return key;
	return NULL;
}

/* Suggests the paths of keys that `cluster` lacks and other sections have. */
static enum psd_status check_cluster(const struct psd_section *section, const struct psd_node *cluster,
				     struct psd_error *err)
{
	enum psd_status status = PSD_OK;

	for (const struct psd_node *child = cluster->first; child && !status; child = child->next) {
		struct search search = {.path = child->key, .length = strlen(child->key)};

		if (find_key(section, child->key))
			continue;
		look(&search, false);
		if (search.found.is_out_of_memory || search.in_lists.is_out_of_memory)
			status = psd_out_of_memory(err);
		else if (search.found.bytes)
			status = psd_error_set(err, PSD_EINVAL, child->key_at,
					       "unknown key '%.80s' in 'cluster', did you mean %s%s%s%s?", child->key,
					       search.found.bytes, search.in_lists.bytes ? " or " : "",
					       search.in_lists.bytes ? search.in_lists.bytes : "",
					       search.in_lists.bytes ? " (N: number or name of the entry)" : "");
		psd_text_release(&search.found);
		psd_text_release(&search.in_lists);
	}
	return status;
}

/* The key is a path of --set, with a section: the search has found the path itself. */
static bool is_whole(const struct search *search)
{
	return strchr(search->path, '.') && search->found.bytes && strlen(search->found.bytes) == search->length + 2 &&
	       !memcmp(search->found.bytes + 1, search->path, search->length);
}

static const char *last_name(const char *path)
{
	return strrchr(path, '.') + 1;
}

enum psd_status psd_scenario_check_top(const struct psd_node *root, struct psd_error *err)
{
	enum psd_status status = PSD_OK;

	for (const struct psd_node *child = root->first; child && !status; child = child->next) {
		const struct psd_key *key = find_key(psd_scenario_root.section, child->key);
		struct search search = {.path = child->key};

		if (key && key->section == &psd_scenario_cluster && child->kind == PSD_NODE_MAPPING)
			status = check_cluster(key->section, child, err);
		if (key)
			continue;
		search.length = strlen(child->key);
		look(&search, false);
		if (search.found.is_out_of_memory || search.in_lists.is_out_of_memory)
			status = psd_out_of_memory(err);
		else if (is_whole(&search))
			status = psd_error_set(err, PSD_EINVAL, child->key_at,
					       "unknown key '%.80s' in 'scenario', must be written as '%s' in '%.*s'",
					       child->key, last_name(child->key),
					       (int)(last_name(child->key) - child->key) - 1, child->key);
		else if (search.found.bytes)
			status = psd_error_set(err, PSD_EINVAL, child->key_at,
					       "unknown key '%.80s' in 'scenario', did you mean %s?", child->key,
					       search.found.bytes);
		psd_text_release(&search.found);
		psd_text_release(&search.in_lists);
	}
	return status;
}
