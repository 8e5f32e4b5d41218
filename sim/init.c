#define _GNU_SOURCE 1
#include "sim/init.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/spelling.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/scenario_keys.h"
#include "sim/installed.h"

#define BUCKET "25MiB" /* the default of PyTorch's DistributedDataParallel */

enum { WIDTH = 80, MOST_METHODS = 16, MOST_METHOD = 32, INDENT = 2 };

/* ---- values ---- */

static enum psd_status check(const char *option, const char *path, const char *value, struct psd_error *err)
{
	size_t offset = 0;

	return psd_schema_check_text(psd_section_find(psd_scenario_root.section, path, &offset), option, value, err);
}

/* The methods of --sync. */
struct methods {
	char names[MOST_METHODS][MOST_METHOD];
	unsigned n;
};

static enum psd_status read_methods(struct methods *methods, const char *list, struct psd_error *err)
{
	for (const char *at = list; *at; at += *at == ',') {
		const size_t length = strcspn(at, ",");
		char *name = methods->names[methods->n];

		if (methods->n == MOST_METHODS)
			return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'--sync' has more than %d methods",
					     MOST_METHODS);
		snprintf(name, MOST_METHOD, "%.*s", (int)length, at);
		PSD_TRY(check("--sync", "systems.sync", name, err));
		for (unsigned m = 0; m < methods->n; m++)
			if (!strcmp(methods->names[m], name))
				return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'--sync' has '%s' twice", name);
		methods->n++;
		at += length;
	}
	return methods->n ? PSD_OK
			  : psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
					  "'--sync' is '%.80s', must be methods such as ring,ps", list);
}

/* A path that holds where the scenario is: a relative one only if that is known to be the working directory. */
static enum psd_status find_model(struct psd_text *path, const struct psd_init_answers *answers, struct psd_error *err)
{
	const bool is_here = answers->output_path && !strchr(answers->output_path, '/');
	char whole[PATH_MAX];

	if (access(answers->model, R_OK) != 0 || !strpbrk(answers->model, "./"))
		return psd_installed_find_model(path, answers->model, err);
	psd_text_add(path, "%s", is_here || !realpath(answers->model, whole) ? answers->model : whole);
	return path->is_out_of_memory ? psd_out_of_memory(err) : PSD_OK;
}

static enum psd_status check_answers(const struct psd_init_answers *answers, struct methods *methods,
				     struct psd_error *err)
{
	PSD_TRY(check("--nodes", "cluster.nodes", answers->nodes, err));
	PSD_TRY(check("--bandwidth", "cluster.network.bandwidth", answers->bandwidth, err));
	PSD_TRY(check("--latency", "cluster.network.latency", answers->latency, err));
	PSD_TRY(check("--device", "compute.device", answers->device, err));
	PSD_TRY(check("--workers", "cluster.workers_per_node", answers->workers, err));
	PSD_TRY(check("--batch", "model.batch_per_worker", answers->batch, err));
	if (answers->stack)
		PSD_TRY(check("--stack", "cluster.stack", answers->stack, err));
	return read_methods(methods, answers->sync, err);
}

/* ---- the text ---- */

/* Appends the key on the last part of `path`, below a comment with its meaning. */
static void add_key(struct psd_text *text, const char *path, int indent, const char *value)
{
	const char *name = strrchr(path, '.') ? strrchr(path, '.') + 1 : path;
	struct psd_text words = {.bytes = NULL};

	psd_scenario_add_meaning(&words, path);
	psd_text_add(text, "%*s# ", indent, "");
	psd_text_add_commented(text, words.bytes ? words.bytes : "", indent, WIDTH);
	psd_text_add(text, "%*s%s:%s%s\n", indent, "", name, value ? " " : "", value ? value : "");
	text->is_out_of_memory = text->is_out_of_memory || words.is_out_of_memory;
	psd_text_release(&words);
}

static void add_quoted(struct psd_text *text, const char *path, int indent, const char *value)
{
	struct psd_text quoted = {.bytes = NULL};

	psd_text_add_json(&quoted, value);
	add_key(text, path, indent, quoted.bytes ? quoted.bytes : "");
	text->is_out_of_memory = text->is_out_of_memory || quoted.is_out_of_memory;
	psd_text_release(&quoted);
}

/* Editors with a language server for YAML complete and check by the schema, where it is installed. */
static void add_head(struct psd_text *text)
{
	struct psd_text schema = {.bytes = NULL};
	struct psd_error err;

	if (!psd_installed_folder(&schema, &err)) {
		psd_text_add(&schema, "/scenario.schema.json");
		if (!schema.is_out_of_memory && access(schema.bytes, R_OK) == 0)
			psd_text_add(text, "# yaml-language-server: $schema=%s\n", schema.bytes);
	}
	psd_text_add(text, "# Made by psd-sim init. Each comment explains the key below it; `psd-sim --keys`\n"
			   "# explains all keys. `psd-sim FILE` predicts it, `psd-sim ask FILE` answers.\n\n");
	psd_text_release(&schema);
}

