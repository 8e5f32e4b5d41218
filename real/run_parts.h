/* State of one execution of psd-run, and functions that the files run_*.c share. The files have the order of the
 * sections below. A file calls functions of sections above its own, never of sections below. Private to real/run*.c. */
#ifndef PSD_REAL_RUN_PARTS_H
#define PSD_REAL_RUN_PARTS_H

#include <stdio.h>

#include "engine/result/trace_files.h"
#include "real/cluster/hosts.h"
#include "real/keep/checkpoint.h"
#include "real/keep/old_checkpoint.h"
#include "real/run_options.h"
#include "real/run_output.h"
#include "real/session/run_log.h"

enum psd_run_lock { PSD_RUN_LOCK_SAVE, PSD_RUN_LOCK_TRACE, PSD_RUN_LOCK_LOG, PSD_RUN_LOCKS };

struct psd_run {
	const struct psd_run_options *options;
	const struct psd_scenario *scenario;
	struct psd_costed_model costed;
	/* Kind of device on which workers compute; NULL: no worker computes. */
	const struct psd_device_kind *device;
	struct psd_point point;
	enum psd_cluster_kind cluster_kind;
	/* Hosts of a cluster whose processes are started elsewhere. An empty list: this process starts all of them. */
	struct psd_hosts hosts;
	unsigned self;		   /* number of this process in `hosts` */
	struct psd_secret *secret; /* pre-shared secret of the hosts; NULL: connections are not encrypted */
	int listener;		   /* listening socket to which other hosts connect; -1: none */
	/* Number of systems that this host has completed together with other hosts. The variable belongs to the caller
	 * of psd_run_scenario(). */
	unsigned *n_joined;
	struct psd_replay replay; /* settings of the running system's replay, if the scenario has one */
	uint64_t training_samples;
	/* System that runs, or has run last; NULL: none yet. */
	const struct psd_system *system;
	/* Training job of the scenario. For the policies 'poly' and 'cosine', psd_run_settle_end() sets the iteration
	 * at which the learning rate ends. */
	struct psd_train train;
	struct psd_run_row *rows;
	unsigned n_rows;
	struct psd_run_log log;
	/* Folder of the checkpoints that are written, and interval between them; checkpoints.folder NULL: no
	 * checkpoints are written. */
	struct psd_checkpoints checkpoints;
	/* Descriptors that lock the files of the options --save, --trace and --log against other runs; -1: not
	 * locked. */
	int locks[PSD_RUN_LOCKS];
	/* The checkpoint folder of this host has the files of all hosts for the checkpoint at first_iteration. */
	bool has_whole;
	/* First iteration that the running system executes; 0 unless it resumes from a checkpoint. */
	uint32_t first_iteration;
	/* Speeds of groups were measured since the last restart. If a host is started again now, it measures, and all
	 * other hosts measure again, too. */
	bool has_measured;
	/* Number of times that the running system was restarted after a lost host. */
	unsigned n_restarts;
	struct psd_error lost;		 /* error that caused the last restart; status PSD_OK: there was no restart */
	struct psd_mesh_attempt attempt; /* the hosts' attempt to join, see struct psd_mesh_attempt */
	/* Only checkpoints of earlier iterations than this one are used, since some host lacks the later ones; 0: all
	 * are used. */
	uint32_t below_iterations;
	/* Total number of samples that all workers have processed before first_iteration. */
	uint64_t first_sample;
	/* Number of hosts that wrote the checkpoint, if it was written on another cluster or with another system; each
	 * host then reads the files of all of them. 0: each host reads only its own file. */
	unsigned from_hosts;
	/* Name of the system that wrote the checkpoint; "": not known. */
	char from_system[PSD_OLD_CHECKPOINT_SYSTEM_MAX];
	struct psd_trace_files trace;	 /* open files of the option --trace; `files` is NULL without it */
	bool has_trace;			 /* the trace has been written to the file */
	struct psd_error trace_err;	 /* reason why the trace could not be written; status PSD_OK: no error */
	const struct psd_system *traced; /* system whose trace is written; NULL: none */
};

/* ---- run_choice.c ---- */

