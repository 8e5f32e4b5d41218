/* Looks for scenarios beside the program, in the order of their names. */
#define _GNU_SOURCE 1
#include "sim/installed.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/file.h"
#include "engine/base/spelling.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/scenario_keys.h"

enum { MOST_DEPTH = 8, MOST_PATHS = 64, NAME_WIDTH = 44 };

static const char ending[] = ".yaml";

/* ---- the folder ---- */

enum psd_status psd_installed_folder(struct psd_text *folder, struct psd_error *err)
{
	/* beside bin/, and for the tree beside build/, also if that has folders for sanitisers */
	static const char *const places[] = {"../share/psd", "..", "../.."};
	char program[PATH_MAX], place[2 * PATH_MAX];
	const ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);

	program[length > 0 ? length : 0] = '\0';
	for (size_t p = 0; p < sizeof(places) / sizeof(places[0]) && strchr(program, '/'); p++) {
		char found[PATH_MAX];

		snprintf(place, sizeof(place), "%.*s/%s", (int)(strrchr(program, '/') - program), program, places[p]);
		if (!realpath(place, found))
			continue;
		snprintf(place, sizeof(place), "%s/scenarios/quickstart.yaml", found);
		if (access(place, R_OK) != 0)
			continue;
		psd_text_add(folder, "%s", found);
		return folder->is_out_of_memory ? psd_out_of_memory(err) : PSD_OK;
	}
	return psd_error_set(err, PSD_EFILE, PSD_NOWHERE,
			     "no scenarios are in ../share/psd beside the program, make install puts them there");
}

/* ---- the files ---- */

/* A file that a walk through the folder finds. */
struct found {
	const char *path; /* whole path */
	const char *name; /* path in the folder, without its ending */
	size_t name_length;
	void *context;
};

/* Function for each file; false ends the walk. */
typedef bool (*visit_fn)(const struct found *found);

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static bool walk_folder(const char *path, size_t root_length, unsigned depth, visit_fn visit, void *context);

static bool visit_entry(const char *path, size_t root_length, unsigned depth, visit_fn visit, void *context)
{
	const size_t length = strlen(path), end = strlen(ending);
	struct stat status;

	if (stat(path, &status) != 0)
		return true;
	if (S_ISDIR(status.st_mode))
		return depth == 0 || !strcmp(strrchr(path, '/'), "/models") ||
		       walk_folder(path, root_length, depth - 1, visit, context);
	if (!S_ISREG(status.st_mode) || length <= end || strcmp(path + length - end, ending) != 0)
		return true;
	return visit(&(struct found){path, path + root_length, length - root_length - end, context});
}

static bool walk_folder(const char *path, size_t root_length, unsigned depth, visit_fn visit, void *context)
{
	struct dirent **entries;
	const int n = scandir(path, &entries, is_visible, alphasort);
	bool goes_on = true;

	for (int i = 0; i < n; i++) {
		char below[PATH_MAX];

		if (goes_on &&
		    (size_t)snprintf(below, sizeof(below), "%s/%s", path, entries[i]->d_name) < sizeof(below))
			goes_on = visit_entry(below, root_length, depth, visit, context);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	return goes_on;
}

static enum psd_status walk(const char *below, visit_fn visit, void *context, struct psd_error *err)
{
	struct psd_text folder = {.bytes = NULL};
	enum psd_status status = psd_installed_folder(&folder, err);

	if (!status) {
		psd_text_add(&folder, "/%s", below);
		if (folder.is_out_of_memory)
			status = psd_out_of_memory(err);
		else
			walk_folder(folder.bytes, folder.length + 1, MOST_DEPTH, visit, context);
	}
	psd_text_release(&folder);
	return status;
}

/* ---- the list ---- */

/* The line of a file that begins with `key`, behind the key and its blanks; NULL: it has none. */
static const char *line_of(const char *text, const char *key)
{
	const size_t length = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		if (!strncmp(line, key, length))
			return line + length + strspn(line + length, " ");
	return NULL;
}

/* A model has no systems. */
static bool add_entry(const struct found *found)
{
	struct psd_text *text = found->context;
	char *bytes;
	size_t length;
	struct psd_error err;

	if (psd_file_read(&bytes, &length, found->path, &err))
		return true;
	if (line_of(bytes, "systems:")) {
		const char *title = line_of(bytes, "title:");
		const bool is_quoted = title && (*title == '"' || *title == '\'');
		const char ends[] = {is_quoted ? *title : '\n', '\n', '\0'};

		title = title ? title + is_quoted : "";
		psd_text_add(text, "%-*.*s  %.*s\n", NAME_WIDTH, (int)found->name_length, found->name,
			     (int)strcspn(title, ends), title);
	}
	free(bytes);
	return true;
}

enum psd_status psd_installed_add_list(struct psd_text *text, struct psd_error *err)
{
	PSD_TRY(walk("scenarios", add_entry, text, err));
	return text->is_out_of_memory ? psd_out_of_memory(err) : PSD_OK;
}

/* ---- a name ---- */

struct search {
	const char *name;
	struct psd_text *path;
	struct psd_text names; /* names of files whose last part is the name */
	unsigned n;
	bool is_whole; /* a file has the whole name */
};

static bool look_at(const struct found *found)
{
	struct search *search = found->context;
	char whole[PATH_MAX];
	const char *end = whole;

	snprintf(whole, sizeof(whole), "%.*s", (int)found->name_length, found->name);
	while (end && !psd_spelling_is_same(end, search->name))
		end = strchr(end, '/') ? strchr(end, '/') + 1 : NULL;
	if (!end)
		return true;
	psd_text_clear(search->path);
	psd_text_add(search->path, "%s", found->path);
	psd_text_add(&search->names, "%s%.*s", search->n++ ? ", " : "", (int)found->name_length, found->name);
	search->is_whole = !strcmp(whole, search->name);
	return !search->is_whole;
}

static enum psd_status find(struct psd_text *path, const char *below, const char *kind, const char *hint,
			    const char *name, struct psd_error *err)
{
	const size_t length = strlen(name), end = strlen(ending);
	const bool has_ending = length > end && !strcmp(name + length - end, ending);
	char *bare = strndup(name, has_ending ? length - end : length);
	struct search search = {.name = bare, .path = path};
	enum psd_status status = bare ? walk(below, look_at, &search, err) : psd_out_of_memory(err);

	if (!status && search.n == 0)
		status = psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "there is no installed %s '%.80s', %s", kind, name,
				       hint);
	else if (!status && search.n > 1 && !search.is_whole)
		status = psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				       "'%.80s' is the end of %u names, must be one of them: %.300s", name, search.n,
				       search.names.bytes ? search.names.bytes : "");
	else if (!status && path->is_out_of_memory)
		status = psd_out_of_memory(err);
	psd_text_release(&search.names);
	free(bare);
	return status;
}

