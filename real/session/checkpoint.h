/* Files of checkpoints. FOLDER/iteration-N/host-H-of-P.safetensors has the state of host H, of P hosts, after N
 * iterations. FOLDER/parameters.safetensors has the newest parameters, written by host 0. Hosts may share the folder or
 * have one each. A worker completes no iteration without all other workers, so the newest checkpoints of two workers
 * differ by one checkpoint at most, and each worker keeps two. A separate server needs only the workers, and may be two
 * checkpoints ahead of another server: with separate servers each host keeps three. A run may resume from a checkpoint
 * of another number of hosts. It takes the newest complete one, and host H removes the files of hosts H, H + P, H + 2
 * P, ... of the other run together with its own. This module knows the names of files, not their contents. */
#ifndef PSD_REAL_CHECKPOINT_H
#define PSD_REAL_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/base/error.h"

struct psd_checkpoints {
	const char *folder;
	/* Iterations between two checkpoints, >= 1; the last iteration of a run always has one. */
	uint32_t every_iterations;
	/* The folder as psd_checkpoints_open() found it. A folder that takes its place later is not written. */
	bool is_open;
	dev_t device;
	ino_t inode;
};

struct psd_checkpoint_host {
	unsigned host, n_hosts;
};

/* Number of checkpoints whose files a host keeps, the newest ones: without separate servers, and with them. The head of
 * this file says why. */
enum { PSD_CHECKPOINTS_KEPT = 2, PSD_CHECKPOINTS_KEPT_WITH_SERVERS = 3 };

enum { PSD_CHECKPOINT_PATH_MAX = 4096 };

struct psd_checkpoint_path {
	char text[PSD_CHECKPOINT_PATH_MAX];
};

/* One checkpoint in a folder. missing: number of the first host whose file is missing; n_hosts: no file is missing. */
struct psd_checkpoint_set {
	uint32_t iterations; /* number of iterations executed before the checkpoint; 0: there is no checkpoint */
	unsigned n_hosts, missing;
};

struct psd_checkpoints_found {
	/* Newest checkpoint from which this run can resume, as far as the files in this folder tell. It has either as
	 * many hosts as this run (hosts may have other folders for their files) or another number, and then all files
	 * are here. */
	struct psd_checkpoint_set newest;
	struct psd_checkpoint_set other; /* newest checkpoint of another number of hosts that lacks files */
	/* Newest checkpoint that lacks files and is later than `newest`: a run that resumes skips it. 0 iterations:
	 * there is none. */
	struct psd_checkpoint_set torn;
	bool has_any;	     /* the folder has any file of a checkpoint */
	bool has_folders;    /* the folder has a folder iteration-N, with or without files */
	bool has_parameters; /* the folder has parameters.safetensors */
	bool has_lost; /* no checkpoint here is complete, although all hosts have passed one: files were removed */
};

/* Reserves the names of the checkpoint folder, before it is created or written. Refuses a folder with files that the
 * run reads (engine/base/inputs.h), and makes sure that no other output of the run replaces a checkpoint. PSD_EINVAL,
 * PSD_ENOMEM. PSD_EFILE: a folder has the name of a file, or the other way round. */
enum psd_status psd_checkpoints_reserve(const struct psd_checkpoints *checkpoints,
					struct psd_error *err) PSD_MUST_CHECK;
/* Creates the checkpoint folder unless it exists. PSD_EFILE: files cannot be created in it. */
enum psd_status psd_checkpoints_open(struct psd_checkpoints *checkpoints, struct psd_error *err) PSD_MUST_CHECK;
/* Locks the host's files in the folder, so that no other run writes them; see psd_path_lock(). Hosts may share the
 * folder. PSD_EFILE: another run has the lock; PSD_ENOMEM. */
enum psd_status psd_checkpoints_lock(const struct psd_checkpoints *checkpoints, unsigned host, int *descriptor,
				     struct psd_error *err) PSD_MUST_CHECK;
/* Finds the checkpoint to resume from. host: this host and the number of hosts; host.host == host.n_hosts: the caller
 * needs the files of all hosts. below_iterations: only checkpoints after fewer iterations count; 0: all count.
 * PSD_EFILE: the folder cannot be read; PSD_ENOMEM. */
enum psd_status psd_checkpoints_find(const struct psd_checkpoints *checkpoints, struct psd_checkpoint_host host,
				     uint32_t below_iterations, struct psd_checkpoints_found *found,
				     struct psd_error *err) PSD_MUST_CHECK;
/* Returns the path of the host's file in the checkpoint after `iterations` iterations. */
struct psd_checkpoint_path psd_checkpoint_path(const struct psd_checkpoints *checkpoints,
					       struct psd_checkpoint_host host, uint32_t iterations);
struct psd_checkpoint_path psd_checkpoint_parameters_path(const struct psd_checkpoints *checkpoints);
/* Renames parameters.safetensors to kept-N.safetensors, with the first N that is free; *kept is the new path. False:
 * errno tells why it cannot be renamed. */
bool psd_checkpoint_keep_parameters(const struct psd_checkpoints *checkpoints, struct psd_checkpoint_path *kept);
/* Creates the folder iteration-N of the checkpoint after N = `iterations` iterations. PSD_EFILE: it cannot be created,
 * or another folder has taken the place of the checkpoint folder. */
enum psd_status psd_checkpoint_begin(const struct psd_checkpoints *checkpoints, uint32_t iterations,
				     struct psd_error *err) PSD_MUST_CHECK;
/* Removes old files of a host, so that its n_kept newest ones are left: PSD_CHECKPOINTS_KEPT or
 * PSD_CHECKPOINTS_KEPT_WITH_SERVERS. Call it once the host's file of the checkpoint after `iterations` is complete. A
 * file that cannot be removed is left. */
void psd_checkpoint_prune(const struct psd_checkpoints *checkpoints, struct psd_checkpoint_host host,
			  uint32_t iterations, unsigned n_kept);
/* Removes a host's files of checkpoints after more than `iterations` iterations. The run begins there, and later files
 * of an earlier run must not mix with its own. PSD_EFILE: a file cannot be removed. */
enum psd_status psd_checkpoint_drop_later(const struct psd_checkpoints *checkpoints, struct psd_checkpoint_host host,
					  uint32_t iterations, struct psd_error *err) PSD_MUST_CHECK;

#endif