/* All-reduces fuse tensors, as PyTorch's DistributedDataParallel does. */
static bool is_all_reduce(const char *method)
{
	unsigned index;

	return psd_spelling_find(method, psd_sync_names, &index) && index >= PSD_SYNC_ALL_REDUCE;
}

/* The first system explains the keys. */
static void add_systems(struct psd_text *text, const struct methods *methods)
{
	bool has_fuse = false;

	add_key(text, "systems", 0, NULL);
	for (unsigned m = 0; m < methods->n; m++) {
		const char *name = methods->names[m];

		if (m == 0)
			psd_text_add(text, "  -\n");
		else
			psd_text_add(text, "  - name: %s\n    sync: %s\n", name, name);
		if (m == 0)
			add_key(text, "systems.name", 2 * INDENT, name);
		if (m == 0)
			add_key(text, "systems.sync", 2 * INDENT, name);
		if (!is_all_reduce(name))
			continue;
		if (has_fuse)
			psd_text_add(text, "    fuse: " BUCKET "\n");
		else
			add_key(text, "systems.fuse", 2 * INDENT, BUCKET);
		has_fuse = true;
	}
}

/* The powers of two below the number of nodes, and that number. */
static void add_sweep(struct psd_text *text, const char *nodes)
{
	const unsigned long most = strtoul(nodes, NULL, 10);
	struct psd_text list = {.bytes = NULL};

	for (unsigned long n = 1; n < most; n *= 2)
		psd_text_add(&list, "%s%lu", n > 1 ? ", " : "[", n);
	psd_text_add(&list, "%s%lu]", list.length ? ", " : "[", most);
	psd_text_add(text, "\n");
	add_key(text, "sweep", 0, NULL);
	add_key(text, "sweep.nodes", INDENT, list.bytes ? list.bytes : "[1]");
	text->is_out_of_memory = text->is_out_of_memory || list.is_out_of_memory;
	psd_text_release(&list);
}

static void add_scenario(struct psd_text *text, const struct psd_init_answers *answers, const char *model,
			 const struct methods *methods)
{
	struct psd_text title = {.bytes = NULL};
	const char *slash = strrchr(answers->model, '/');

	add_head(text);
	psd_text_add(&title, "%s on %s nodes at %s", slash ? slash + 1 : answers->model, answers->nodes,
		     answers->bandwidth);
	add_quoted(text, "title", 0, title.bytes ? title.bytes : "");
	psd_text_release(&title);
	psd_text_add(text, "\n");
	add_key(text, "model", 0, NULL);
	add_quoted(text, "model.graph", INDENT, model);
	add_key(text, "model.batch_per_worker", INDENT, answers->batch);
	psd_text_add(text, "\n");
	add_key(text, "compute", 0, NULL);
	add_key(text, "compute.device", INDENT, answers->device);
	psd_text_add(text, "\n");
	add_key(text, "cluster", 0, NULL);
	add_key(text, "cluster.nodes", INDENT, answers->nodes);
	add_key(text, "cluster.workers_per_node", INDENT, answers->workers);
	add_key(text, "cluster.network", INDENT, NULL);
	add_quoted(text, "cluster.network.bandwidth", 2 * INDENT, answers->bandwidth);
	add_quoted(text, "cluster.network.latency", 2 * INDENT, answers->latency);
	if (answers->stack)
		add_key(text, "cluster.stack", INDENT, answers->stack);
	psd_text_add(text, "\n");
	add_systems(text, methods);
	add_sweep(text, answers->nodes);
}

enum psd_status psd_init_add_scenario(struct psd_text *text, const struct psd_init_answers *given,
				      struct psd_error *err)
{
	struct psd_init_answers answers = *given;
	struct psd_text model = {.bytes = NULL};
	struct methods methods = {.n = 0};

	answers.device = given->device ? given->device : "a100";
	answers.workers = given->workers ? given->workers : "1";
	answers.batch = given->batch ? given->batch : "32";
	answers.latency = given->latency ? given->latency : "30us";
	answers.sync = given->sync ? given->sync : "ring,ps";
	PSD_TRY(check_answers(&answers, &methods, err));
	const enum psd_status status = find_model(&model, &answers, err);
	if (!status)
		add_scenario(text, &answers, model.bytes, &methods);
	psd_text_release(&model);
	return status || !text->is_out_of_memory ? status : psd_out_of_memory(err);
}
