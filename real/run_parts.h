/* The state of one call of psd-run, and the functions that its parts call of each other. A part calls parts above it
 * in this file, never one below. Private to real/run*.c. */
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
	const struct psd_device_kind *device; /* device that computes; NULL: nothing is computed */
	struct psd_point point;
	enum psd_cluster_kind cluster_kind;
	struct psd_hosts hosts;	   /* hosts of the run; empty: this process starts all of them */
	unsigned self;		   /* number of this process in hosts */
	struct psd_secret *secret; /* pre-shared key of the hosts; NULL: connections are plain */
	int listener;		   /* socket at which other hosts find this one; -1: none */
	unsigned *n_joined;	   /* number of systems completed together with the hosts */
	struct psd_replay replay;  /* replay of the running system, if the scenario has one */
	uint64_t training_samples;
	struct psd_train train; /* training job of the scenario, with the end of poly and cosine filled in */
	struct psd_run_row *rows;
	unsigned n_rows;
	struct psd_run_log log;
	struct psd_checkpoints checkpoints; /* checkpoints to write; folder NULL: none */
	int checkpoints_lock;		    /* descriptor that locks their folder; -1: not locked */
	bool has_whole;			    /* all hosts' files of the checkpoint at first_iteration are here */
	uint32_t first_iteration;	    /* first iteration of the running system; 0 unless it resumes */
	unsigned n_restarts;		    /* number of restarts of the running system so far */
	struct psd_error lost;		    /* cause of the last restart; PSD_OK: none */
	struct psd_mesh_attempt attempt;    /* number of the hosts' attempt to join */
	uint32_t below_iterations; /* only checkpoints below this iteration are on all hosts; 0: no such limit */
	uint64_t first_sample;	   /* number of samples used before first_iteration */
	unsigned from_hosts;	   /* number of hosts that wrote the checkpoint; 0: each host has its own file */
	FILE *trace;
	struct psd_error trace_err;	 /* reason why the trace was not written; PSD_OK: none */
	const struct psd_system *traced; /* system whose trace is written; NULL: none */
};

/* ---- run_choice.c ---- */

bool psd_run_is_chosen(const struct psd_run *run, const struct psd_system *system);
/* Replay of the run; NULL if the scenario has none. */
const struct psd_replay *psd_run_replay(const struct psd_run *run);
/* True if some worker trains; false if all workers replay. */
bool psd_run_trains(const struct psd_run *run);
/* Number of samples in an iteration, over all workers. */
uint64_t psd_run_global_batch(const struct psd_run *run);
uint32_t psd_run_iterations(const struct psd_run *run);
/* True if the checkpoint that the run would resume from is of its last iteration, or of a later one. */
bool psd_run_is_done(const struct psd_run *run);
/* Fills in the end of poly and cosine. It is the end of the training job unless the scenario names one; --iterations
 * does not move it. Call it once first_iteration is known. PSD_EINVAL: the run is longer than its learning rate. */
