/* The scenario file that the command line names, with its model, layer times and published values. No predictions are
 * made here. */
#ifndef PSD_SIM_LOADED_SCENARIO_H
#define PSD_SIM_LOADED_SCENARIO_H

#include <stdbool.h>

#include "engine/base/error.h"
#include "engine/case/case.h"
#include "engine/scenario/published.h"
#include "engine/scenario/scenario.h"

/* A loaded scenario. It must not be copied or moved in memory, because `costed` points to `scenario`. */
struct psd_loaded_scenario {
	struct psd_scenario scenario;
	struct psd_costed_model costed; /* model and layer times */
	struct psd_published published; /* published results with which predictions are compared */
	/* further variants of the scenario, with models of their own; variants[0] is variant 1 */
	struct psd_loaded_scenario *variants;
	/* models of all variants, of which `costed` is the first; NULL if there is no other variant */
	const struct psd_costed_model **models;
	unsigned n_variants;			      /* number of variants, with this one */
	bool has_scenario, has_costed, has_published; /* the member scenario, costed or published is loaded */
};

/* Loads the scenario file at `path`, its variants and, if with_costed, their models, layer times and published values.
 * settings: values of the options --set, NULL-terminated; system_name: the only system to predict, or NULL. The caller
 * calls psd_loaded_scenario_release() in all cases, even after a failure. Statuses of psd_scenario_load(),
 * psd_sweep_check(), psd_costed_model_load() and psd_published_load(). */
enum psd_status psd_loaded_scenario_load(struct psd_loaded_scenario *loaded, const char *path,
					 const char *const settings[], bool with_costed, const char *system_name,
					 struct psd_error *err) PSD_MUST_CHECK;
/* For a status and error of a later use: names the option that a case was refused for, see psd_scenario_blame(). */
void psd_loaded_scenario_blame(const struct psd_loaded_scenario *loaded, enum psd_status status, struct psd_error *err);
void psd_loaded_scenario_release(struct psd_loaded_scenario *loaded);
/* Returns the last variant; this one if there is no other variant. */
const struct psd_loaded_scenario *psd_loaded_scenario_last(const struct psd_loaded_scenario *loaded);

#endif
