/* A scenario of the command line with the model, costs and published values that it names. Refuses to run anything. */
#ifndef PSD_SIM_LOADED_SCENARIO_H
#define PSD_SIM_LOADED_SCENARIO_H

#include <stdbool.h>

#include "engine/base/error.h"
#include "engine/case/case.h"
#include "engine/scenario/published.h"
#include "engine/scenario/scenario.h"

/* A loaded scenario. It must not move in memory: `costed` points to `scenario`. */
struct psd_loaded_scenario {
	struct psd_scenario scenario;
	struct psd_costed_model costed;
	struct psd_published published;
	bool has_scenario, has_costed, has_published;
};

/* Loads the scenario at path and, if with_costed, its model, costs and published values. Release *loaded also after a
 * failure. Statuses are those of the loaders. */
enum psd_status psd_loaded_scenario_load(struct psd_loaded_scenario *loaded, const char *path,
					 const char *const settings[], bool with_costed,
					 struct psd_error *err) PSD_MUST_CHECK;
void psd_loaded_scenario_release(struct psd_loaded_scenario *loaded);
/* Returns the published values; NULL: the scenario names none. */
const struct psd_published *psd_loaded_scenario_published(const struct psd_loaded_scenario *loaded);

#endif
