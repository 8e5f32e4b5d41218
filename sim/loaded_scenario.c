/* Loads a scenario and its variants, then the files that they name. */
#include "sim/loaded_scenario.h"

#include <stdlib.h>

#include "sim/sweep/sweep.h"

static enum psd_status load_costed(struct psd_loaded_scenario *loaded, struct psd_error *err)
{
	const char *published_path = loaded->scenario.published_path;

	loaded->scenario.choices.allows_other = true;
	enum psd_status status = psd_costed_model_load(&loaded->costed, &loaded->scenario, err);

	loaded->has_costed = status == PSD_OK;
	if (status || !published_path)
		return status;
	status = psd_published_load(&loaded->published, published_path, err);
	status = psd_scenario_place_file(&loaded->scenario, status, err);
	loaded->has_published = status == PSD_OK;
	return status;
}

static enum psd_status load_rest(struct psd_loaded_scenario *loaded, bool with_costed, struct psd_error *err)
{
	loaded->has_scenario = true;
	PSD_TRY(psd_scenario_load_solver(&loaded->scenario, err));
	return with_costed ? load_costed(loaded, err) : PSD_OK;
}

static enum psd_status load_variants(struct psd_loaded_scenario *loaded, bool with_costed, struct psd_error *err)
{
	const unsigned n = psd_scenario_variants(&loaded->scenario);

	loaded->n_variants = 1;
	if (n == 1)
		return PSD_OK;
	loaded->variants = calloc(n - 1, sizeof(*loaded->variants));
	loaded->models = calloc(n, sizeof(*loaded->models));
	if (!loaded->variants || !loaded->models)
		return psd_out_of_memory(err);
	loaded->models[0] = &loaded->costed;
	for (; loaded->n_variants < n; loaded->n_variants++) {
		struct psd_loaded_scenario *variant = &loaded->variants[loaded->n_variants - 1];

		PSD_TRY(psd_scenario_vary(&variant->scenario, &loaded->scenario, loaded->n_variants, err));
		variant->n_variants = 1;
		const enum psd_status status = load_rest(variant, with_costed, err);
		if (status) {
			psd_scenario_blame(&loaded->scenario, loaded->n_variants, psd_case_check_all, status, err);
			return status;
		}
		loaded->models[loaded->n_variants] = &variant->costed;
	}
	return PSD_OK;
}

enum psd_status psd_loaded_scenario_load(struct psd_loaded_scenario *loaded, const char *path,
					 const char *const settings[], bool with_costed, const char *system_name,
					 struct psd_error *err)
{
	*loaded = (struct psd_loaded_scenario){.has_scenario = false};
	PSD_TRY(psd_scenario_load(&loaded->scenario, path, settings, err));
	const enum psd_status status = load_rest(loaded, with_costed, err);
	if (!status && with_costed)
		PSD_TRY(psd_sweep_check(&loaded->scenario, system_name, err));
	if (!status)
		return load_variants(loaded, with_costed, err);
	psd_scenario_blame(&loaded->scenario, 0, psd_case_check_all, status, err);
	return status;
}

void psd_loaded_scenario_blame(const struct psd_loaded_scenario *loaded, enum psd_status status, struct psd_error *err)
{
	for (unsigned v = 0; v < loaded->n_variants; v++)
		psd_scenario_blame(&loaded->scenario, v, psd_case_check_all, status, err);
}

static void release_files(struct psd_loaded_scenario *loaded)
{
	if (loaded->has_published)
		psd_published_release(&loaded->published);
	if (loaded->has_costed)
		psd_costed_model_release(&loaded->costed);
	if (loaded->has_scenario)
		psd_scenario_release(&loaded->scenario);
}

void psd_loaded_scenario_release(struct psd_loaded_scenario *loaded)
{
	for (unsigned i = 0; loaded->variants && i < psd_scenario_variants(&loaded->scenario) - 1; i++)
		release_files(&loaded->variants[i]);
	free(loaded->variants);
	free(loaded->models);
	release_files(loaded);
	*loaded = (struct psd_loaded_scenario){.has_scenario = false};
}

const struct psd_loaded_scenario *psd_loaded_scenario_last(const struct psd_loaded_scenario *loaded)
{
	return loaded->n_variants > 1 ? &loaded->variants[loaded->n_variants - 2] : loaded;
}
