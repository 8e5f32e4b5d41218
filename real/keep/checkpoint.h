/* Files of checkpoints. FOLDER/iteration-N/host-H-of-P.safetensors has the state of host H, of P hosts, after N
 * iterations. FOLDER/parameters.safetensors has the newest parameters; host 0 writes it. The hosts may use one folder
 * together, or one folder each. A worker cannot complete an iteration without all other workers. So the newest
 * checkpoints of two workers differ by at most one checkpoint, and each host keeps two. A separate server needs only
 * the workers, and may be two checkpoints ahead of another server. So with separate servers each host keeps three. A
 * run may resume from a checkpoint of a run with another number of hosts. It uses the newest complete one. Then host H
 * removes the files of hosts H, H + P, H + 2 P, ... of the other run together with its own. This module handles only
 * names of files, not their contents. */
#ifndef PSD_REAL_CHECKPOINT_H
#define PSD_REAL_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/base/error.h"

struct psd_checkpoints {
	const char *folder;
	/* Number of iterations between two checkpoints, >= 1. After the last iteration of a run there is always a
	 * checkpoint. */
	uint32_t every_iterations;
	/* Identity of the folder that psd_checkpoints_open() found. If another folder gets the same path later, nothing
	 * is written to it. */
	bool is_open;
	dev_t device;
	ino_t inode;
};

struct psd_checkpoint_host {
	unsigned host, n_hosts;
};

/* Number of newest checkpoints whose files a host keeps: without and with separate servers. The beginning of this file
 * gives the reason. */
enum { PSD_CHECKPOINTS_KEPT = 2, PSD_CHECKPOINTS_KEPT_WITH_SERVERS = 3 };

enum { PSD_CHECKPOINT_PATH_MAX = 4096 };

struct psd_checkpoint_path {
	char text[PSD_CHECKPOINT_PATH_MAX];
};

/* One checkpoint in a folder. missing: number of the first host whose file is missing; equal to n_hosts if no file is
 * missing. */
struct psd_checkpoint_set {
	uint32_t iterations; /* number of iterations executed before the checkpoint; 0: there is no checkpoint */
	unsigned n_hosts, missing;
};

struct psd_checkpoints_found {
	/* Newest checkpoint from which this run can resume, according to the files in this folder. If it has as many
	 * hosts as this run, other hosts may have their files in other folders. If it has another number of hosts, all
	 * its files are in this folder. */
	struct psd_checkpoint_set newest;
	/* Newest incomplete checkpoint of a run with another number of hosts: some of its files are missing. */
	struct psd_checkpoint_set other;
	/* Newest checkpoint that is later than `newest` and incomplete: some of its files are missing, so a run that
	 * resumes does not use it. iterations 0: there is none. */
	struct psd_checkpoint_set torn;
	bool has_any;	     /* the folder has at least one file of a checkpoint */
	bool has_folders;    /* the folder has a folder iteration-N, with or without files */
	bool has_parameters; /* the folder has parameters.safetensors */
	/* No checkpoint is complete, yet every host wrote later ones: files have been removed. */
	bool has_lost;
};

/* Reserves the names of the checkpoint folder, before it is created or written. Returns an error if the folder has a
 * file that the run reads (engine/base/inputs.h). Makes sure that no other output of the run replaces a checkpoint.
 * PSD_EINVAL, PSD_ENOMEM. PSD_EFILE: there is a folder where a file must be, or a file where a folder must be. */
enum psd_status psd_checkpoints_reserve(const struct psd_checkpoints *checkpoints,
					struct psd_error *err) PSD_MUST_CHECK;
/* Creates the checkpoint folder if it does not exist. PSD_EFILE: files cannot be created in it. */
enum psd_status psd_checkpoints_open(struct psd_checkpoints *checkpoints, struct psd_error *err) PSD_MUST_CHECK;
/* Locks the files of host number `host` in the folder, so that no other run writes them; see psd_path_lock(). Other
 * hosts may use the same folder. PSD_EFILE: another run has the lock; PSD_ENOMEM. */
enum psd_status psd_checkpoints_lock(const struct psd_checkpoints *checkpoints, unsigned host, int *descriptor,
				     struct psd_error *err) PSD_MUST_CHECK;
/* Finds the checkpoint from which to resume. host: this host and the number of hosts; if host.host equals host.n_hosts,
 * the caller needs the files of all hosts. below_iterations: only checkpoints after fewer iterations are considered; 0:
 * all are. PSD_EFILE: the folder cannot be read; PSD_ENOMEM. */
enum psd_status psd_checkpoints_find(const struct psd_checkpoints *checkpoints, struct psd_checkpoint_host host,
				     uint32_t below_iterations, struct psd_checkpoints_found *found,
				     struct psd_error *err) PSD_MUST_CHECK;
/* Returns the path of the file that this host has in the checkpoint after `iterations` iterations. */
struct psd_checkpoint_path psd_checkpoint_path(const struct psd_checkpoints *checkpoints,
					       struct psd_checkpoint_host host, uint32_t iterations);
struct psd_checkpoint_path psd_checkpoint_parameters_path(const struct psd_checkpoints *checkpoints);
/* Renames parameters.safetensors to kept-N.safetensors, where N is the first number that is not used. *kept: the new
 * path. Returns false if it cannot be renamed; errno has the reason. */
bool psd_checkpoint_keep_parameters(const struct psd_checkpoints *checkpoints, struct psd_checkpoint_path *kept);
/* Creates the folder iteration-N for the checkpoint after N = `iterations` iterations. PSD_EFILE: it cannot be created,
 * or the path of the checkpoint folder now belongs to another folder. */
enum psd_status psd_checkpoint_begin(const struct psd_checkpoints *checkpoints, uint32_t iterations,
				     struct psd_error *err) PSD_MUST_CHECK;
/* Removes old files of a host and keeps its n_kept newest ones. n_kept: PSD_CHECKPOINTS_KEPT or
 * PSD_CHECKPOINTS_KEPT_WITH_SERVERS. Call it when the host's file of the checkpoint after `iterations` iterations is
 * complete. A file that cannot be removed is ignored. */
void psd_checkpoint_prune(const struct psd_checkpoints *checkpoints, struct psd_checkpoint_host host,
			  uint32_t iterations, unsigned n_kept);
/* Removes a host's files of checkpoints after more than `iterations` iterations. The run begins at that iteration, so
 * files of an earlier run would mix with its own. PSD_EFILE: a file cannot be removed. */
enum psd_status psd_checkpoint_drop_later(const struct psd_checkpoints *checkpoints, struct psd_checkpoint_host host,
					  uint32_t iterations, struct psd_error *err) PSD_MUST_CHECK;

#endif
