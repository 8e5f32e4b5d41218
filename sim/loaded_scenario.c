/* Loads a scenario, then the files that it names. */
#include "sim/loaded_scenario.h"

static enum psd_status load_costed(struct psd_loaded_scenario *loaded, struct psd_error *err)
{
	const char *published_path = loaded->scenario.published_path;
	enum psd_status status;

	loaded->scenario.choices.allows_other = true;
	status = psd_costed_model_load(&loaded->costed, &loaded->scenario, err);

	loaded->has_costed = status == PSD_OK;
	if (status || !published_path)
		return status;
	status = psd_published_load(&loaded->published, published_path, err);
	loaded->has_published = status == PSD_OK;
	return status;
}

enum psd_status psd_loaded_scenario_load(struct psd_loaded_scenario *loaded, const char *path,
					 const char *const settings[], bool with_costed, struct psd_error *err)
{
	enum psd_status status;

	*loaded = (struct psd_loaded_scenario){.has_scenario = false};
	status = psd_scenario_load(&loaded->scenario, path, settings, err);
	loaded->has_scenario = status == PSD_OK;
	if (!status)
		status = psd_scenario_load_solver(&loaded->scenario, err);
	return !status && with_costed ? load_costed(loaded, err) : status;
}

void psd_loaded_scenario_release(struct psd_loaded_scenario *loaded)
{
	if (loaded->has_published)
		psd_published_release(&loaded->published);
	if (loaded->has_costed)
		psd_costed_model_release(&loaded->costed);
	if (loaded->has_scenario)
		psd_scenario_release(&loaded->scenario);
	*loaded = (struct psd_loaded_scenario){.has_scenario = false};
}

const struct psd_published *psd_loaded_scenario_published(const struct psd_loaded_scenario *loaded)
{
	return loaded->has_published ? &loaded->published : NULL;
}