bool psd_run_is_chosen(const struct psd_run *run, const struct psd_system *system);
/* Returns the settings of the replay; NULL: the scenario has none. */
const struct psd_replay *psd_run_replay(const struct psd_run *run);
/* True if at least one worker trains; false if all workers replay. */
bool psd_run_trains(const struct psd_run *run);
/* Returns the total number of samples that all workers process in an iteration. */
uint64_t psd_run_global_batch(const struct psd_run *run);
uint32_t psd_run_iterations(const struct psd_run *run);
/* True if the checkpoint from which the run would resume contains the run's last iteration, so that nothing is left to
 * do. */
bool psd_run_is_done(const struct psd_run *run);
/* For the policies 'poly' and 'cosine': sets the iteration at which the learning rate ends in run->train. It is the
 * iteration in the scenario, or the end of the training job if the scenario has none. The option --iterations does not
 * change it. first_iteration must be known. PSD_EINVAL: the run ends after the learning rate. */
enum psd_status psd_run_settle_end(struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;
/* Sets run->device, the kind of device that computes. PSD_EINVAL: the device is unknown, or lacks the scenario's number
 * format. */
enum psd_status psd_run_choose_device(struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;
/* Checks that the model has a loss layer, which training needs. PSD_EINVAL: it has none. */
enum psd_status psd_run_check_loss(const struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;
/* Sets *point to the entry of the scenario's sweep with n_nodes nodes. If n_nodes is 0, it is the first entry with 2 to
 * 4 nodes, or the first entry with 1 node if there is none. PSD_EINVAL: there is no such entry. */
enum psd_status psd_run_choose_point(const struct psd_scenario *scenario, uint64_t n_nodes, struct psd_point *point,
				     struct psd_error *err) PSD_MUST_CHECK;
/* Sets *point for a cluster of n_hosts hosts. The last hosts are the separate servers of the system. PSD_EINVAL: no
 * host is left for a worker. */
enum psd_status psd_run_choose_hosts(const struct psd_scenario *scenario, const struct psd_system *system,
				     unsigned n_hosts, struct psd_point *point, struct psd_error *err) PSD_MUST_CHECK;
/* Checks that the number of workers plus separate servers of the system at this point is n_hosts. PSD_EINVAL: it is
 * not. */
enum psd_status psd_run_check_hosts(const struct psd_system *system, const struct psd_point *point, unsigned n_hosts,
				    struct psd_error *err) PSD_MUST_CHECK;
/* For a replay whose measured iterations form units of `steps`, such as periods: returns a number of whole units that
 * measures at least as many iterations as n_iterations. The first units are the warm-up, of at least `first`
 * iterations. With steps 1 it returns n_iterations. Pure. */
uint32_t psd_run_whole_periods(uint32_t n_iterations, uint32_t first, uint32_t steps);

/* ---- run_cluster.c ---- */

/* Returns a hash by which a host decides whether a failure message belongs to its own run. The hash contains those
 * options that are equal on all hosts, and n_joined (see psd_run.n_joined). */
uint64_t psd_run_hash(const struct psd_run_options *options, unsigned n_joined);
/* Sets the hosts of the run. They are those of --hosts, or those that mpirun has started. If there are neither, the
 * scenario's cluster is emulated on this machine. */
enum psd_status psd_run_choose_cluster(struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;
/* Sets the kind of network of an emulated cluster. It uses network namespaces if this machine allows them, otherwise
 * processes that limit their own rate. */
enum psd_status psd_run_choose_cluster_kind(struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;
/* Prints a line for people to read. It is used as callback `remark`; context is ignored. */
void psd_run_remark(void *context, const char *line);
/* Returns the options that all executions of a case have: on this machine, or as one host of a cluster. Borrows from
 * the run and the case. */
struct psd_launch_options psd_run_launch_options(const struct psd_run *run, const struct psd_case *made);
/* Executes a case on this machine, or as one host of a cluster. Statuses of psd_launch() and psd_join(). */
enum psd_status psd_run_launch(struct psd_run *run, struct psd_launch_options *launch, struct psd_worker_result *result,
			       struct psd_error *err) PSD_MUST_CHECK;
/* Checks each chosen system before the first one is run. PSD_EINVAL: the optimiser cannot be used with the system's
 * method, or its processes need more memory than this machine has; PSD_ERUN: this machine is too slow for the replay,
 * which needs a larger dilation. */
enum psd_status psd_run_check_systems(const struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;

/* ---- run_groups.c ---- */

/* Checks that this run can have the scenario's groups of nodes. PSD_EINVAL: it has another number of nodes, or cannot
 * emulate the speed or the link of a group. */
enum psd_status psd_run_check_groups(const struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;
/* Checks that the run has the slow nodes of the scenario. PSD_EINVAL: it has fewer nodes. */
enum psd_status psd_run_check_slow(const struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;
/* For a system whose split is measured, unless run->costed has the seconds of a sample on each group from a checkpoint:
 * trains for a few iterations with an even split, sets these seconds, and makes the case again. That training has no
 * other effect. All hosts get the same seconds, to the bit. PSD_ELOST: a host was lost; other statuses of
 * psd_case_make() and psd_run_launch(). */
enum psd_status psd_run_measure_groups(struct psd_run *run, struct psd_case *made,
				       struct psd_error *err) PSD_MUST_CHECK;
/* Prints the batches of all nodes, and speeds that were measured, if the system does not split samples evenly. */
void psd_run_say_split(const struct psd_run *run, const struct psd_case *made);
/* Adds the division of samples among groups of nodes to `text`, with emulated speeds and links, and speeds that were
 * measured. Adds nothing if the scenario has no groups. */
void psd_run_add_split(struct psd_text *text, const struct psd_run *run, const struct psd_case *made);

/* ---- run_checkpoints.c ---- */

/* Checks that the option --save is allowed in this run. PSD_EINVAL: the run is a replay without training, or has
 * several systems. */
enum psd_status psd_run_check_save(const struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;
/* Checks that no output file would replace a file which the run reads, a checkpoint, or another output. Call it when
 * all inputs are registered, and before any output is written. PSD_EINVAL: a file would be replaced; PSD_EFILE,
 * PSD_ENOMEM. */
enum psd_status psd_run_plan_files(struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;
/* Sets run->checkpoints, and creates the folder of the option --save. training_samples must be known. PSD_EFILE: files
 * cannot be created in the folder. */
enum psd_status psd_run_open_checkpoints(struct psd_run *run, struct psd_error *err) PSD_MUST_CHECK;
/* Finds the newest undamaged checkpoint and sets first_iteration to the iteration after it. If the checkpoint's run
 * divided samples by measured speeds among the same number of hosts, makes the case again with that division. Removes
 * later lines from the log. Prints the newer checkpoints that are skipped, with the reason. PSD_EINVAL: there are
 * checkpoints but --resume was not given, all are damaged, or a file is missing; PSD_EFILE: the folder or the log
 * cannot be read; PSD_ERUN as psd_run_log_go_on(); PSD_ENOMEM. */
enum psd_status psd_run_find_first(struct psd_run *run, struct psd_case *made, struct psd_error *err) PSD_MUST_CHECK;
/* If the option --restarts is given, checks that the system can be restarted after a lost host. PSD_EINVAL: it cannot;
 * the text has the system's line in the scenario. */
enum psd_status psd_run_check_restarts(const struct psd_run *run, const struct psd_system *system,
				       struct psd_error *err) PSD_MUST_CHECK;
/* True if other hosts that use the same folder have completed the last checkpoint since this host last looked. Then
 * nothing is left to do. */
bool psd_run_has_ended(struct psd_run *run, const struct psd_case *made);
/* True if the system is restarted after the failure in *err. If it is not restarted only because the number of restarts
 * is used up, this is added to the error's text. */
bool psd_run_restarts(struct psd_run *run, struct psd_error *err);
/* Prints the cause of the last restart and the iteration at which it begins. Prints nothing if there was no restart.
 * status: result of psd_run_find_first(). */
void psd_run_say_restart(const struct psd_run *run, const struct psd_system *system, enum psd_status status);

/* ---- run_system.c ---- */

/* Runs one system, and appends its result to run->rows. */
enum psd_status psd_run_system(struct psd_run *run, const struct psd_system *system,
			       struct psd_error *err) PSD_MUST_CHECK;

#endif