enum psd_status psd_installed_find(struct psd_text *path, const char *name, struct psd_error *err)
{
	return find(path, "scenarios", "scenario", "`psd-sim quickstart` lists them", name, err);
}

enum psd_status psd_installed_find_model(struct psd_text *path, const char *name, struct psd_error *err)
{
	return find(path, "scenarios/models", "model", "must be one such as resnet50, or the path of a model file",
		    name, err);
}

/* ---- a copy ---- */

struct paths {
	const struct psd_node *nodes[MOST_PATHS]; /* paths of the file, in its order */
	unsigned n;
};

static bool is_before(const struct psd_node *one, const struct psd_node *other)
{
	return one->at.line != other->at.line ? one->at.line < other->at.line : one->at.column < other->at.column;
}

static bool note_path(const struct psd_schema_spot *spot)
{
	struct paths *paths = spot->context;
	unsigned at = paths->n;

	if (spot->key->type != PSD_KEY_PATH || !spot->node || spot->node->kind != PSD_NODE_SCALAR ||
	    paths->n == MOST_PATHS)
		return true;
	for (; at > 0 && is_before(spot->node, paths->nodes[at - 1]); at--)
		paths->nodes[at] = paths->nodes[at - 1];
	paths->nodes[at] = spot->node;
	paths->n++;
	return true;
}

/* The begin of the path in the file's text; NULL: it is written in another way, as with escapes. */
static const char *place_of(const char *text, const struct psd_node *node)
{
	for (unsigned line = 1; line < node->at.line && text; line++)
		text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL;
	text = text ? strstr(text, node->text) : NULL;
	return text;
}

static void add_whole_path(struct psd_text *text, const char *folder, int folder_length, const char *relative,
			   bool is_quoted)
{
	char joined[2 * PATH_MAX], whole[PATH_MAX];

	snprintf(joined, sizeof(joined), "%.*s/%s", folder_length, folder, relative);
	if (*relative == '/' || !realpath(joined, whole))
		snprintf(whole, sizeof(whole), "%s", relative);
	if (is_quoted)
		psd_text_add(text, "%s", whole);
	else
		psd_text_add_json(text, whole);
}

static void add_replaced(struct psd_text *text, const char *bytes, const char *path, const struct paths *paths)
{
	const char *slash = strrchr(path, '/'), *from = bytes;

	for (unsigned i = 0; i < paths->n; i++) {
		const char *at = place_of(bytes, paths->nodes[i]);

		if (!at || at < from || at == bytes)
			continue;
		psd_text_add_bytes(text, from, (size_t)(at - from));
		add_whole_path(text, path, slash ? (int)(slash - path) : 0, paths->nodes[i]->text,
			       at[-1] == '"' || at[-1] == '\'');
		from = at + strlen(paths->nodes[i]->text);
	}
	psd_text_add(text, "%s", from);
}

enum psd_status psd_installed_add_copy(struct psd_text *text, const char *path, struct psd_error *err)
{
	struct psd_scenario scenario;
	struct paths paths = {.n = 0};
	char *bytes;
	size_t length;

	PSD_TRY(psd_file_read(&bytes, &length, path, err));
	enum psd_status status = psd_scenario_load(&scenario, path, (const char *const[]){NULL}, err);
	if (!status) {
		psd_schema_walk(&psd_scenario_root, &scenario, scenario.root, note_path, &paths);
		add_replaced(text, bytes, path, &paths);
		psd_scenario_release(&scenario);
	}
	free(bytes);
	return status || !text->is_out_of_memory ? status : psd_out_of_memory(err);
}
