/* Rows of a scenario's keys, a table for each section. A row holds all that is known of its key, also which programs
 * heed it. */
#ifndef PSD_SCENARIO_KEYS_H
#define PSD_SCENARIO_KEYS_H

#include "engine/document/schema.h"
#include "engine/scenario/scenario.h"

/* Executors that heed a key, as bits of psd_key.uses. */
enum psd_use {
	PSD_BY_SIMULATION = 1,
	PSD_BY_ESTIMATE = 32,
	PSD_BY_SIM = PSD_BY_SIMULATION | PSD_BY_ESTIMATE, /* psd-sim, by simulation or estimate */
	PSD_BY_RUN = 2,					  /* psd-run when it trains */
	PSD_BY_REPLAY = 4,				  /* psd-run when it replays */
	PSD_BY_CHOICE = 8,				  /* the choice of methods by seconds, in any executor */
	PSD_AGREED = 16, /* the value must be equal on all hosts; with PSD_BY_CHOICE: if a system chooses by seconds */
	PSD_BY_PSD_RUN = PSD_BY_RUN | PSD_BY_REPLAY,
	PSD_BY_ALL = PSD_BY_SIM | PSD_BY_PSD_RUN,
};

/* Root of the keys of a whole scenario, which fill struct psd_scenario. */
extern const struct psd_key psd_scenario_root;

/* Sections of a scenario; each table has the keys of one section. */
extern const struct psd_section psd_scenario_cluster;
extern const struct psd_section psd_scenario_host;   /* keys that fill struct psd_host_costs */
extern const struct psd_section psd_scenario_system; /* keys that fill struct psd_system */
extern const struct psd_section psd_scenario_sweep;
extern const struct psd_section psd_scenario_train; /* keys that fill struct psd_train */

/* Checks the path of "path=value". PSD_EINVAL: it begins with no key of a scenario, but whole paths end like it. */
enum psd_status psd_scenario_check_setting(const char *setting, struct psd_error *err) PSD_MUST_CHECK;
/* Fills costs of a system's host that neither its entry nor the cluster names, from its stack. */
void psd_scenario_settle_stack(const struct psd_scenario *scenario, struct psd_system *system,
			       const struct psd_node *entry);
enum psd_status psd_scenario_check_cluster(const struct psd_schema_reader *reader,
					   const struct psd_node *root) PSD_MUST_CHECK;
enum psd_status psd_scenario_find_baseline(const struct psd_schema_reader *reader,
					   const struct psd_node *root) PSD_MUST_CHECK;

#endif
