/* Rows of a scenario's keys, a table for each section. A row holds all that is known of its key, also which programs
 * heed it. */
#ifndef PSD_SCENARIO_KEYS_H
#define PSD_SCENARIO_KEYS_H

#include "engine/document/schema.h"

/* Readers of a key; bits of psd_key.uses. */
enum psd_use {
	PSD_BY_SIMULATION = 1,
	PSD_BY_ESTIMATE = 32,
	PSD_BY_SIM = PSD_BY_SIMULATION | PSD_BY_ESTIMATE, /* psd-sim, either way */
	PSD_BY_RUN = 2,					  /* psd-run where it trains */
	PSD_BY_REPLAY = 4,				  /* psd-run where it replays */
	PSD_BY_CHOICE = 8,				  /* the choice of methods by seconds, in any executor */
	PSD_AGREED = 16, /* equal on all hosts of a run; with PSD_BY_CHOICE where a system chooses by seconds */
	PSD_BY_PSD_RUN = PSD_BY_RUN | PSD_BY_REPLAY,
	PSD_BY_ALL = PSD_BY_SIM | PSD_BY_PSD_RUN,
};

/* The whole scenario, struct psd_scenario. */
extern const struct psd_key psd_scenario_root;

/* Its sections. */
extern const struct psd_section psd_scenario_cluster;
extern const struct psd_section psd_scenario_host;   /* struct psd_host_costs */
extern const struct psd_section psd_scenario_system; /* struct psd_system */
extern const struct psd_section psd_scenario_sweep;
extern const struct psd_section psd_scenario_train; /* struct psd_train */

/* PSD_EINVAL: the path of "path=value" begins with no key of a scenario, but whole paths end like it. */
enum psd_status psd_scenario_check_setting(const char *setting, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_scenario_check_cluster(const struct psd_schema_reader *reader,
					   const struct psd_node *root) PSD_MUST_CHECK;
enum psd_status psd_scenario_find_baseline(const struct psd_schema_reader *reader,
					   const struct psd_node *root) PSD_MUST_CHECK;

#endif
