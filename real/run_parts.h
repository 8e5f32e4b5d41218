/* State of one execution of psd-run, and functions that its files run_*.c call of each other. The files are in the
 * order of the sections below; a file calls functions of sections above its own, never of sections below. Private to
 * real/run*.c. */
#ifndef PSD_REAL_RUN_PARTS_H
#define PSD_REAL_RUN_PARTS_H

#include <stdio.h>

#include "real/cluster/hosts.h"
#include "real/run_options.h"
#include "real/run_output.h"
#include "real/session/checkpoint.h"
#include "real/session/run_log.h"

enum psd_run_lock { PSD_RUN_LOCK_SAVE, PSD_RUN_LOCK_TRACE, PSD_RUN_LOCK_LOG, PSD_RUN_LOCKS };

struct psd_run {
	const struct psd_run_options *options;
	const struct psd_scenario *scenario;
	struct psd_costed_model costed;
	const struct psd_device_kind *device; /* kind of device that computes; NULL: no worker computes */
	struct psd_point point;
	enum psd_cluster_kind cluster_kind;
	/* Hosts of a cluster whose processes are started elsewhere; no hosts: this process starts all of them. */
	struct psd_hosts hosts;
	unsigned self;		   /* number of this process in `hosts` */
	struct psd_secret *secret; /* pre-shared secret of the hosts; NULL: connections are not encrypted */
	int listener;		   /* listening socket to which other hosts connect; -1: none */
	/* Number of systems that this host has completed together with other hosts; belongs to the caller. */
	unsigned *n_joined;
	struct psd_replay replay; /* settings of the running system's replay, if the scenario has one */
	uint64_t training_samples;
	/* Training job of the scenario; for the policies 'poly' and 'cosine', the end of the learning rate is filled
	 * in. */
	struct psd_train train;
	struct psd_run_row *rows;
	unsigned n_rows;
	struct psd_run_log log;
	/* Folder and interval of checkpoints; checkpoints.folder NULL: none are written. */
	struct psd_checkpoints checkpoints;
	/* Descriptors that lock the files of --save, --trace and --log against other runs; -1: not locked. */
	int locks[PSD_RUN_LOCKS];
	/* The files of all hosts of the checkpoint at first_iteration are in this folder. */
	bool has_whole;
	/* First iteration of the running system; 0 unless it resumes from a checkpoint. */
	uint32_t first_iteration;
	/* Number of times that the running system was restarted after a lost host. */
	unsigned n_restarts;
	struct psd_error lost;		 /* error that led to the last restart; status PSD_OK: there was none */
	struct psd_mesh_attempt attempt; /* the hosts' attempt to join, see struct psd_mesh_attempt */
	/* Only checkpoints before this iteration count, since a host lacks the later ones; 0: all count. */
	uint32_t below_iterations;
	uint64_t first_sample; /* number of samples that all workers processed before first_iteration */
	/* Number of hosts that wrote the checkpoint, if it is of another cluster or system; 0: each host reads its own
	 * file. */
	unsigned from_hosts;
	FILE *trace;
	bool has_trace;			 /* the trace has been written */
	struct psd_error trace_err;	 /* reason why the trace could not be written; status PSD_OK: none */
	const struct psd_system *traced; /* system whose trace is written; NULL: none */
};

/* ---- run_choice.c ---- */

bool psd_run_is_chosen(const struct psd_run *run, const struct psd_system *system);
/* Returns the settings of the replay; NULL: the scenario has none. */
const struct psd_replay *psd_run_replay(const struct psd_run *run);
/* True if at least one worker trains; false if all workers replay. */
bool psd_run_trains(const struct psd_run *run);
/* Returns the number of samples that all workers together process in an iteration. */
uint64_t psd_run_global_batch(const struct psd_run *run);
uint32_t psd_run_iterations(const struct psd_run *run);
/* True if the checkpoint from which the run would resume is after the run's last iteration, or later, so that nothing
 * is left to do. */
bool psd_run_is_done(const struct psd_run *run);
/* Sets the iteration at which the learning rate of the policies 'poly' and 'cosine' ends in run->train: the one in the
 * scenario, otherwise the end of the training job; --iterations does not change it. Call it when first_iteration is
 * known. PSD_EINVAL: the run is longer than the learning rate. */
