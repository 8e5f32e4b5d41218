/* Files that are installed beside the programs have each key and option of the tables that they are made from. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_tree.h>

#include "engine/document/schema.h"
#include "engine/scenario/scenario_keys.h"
#include "tests/cli_helper.h"

/* ---- the schema ---- */

/* The schema of the key at that path, and the number of all keys in its section; NULL: it has none. */
static yajl_val schema_of(yajl_val schema, const char *path, size_t *n_beside)
{
	static const char *const in_object[] = {"properties", NULL};
	static const char *const in_list[] = {"items", "properties", NULL};
	const size_t length = strcspn(path, ".");
	yajl_val properties = yajl_tree_get(schema, (const char **)(uintptr_t)in_object, yajl_t_object);

	if (!properties)
		properties = yajl_tree_get(schema, (const char **)(uintptr_t)in_list, yajl_t_object);
	for (size_t i = 0; properties && i < properties->u.object.len; i++) {
		const char *name = properties->u.object.keys[i];

		if (strlen(name) != length || strncmp(name, path, length) != 0)
			continue;
		*n_beside = properties->u.object.len;
		return path[length] ? schema_of(properties->u.object.values[i], path + length + 1, n_beside)
				    : properties->u.object.values[i];
	}
	return NULL;
}

static bool expect_in_schema(const struct psd_schema_spot *spot)
{
	static const char *const description[] = {"description", NULL};
	size_t n_beside = 0, n_keys = 0;
	yajl_val found = schema_of(spot->context, spot->path, &n_beside);

	while (psd_section_key(spot->section, (unsigned)n_keys))
		n_keys++;
	cr_expect_not_null(found, "the schema lacks %s", spot->path);
	cr_expect_eq(n_beside, n_keys, "the section of %s has %zu keys, its schema %zu", spot->path, n_keys, n_beside);
	cr_expect_not_null(yajl_tree_get(found, (const char **)(uintptr_t)description, yajl_t_string), "%s",
			   spot->path);
	return true;
}

Test(shared_files, the_schema_has_each_key_and_no_other)
{
	struct run made = run_program("psd-sim", "--share schema", "");
	char message[128];
	yajl_val schema = yajl_tree_parse(made.text, message, sizeof(message));

	cr_assert_not_null(schema, "%s", message);
	psd_schema_walk(&psd_scenario_root, NULL, NULL, expect_in_schema, schema);
	yajl_tree_free(schema);
	free(made.text);
}

static bool expect_in_manual(const struct psd_schema_spot *spot)
{
	char head[256];

	snprintf(head, sizeof(head), "\n.TP\n\\fB%s\\fR: ", spot->path);
	cr_expect_not_null(strstr(spot->context, head), "the manual page lacks %s", spot->path);
	return !strstr(spot->path, "systems.host"); /* explained below cluster.host */
}

Test(shared_files, the_manual_page_of_scenarios_has_each_key)
{
	struct run made = run_program("psd-sim", "--share scenario", "");

	cr_expect_eq(strncmp(made.text, ".TH \"psd-scenario\" 5 ", 21), 0);
	psd_schema_walk(&psd_scenario_root, NULL, NULL, expect_in_manual, made.text);
	free(made.text);
}

/* ---- options ---- */

/* An option as the file of that kind writes it. */
static void write_option(char option[128], const char *kind, const char *name, size_t length)
{
	const size_t n_dashes = name[1] == '-' ? 2 : 1;
	size_t at = 0;

	if (!strcmp(kind, "fish")) {
		snprintf(option, 128, "-%c %.*s ", n_dashes == 2 ? 'l' : 's', (int)(length - n_dashes),
			 name + n_dashes);
		return;
	}
	for (size_t i = 0; i < length; i++) {
		if (name[i] == '-' && !strcmp(kind, "man"))
			option[at++] = '\\';
		option[at++] = name[i];
	}
	option[at] = '\0';
}

/* The reference lists options in lines "| `--csv` | ...". */
static void expect_options(const char *program, const char *kind)
{
	char arguments[64], option[128];
	struct run reference = run_program(program, "--options", ""), made;
	unsigned n_options = 0;

	snprintf(arguments, sizeof(arguments), "--share %s", kind);
	made = run_program(program, arguments, "");
	for (const char *at = reference.text; (at = strstr(at, "\n| `-")); at++, n_options++) {
		const char *name = at + strlen("\n| `");

		write_option(option, kind, name, strcspn(name, " `"));
		cr_expect_not_null(strstr(made.text, option), "%s of %s lacks %s", kind, program, option);
	}
	cr_expect_gt(n_options, 20);
	free(reference.text);
	free(made.text);
}

Test(shared_files, manual_pages_and_completion_have_each_option)
{
	static const char *const programs[] = {"psd-sim", "psd-run"}, *const kinds[] = {"man", "bash", "zsh", "fish"};

	for (size_t p = 0; p < 2; p++) {
		struct run wrong = run_program(programs[p], "--share troff", "2>&1");

		for (size_t k = 0; k < 4; k++)
			expect_options(programs[p], kinds[k]);
		cr_expect_eq(wrong.exit_status, 2);
		cr_expect_not_null(strstr(wrong.text, "'--share' is 'troff', must be man, bash, zsh or fish\n"));
		free(wrong.text);
	}
}

/* Words are given with blanks between them; the last one is completed. */
static void expect_completed(const char *words, const char *completed)
{
	char command[3 * PATH_MAX];
	struct run made;

	snprintf(command, sizeof(command),
		 "bash -c 'compopt() { :; }; source <(%s --share bash); COMP_WORDS=(%s); "
		 "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _psd_sim; echo \"${COMPREPLY[@]}\"' 2>&1",
		 path_of("psd-sim").text, words);
	made = run_command(command);
	cr_expect_str_eq(made.text, completed, "%s: %s", words, made.text);
	free(made.text);
}

Test(shared_files, bash_completes_commands_options_and_keys)
{
	if (system("command -v bash >/dev/null"))
		cr_skip_test("bash is not here");
	expect_completed("psd-sim desc", "describe\n");
	expect_completed("psd-sim --est", "--estimate\n");
	expect_completed("psd-sim plan --est", "\n");
	expect_completed("psd-sim plan --sys", "--system\n");
	expect_completed("psd-sim --fidelity m", "message\n");
	expect_completed("psd-sim --set cluster.network.band", "cluster.network.bandwidth\n");
	expect_completed("psd-sim --trace des", "\n");
}
