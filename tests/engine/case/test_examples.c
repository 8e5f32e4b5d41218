/* The scenarios of the tree show every key and every layer kind, and the examples can be predicted. */
#include <criterion/criterion.h>
#include <glob.h>
#include <string.h>

#include "engine/case/case.h"
#include "engine/estimate/estimate.h"
#include "engine/scenario/scenario_keys.h"

enum { MOST_KEYS = 512 };

struct shown {
	const struct psd_key *keys[MOST_KEYS];
	unsigned n;
};

static bool has_key(const struct shown *shown, const struct psd_key *key)
{
	for (unsigned i = 0; i < shown->n; i++)
		if (shown->keys[i] == key)
			return true;
	return false;
}

static bool note_key(const struct psd_schema_spot *spot)
{
	struct shown *shown = spot->context;

	if (spot->node && !has_key(shown, spot->key)) {
		cr_assert_lt(shown->n, MOST_KEYS);
		shown->keys[shown->n++] = spot->key;
	}
	return true;
}

static bool expect_key(const struct psd_schema_spot *spot)
{
	cr_expect(has_key(spot->context, spot->key),
		  "no scenario has the key '%s': add it to one in scenarios/examples/", spot->path);
	return true;
}

static bool is_model(const char *path)
{
	return strstr(path, "/models/");
}

static glob_t find_files(void)
{
	glob_t found;

	cr_assert_eq(glob("scenarios/*.yaml", 0, NULL, &found), 0);
	cr_assert_eq(glob("scenarios/*/*.yaml", GLOB_APPEND, NULL, &found), 0);
	return found;
}

Test(examples, show_every_key)
{
	static struct shown shown;
	glob_t found = find_files();

	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct psd_scenario scenario;
		struct psd_error err = {.text = ""};

		if (is_model(found.gl_pathv[i]))
			continue;
		cr_assert_eq(psd_scenario_load(&scenario, found.gl_pathv[i], NULL, &err), PSD_OK, "%s", err.text);
		psd_schema_walk(&psd_scenario_root, &scenario, scenario.root, note_key, &shown);
		psd_scenario_release(&scenario);
	}
	psd_schema_walk(&psd_scenario_root, NULL, NULL, expect_key, &shown);
	globfree(&found);
}

static void expect_equal_groups(const struct psd_scenario *a, const struct psd_scenario *b)
{
	for (unsigned s = 0; s < a->n_systems; s++)
		for (unsigned g = 0; g < a->n_groups; g++) {
			const struct psd_host_costs
				x = psd_scenario_group_system(a, &a->systems[s], &a->groups[g]).host,
				y = psd_scenario_group_system(b, &b->systems[s], &b->groups[g]).host;

			cr_expect(x.update_bps == y.update_bps && x.convert_bps == y.convert_bps &&
					  x.reduce_bps == y.reduce_bps && x.tensor_sec == y.tensor_sec,
				  "group %u of system %u in %s", g, s, a->path);
		}
}

/* The text has all keys, defaults too, as a calibration writes them. */
static void expect_read_again(const char *path)
{
	struct psd_scenario scenario, again;
	struct psd_error err = {.text = ""};
	struct psd_text text = {.bytes = NULL};

	cr_assert_eq(psd_scenario_load(&scenario, path, NULL, &err), PSD_OK, "%s", err.text);
	psd_scenario_add_text(&text, &scenario);
	cr_expect_eq(psd_scenario_parse(&again, path, text.bytes, text.length, NULL, &err), PSD_OK, "%s: %s", path,
		     err.text);
	if (!*err.text) {
		expect_equal_groups(&scenario, &again);
		psd_scenario_release(&again);
	}
	psd_text_release(&text);
	psd_scenario_release(&scenario);
}

Test(examples, are_read_again_from_their_text)
{
	glob_t found = find_files();

	for (size_t i = 0; i < found.gl_pathc; i++)
		if (!is_model(found.gl_pathv[i]))
			expect_read_again(found.gl_pathv[i]);
	globfree(&found);
}

Test(examples, show_every_layer_kind)
{
	bool is_shown[128] = {false};
	glob_t found = find_files();

	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct psd_graph graph;
		struct psd_error err = {.text = ""};

		if (!is_model(found.gl_pathv[i]))
			continue;
		cr_assert_eq(psd_graph_load(&graph, found.gl_pathv[i], &err), PSD_OK, "%s", err.text);
		for (unsigned l = 0; l < graph.n_layers; l++)
			for (unsigned k = 0; psd_layer_kinds[k]; k++)
				is_shown[k] = is_shown[k] || graph.layers[l].kind == psd_layer_kinds[k];
		psd_graph_release(&graph);
	}
	for (unsigned k = 0; psd_layer_kinds[k]; k++)
		cr_expect(is_shown[k], "no model has the layer kind '%s': add it to scenarios/models/layer-kinds.yaml",
			  psd_layer_kinds[k]->name);
	globfree(&found);
}

static void expect_prediction(const struct psd_costed_model *costed, const struct psd_system *system, unsigned point)
{
	struct psd_case made;
	struct psd_outcome outcome;
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_case_make(&made, costed, system, psd_scenario_point(costed->scenario, point), &err), PSD_OK,
		     "%s", err.text);
	cr_assert_eq(psd_estimate(&made.program, psd_run_length_make(system, 0, 0.0), &outcome, &err), PSD_OK, "%s",
		     err.text);
	cr_expect_gt(outcome.iteration_sec, 0.0, "%s", system->name);
	psd_case_release(&made);
}

Test(examples, can_be_predicted)
{
	glob_t found;

	cr_assert_eq(glob("scenarios/examples/*.yaml", 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct psd_scenario scenario;
		struct psd_costed_model costed;
		struct psd_error err = {.text = ""};

		cr_assert_eq(psd_scenario_load(&scenario, found.gl_pathv[i], NULL, &err), PSD_OK, "%s", err.text);
		cr_assert_eq(psd_costed_model_load(&costed, &scenario, &err), PSD_OK, "%s", err.text);
		for (unsigned s = 0; s < scenario.n_systems; s++)
			for (unsigned p = 0; p < psd_scenario_points(&scenario); p++)
				expect_prediction(&costed, &scenario.systems[s], p);
		psd_costed_model_release(&costed);
		psd_scenario_release(&scenario);
	}
	globfree(&found);
}
