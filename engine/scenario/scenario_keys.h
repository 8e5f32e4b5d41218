/* Tables of a scenario's keys, one for each section, with a row for each key. A row has all that is known about the
 * key: its name, type, default, help text, and the programs that use it. */
#ifndef PSD_SCENARIO_KEYS_H
#define PSD_SCENARIO_KEYS_H

#include "engine/document/schema.h"
#include "engine/scenario/scenario.h"

/* Executors that use the value of a key. Bits of psd_key.uses. */
enum psd_use {
	PSD_BY_SIMULATION = 1,
	PSD_BY_ESTIMATE = 32,
	PSD_BY_SIM = PSD_BY_SIMULATION | PSD_BY_ESTIMATE, /* psd-sim, in simulations and estimates */
	PSD_BY_RUN = 2,					  /* psd-run in training */
	PSD_BY_REPLAY = 4,				  /* psd-run in a replay */
	PSD_BY_CHOICE = 8, /* the choice of methods by predicted seconds, in any executor */
	/* The value must be equal on all hosts of a run. Together with PSD_BY_CHOICE: only if a system chooses methods
	 * by seconds. */
	PSD_AGREED = 16,
	PSD_BY_PSD_RUN = PSD_BY_RUN | PSD_BY_REPLAY,
	PSD_BY_ALL = PSD_BY_SIM | PSD_BY_PSD_RUN,
};

/* key whose section is the whole scenario file, stored as struct psd_scenario */
extern const struct psd_key psd_scenario_root;

/* Sections of a scenario, each with the table of its keys. */
extern const struct psd_section psd_scenario_cluster;
extern const struct psd_section psd_scenario_host;   /* keys stored in struct psd_host_costs */
extern const struct psd_section psd_scenario_system; /* keys stored in struct psd_system */
extern const struct psd_section psd_scenario_sweep;
extern const struct psd_section psd_scenario_job;   /* keys stored in struct psd_training_job */
extern const struct psd_section psd_scenario_train; /* keys stored in struct psd_train */

/* Checks the path in "path=value". PSD_EINVAL: the path does not begin with a key of a scenario, but some keys' whole
 * paths end with it; the text suggests them. Other wrong paths are left to the reader of the scenario. */
enum psd_status psd_scenario_check_setting(const char *setting, struct psd_error *err) PSD_MUST_CHECK;
/* Checks the keys of `root`, the mapping at the top of a scenario. PSD_EINVAL: one is no key there, but the last part
 * of the path of others, such as `nodes` of `sweep.nodes`; the text suggests them. Other wrong keys are left to the
 * reader. */
enum psd_status psd_scenario_check_top(const struct psd_node *root, struct psd_error *err) PSD_MUST_CHECK;
/* Sets the costs of the system's host that neither the system's entry nor the cluster gives, from the system's
 * software stack. entry: node of the system in the file. */
void psd_scenario_settle_stack(const struct psd_scenario *scenario, struct psd_system *system,
			       const struct psd_node *entry);
/* Sets these costs again (psd_scenario_settle_stack()) after the system's device has changed, with the same stack. */
void psd_scenario_settle_device(const struct psd_scenario *scenario, struct psd_system *system,
				const struct psd_node *entry);
enum psd_status psd_scenario_check_cluster(const struct psd_schema_reader *reader,
					   const struct psd_node *root) PSD_MUST_CHECK;
enum psd_status psd_scenario_find_baseline(const struct psd_schema_reader *reader,
					   const struct psd_node *root) PSD_MUST_CHECK;

#endif