enum psd_status psd_run_settle_end(struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;
/* Chooses the device. PSD_EINVAL: it is unknown, or cannot compute in the scenario's arithmetic. */
enum psd_status psd_run_choose_device(struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;
/* Checks that the graph has a loss to train with. PSD_EINVAL: it has none. */
enum psd_status psd_run_check_loss(const struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;
/* Chooses the cluster of n_nodes nodes. 0: the scenario's first cluster of 2 to 4 nodes, else its first of one node.
 * PSD_EINVAL: there is none. */
enum psd_status psd_run_choose_point(const struct psd_scenario *scenario, uint64_t n_nodes, struct psd_point *point,
				     struct psd_error *err) PSD_MUST_CHECK;
/* Chooses the cluster of a hosts file, whose last hosts are the system's separate servers. PSD_EINVAL: no worker is
 * left. */
enum psd_status psd_run_choose_hosts(const struct psd_scenario *scenario, const struct psd_system *system,
				     unsigned n_hosts, struct psd_point *point, struct psd_error *err) PSD_MUST_CHECK;
/* Checks that the system's workers and separate servers are n_hosts hosts. PSD_EINVAL: they are not. */
enum psd_status psd_run_check_hosts(const struct psd_system *system, const struct psd_point *point, unsigned n_hosts,
				    struct psd_error *err) PSD_MUST_CHECK;
/* Number of iterations at which the run ends: n_asked; if that is 0, those of the training job, as
 * psd_worker_iterations(), or of a replay those of a prediction, else a few. Pure. */
uint32_t psd_run_choose_iterations(const struct psd_scenario *scenario, uint64_t n_asked, uint64_t training_samples,
				   uint64_t global_batch, struct psd_worker_start start);
/* Rounds the iterations of a replay up to whole periods of `steps` iterations, the first of which warms up. Pure. */
uint32_t psd_run_whole_periods(uint32_t n_iterations, uint32_t steps);

/* ---- run_cluster.c ---- */

/* Identity of the run for hosts that are told of a failure: hash of the options that are equal on all of them.
 * n_joined: see psd_run.n_joined. */
uint64_t psd_run_hash(const struct psd_run_options *options, unsigned n_joined);
/* Chooses the hosts of --hosts or mpirun, or without these the scenario's cluster on this machine. */
enum psd_status psd_run_choose_cluster(struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;
/* Chooses the kind of network: namespaces if this machine allows them, or else processes that limit their own rate. */
enum psd_status psd_run_choose_cluster_kind(struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;
/* Checks each chosen system. PSD_EINVAL: its optimiser does not fit its method, or its processes do not fit into this
 * machine's memory; PSD_ERUN: a replay at this dilation would not keep its times. */
enum psd_status psd_run_check_systems(const struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;

/* ---- run_checkpoints.c ---- */

/* Checks that --save may be used. PSD_EINVAL: it is given for a replay without training, or for several systems. */
enum psd_status psd_run_check_save(const struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;
/* Refuses outputs that would replace a file which the run reads or keeps, or another output, before anything is
 * written. All inputs must have been opened or noted. PSD_EINVAL, PSD_EFILE, PSD_ENOMEM. */
enum psd_status psd_run_plan_files(struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;
/* Fills run->checkpoints and creates the folder of --save. Needs training_samples. PSD_EFILE: the folder cannot be
 * written. */
enum psd_status psd_run_open_checkpoints(struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;
/* Finds the newest whole checkpoint, at which the run begins, and keeps the log's lines before it. Says which newer
 * ones are skipped, and why. PSD_EINVAL: there are checkpoints but no --resume, none is whole, or a file is missing;
 * PSD_EFILE: the folder or the log cannot be read; PSD_ERUN as psd_run_log_go_on(); PSD_ENOMEM. */
enum psd_status psd_run_find_first(struct psd_run *run, const struct psd_case *made,
				   struct psd_error *err) PSD_MUST_CHECK;
/* Checks that the system can be restarted if --restarts is given. PSD_EINVAL with the system's place: it cannot. */
enum psd_status psd_run_check_restarts(const struct psd_run *run, const struct psd_system *system,
				       struct psd_error *err) PSD_MUST_CHECK;
/* True if hosts with a common folder have completed the last checkpoint since this one looked for checkpoints. */
bool psd_run_has_ended(struct psd_run *run, const struct psd_case *made);
/* Decides whether to restart the system after this failure. If no restart is left, adds that to err. */
bool psd_run_restarts(struct psd_run *run, struct psd_error *err);
/* Prints a restart's cause and first iteration; nothing without a restart. status: psd_run_find_first()'s. */
void psd_run_say_restart(const struct psd_run *run, const struct psd_system *system, enum psd_status status);

/* ---- run_system.c ---- */

/* Prints a line for people, as a remark() function; context is not used. */
void psd_run_remark(void *context, const char *line);
/* Executes one system, and adds its row to the results. */
enum psd_status psd_run_system(struct psd_run *run, const struct psd_system *system,
			       struct psd_error *err) PSD_MUST_CHECK;

#endif
