/* What the parts of a run of psd-run share. Private to real/run*.c. */
#ifndef PSD_REAL_RUN_PARTS_H
#define PSD_REAL_RUN_PARTS_H

#include <stdio.h>

#include "real/cluster/hosts.h"
#include "real/run_options.h"
#include "real/run_output.h"
#include "real/session/checkpoint.h"
#include "real/session/run_log.h"

struct psd_run {
	const struct psd_run_options *options;
	const struct psd_scenario *scenario;
	struct psd_costed_model costed;
	const struct psd_device_kind *device; /* NULL: nothing is computed */
	struct psd_point point;
	enum psd_cluster_kind cluster_kind;
	struct psd_hosts hosts;	   /* none: all processes are started here */
	unsigned self;		   /* of hosts */
	struct psd_secret *secret; /* of the hosts; NULL: none */
	int listener;		   /* where the others find this one, from system to system; -1: there are none */
	unsigned *n_joined;	   /* systems that have been carried out with them */
	struct psd_replay replay;  /* of the system that runs, where the scenario has one */
	uint64_t training_samples;
	struct psd_train train; /* the scenario's; poly and cosine end with the job */
	struct psd_run_row *rows;
	unsigned n_rows;
	struct psd_run_log log;
	struct psd_checkpoints checkpoints; /* no folder: none */
	int checkpoints_lock;		    /* -1: none */
	uint32_t first_iteration;	    /* of the system that runs; 0: it begins */
	unsigned n_restarts;		    /* of it, so far */
	struct psd_error lost;		    /* why it was started again; PSD_OK: it was not */
	struct psd_mesh_attempt attempt;    /* of hosts that join again */
	uint32_t below_iterations;	    /* of so many and more another host has no checkpoint; 0: it may have */
	uint64_t first_sample;		    /* with which that begins, counted from the start of training */
	unsigned from_hosts;		    /* see psd_worker_options */
	FILE *trace;
	const struct psd_system *traced; /* or NULL */
};

/* ---- run.c ---- */

bool psd_run_is_chosen(const struct psd_run *run, const struct psd_system *system);
/* NULL: the scenario has none. */
const struct psd_replay *psd_run_replay(const struct psd_run *run);
/* Samples of all workers in an iteration. */
uint64_t psd_run_global_batch(const struct psd_run *run);
uint32_t psd_run_iterations(const struct psd_run *run);
/* Earlier runs have carried out so many iterations, or more: none is left. */
bool psd_run_is_done(const struct psd_run *run);
/* When the rate ends that ends with the job. Once it is known where the run begins. PSD_EINVAL: the run goes on behind
 * that. */
enum psd_status psd_run_settle_end(struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_run_choose_device(struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;
/* PSD_EINVAL: there is no loss to train by. */
enum psd_status psd_run_check_loss(const struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;

/* ---- run_cluster.c ---- */

/* The hosts of a file or of mpirun, or else the point of the scenario. */
enum psd_status psd_run_choose_cluster(struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;
/* Namespaces where this machine lets us have them; else the processes keep to the links' rate themselves. */
enum psd_status psd_run_choose_cluster_kind(struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;
/* Of each system that runs. PSD_EINVAL: its optimiser cannot serve it, or its processes do not fit into this machine;
 * PSD_ERUN: a replay at this dilation would not be true to its times. */
enum psd_status psd_run_check_systems(const struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;

/* ---- run_checkpoints.c ---- */

/* PSD_EINVAL: --save is given to a replay, which trains nothing, or to several systems at once. */
enum psd_status psd_run_check_save(const struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;
/* Fills run->checkpoints, and makes the folder of --save if there is none. Once the training samples are counted.
 * PSD_EFILE: nothing can be written there. */
enum psd_status psd_run_open_checkpoints(struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;
/* Finds in that folder where the run begins, and from whose files, and takes over what an older log has of the
 * iterations before. PSD_EINVAL: there are checkpoints without --resume, or a file that is needed is missing;
 * PSD_EFILE: the folder or the log cannot be read; PSD_ERUN as psd_run_log_go_on(); PSD_ENOMEM. */
enum psd_status psd_run_find_first(struct psd_run *run, const struct psd_case *made,
				   struct psd_error *err) PSD_MUST_CHECK;

/* ---- run_restarts.c ---- */

/* PSD_EINVAL with the system's place: --restarts is given, and it cannot be started again. */
enum psd_status psd_run_check_restarts(const struct psd_run *run, const struct psd_system *system,
				       struct psd_error *err) PSD_MUST_CHECK;
/* Whether the system that has failed so is to be started again. Where no restart is left err says that as well. */
bool psd_run_restarts(struct psd_run *run, struct psd_error *err);
/* Where it has been lost: why, and from where it goes on; status: whether it does. */
void psd_run_say_restart(const struct psd_run *run, const struct psd_system *system, enum psd_status status);

/* ---- run_system.c ---- */

/* A line for people, whatever the context. */
void psd_run_remark(void *context, const char *line);
/* Carries one system out, and adds its row. */
enum psd_status psd_run_system(struct psd_run *run, const struct psd_system *system,
			       struct psd_error *err) PSD_MUST_CHECK;

#endif