enum psd_status psd_run_settle_end(struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;
/* Sets the device that computes. PSD_EINVAL: the device is unknown, or cannot compute in the scenario's arithmetic. */
enum psd_status psd_run_choose_device(struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;
/* Checks that the model has a loss layer, which training needs. PSD_EINVAL: it has none. */
enum psd_status psd_run_check_loss(const struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;
/* Sets *point to the entry of the scenario's sweep with n_nodes nodes. n_nodes 0: the first entry with 2 to 4 nodes,
 * otherwise the first with 1 node. PSD_EINVAL: there is no such entry. */
enum psd_status psd_run_choose_point(const struct psd_scenario *scenario, uint64_t n_nodes, struct psd_point *point,
				     struct psd_error *err) PSD_MUST_CHECK;
/* Sets *point for a cluster of n_hosts hosts, of which the last ones are the system's separate servers. PSD_EINVAL: no
 * host is left for a worker. */
enum psd_status psd_run_choose_hosts(const struct psd_scenario *scenario, const struct psd_system *system,
				     unsigned n_hosts, struct psd_point *point, struct psd_error *err) PSD_MUST_CHECK;
/* Checks that the system has n_hosts workers and separate servers together at this point. PSD_EINVAL: it has another
 * number. */
enum psd_status psd_run_check_hosts(const struct psd_system *system, const struct psd_point *point, unsigned n_hosts,
				    struct psd_error *err) PSD_MUST_CHECK;
/* Returns the number of the iteration at which the run ends: n_asked if that is not 0; otherwise the end of the
 * training job, see psd_worker_iterations(), or for a replay the measured iterations and the warm-up. Pure. */
uint32_t psd_run_choose_iterations(const struct psd_scenario *scenario, uint64_t n_asked, uint64_t training_samples,
				   uint64_t global_batch, struct psd_worker_start start);
/* Replay of local SGD with `steps` iterations between two exchanges: returns n_iterations, rounded up so that they are
 * complete periods of `steps` iterations. The first period is the warm-up. Pure. */
uint32_t psd_run_whole_periods(uint32_t n_iterations, uint32_t steps);

/* ---- run_cluster.c ---- */

/* Returns a hash by which hosts recognise that a failure message is of the same run: of the options that are equal on
 * all hosts, and of n_joined, see psd_run.n_joined. */
uint64_t psd_run_hash(const struct psd_run_options *options, unsigned n_joined);
/* Sets the cluster of the run: the hosts of --hosts or of mpirun if there are any, otherwise the scenario's cluster,
 * emulated on this machine. */
enum psd_status psd_run_choose_cluster(struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;
/* Sets the kind of network of an emulated cluster: network namespaces if this machine allows them, otherwise processes
 * that limit their own rate. */
enum psd_status psd_run_choose_cluster_kind(struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;
/* Checks each chosen system before the first one runs. PSD_EINVAL: the optimiser does not fit the system's method, or
 * its processes need more memory than this machine has; PSD_ERUN: the dilation of a replay is too small for this
 * machine. */
enum psd_status psd_run_check_systems(const struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;

/* ---- run_checkpoints.c ---- */

/* Checks that the option --save is allowed in this run. PSD_EINVAL: the run is a replay without training, or has
 * several systems. */
enum psd_status psd_run_check_save(const struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;
/* Refuses output files that would replace a file which the run reads, a checkpoint, or another output. Call it before
 * anything is written, and after all inputs are registered. PSD_EINVAL, PSD_EFILE, PSD_ENOMEM. */
enum psd_status psd_run_plan_files(struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;
/* Sets run->checkpoints and creates the folder of --save. training_samples must be known. PSD_EFILE: files cannot be
 * created in the folder. */
enum psd_status psd_run_open_checkpoints(struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;
/* Finds the newest undamaged checkpoint, sets first_iteration to begin after it, and keeps the log's lines before it.
 * Prints which newer checkpoints are skipped, and why. PSD_EINVAL: there are checkpoints but --resume was not given,
 * all are damaged, or a file is missing; PSD_EFILE: the folder or the log cannot be read; PSD_ERUN as
 * psd_run_log_go_on(); PSD_ENOMEM. */
enum psd_status psd_run_find_first(struct psd_run *run, const struct psd_case *made,
				   struct psd_error *err) PSD_MUST_CHECK;
/* Checks that the system can be restarted after a lost host, if --restarts is given. PSD_EINVAL, with the system's line
 * in the scenario: it cannot. */
enum psd_status psd_run_check_restarts(const struct psd_run *run, const struct psd_system *system,
				       struct psd_error *err) PSD_MUST_CHECK;
/* True if other hosts that share the folder have completed the last checkpoint since this host last looked, so that
 * nothing is left to do. */
bool psd_run_has_ended(struct psd_run *run, const struct psd_case *made);
/* Decides whether the system is restarted after the failure in *err. If it is not because no restart is left, that is
 * added to the error's text. */
bool psd_run_restarts(struct psd_run *run, struct psd_error *err);
/* Prints the cause of a restart and the iteration at which it begins. Prints nothing if there was no restart. status:
 * result of psd_run_find_first(). */
void psd_run_say_restart(const struct psd_run *run, const struct psd_system *system, enum psd_status status);

/* ---- run_system.c ---- */

/* Prints a line for people; used as the callbacks `remark`. context: ignored. */
void psd_run_remark(void *context, const char *line);
/* Runs one system, and appends its result to run->rows. */
enum psd_status psd_run_system(struct psd_run *run, const struct psd_system *system,
			       struct psd_error *err) PSD_MUST_CHECK;

#endif
