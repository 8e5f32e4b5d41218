/* Files of checkpoints: FOLDER/iteration-N/host-H-of-P.safetensors is the state of host H after N iterations,
 * FOLDER/parameters.safetensors the newest parameters, written by host 0. Hosts may share the folder or have one each.
 * No worker completes an iteration without all others, so hosts differ by one checkpoint at most, and each keeps two. A
 * separate server only needs the workers, and may be two ahead of another server: with servers each host keeps three. A
 * run may resume from one with another number of hosts: the newest complete checkpoint counts, and host H removes the
 * files of hosts H, H + P, H + 2 P ... of the other run together with its own. Knows names, not contents. */
#ifndef PSD_REAL_CHECKPOINT_H
#define PSD_REAL_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"

struct psd_checkpoints {
	const char *folder;
	uint32_t every_iterations; /* interval of checkpoints, >= 1; the last iteration always has one */
};

struct psd_checkpoint_host {
	unsigned host, n_hosts;
};

/* Number of checkpoints that a host keeps; the file's head says why. */
enum { PSD_CHECKPOINTS_KEPT = 2, PSD_CHECKPOINTS_KEPT_WITH_SERVERS = 3 };

enum { PSD_CHECKPOINT_PATH_MAX = 4096 };

struct psd_checkpoint_path {
	char text[PSD_CHECKPOINT_PATH_MAX];
};

/* A checkpoint, and the first host whose file is missing from it; n_hosts: none is missing. */
struct psd_checkpoint_set {
	uint32_t iterations; /* iterations executed before the checkpoint; 0: no checkpoint */
	unsigned n_hosts, missing;
};

struct psd_checkpoints_found {
	/* Newest checkpoint from which this host, and every host whose file is here, can resume: one of as many hosts
	 * (others may have their own folders), or a complete one of another number. */
	struct psd_checkpoint_set newest;
	struct psd_checkpoint_set other; /* newest incomplete checkpoint of another number of hosts */
	bool has_any;			 /* any file of a checkpoint was found */
	bool has_parameters_alone;	 /* parameters.safetensors is there, but the folder of no checkpoint */
	bool has_lost; /* a checkpoint here is not complete, although all hosts have passed it; none other is */
};

/* Before the folder is created or written: refuses one whose files the run reads (engine/base/inputs.h). Notes its
 * files as inputs, and takes the names of later ones, so that no output replaces a checkpoint. PSD_EINVAL, PSD_ENOMEM.
 * */
enum psd_status psd_checkpoints_reserve(const struct psd_checkpoints *checkpoints,
					struct psd_error *err) PSD_MUST_CHECK;
/* Creates the checkpoint folder if needed. PSD_EFILE: it cannot be written to. */
enum psd_status psd_checkpoints_open(const struct psd_checkpoints *checkpoints, struct psd_error *err) PSD_MUST_CHECK;
/* Locks the folder against other runs until the caller, and all processes that inherit *descriptor, close it; -1: the
 * file system has no locks. Host 0 alone calls it, since hosts may share the folder. Waits a moment for a killed run.
 * PSD_EFILE: another run has it. */
enum psd_status psd_checkpoints_lock(const struct psd_checkpoints *checkpoints, int *descriptor,
				     struct psd_error *err) PSD_MUST_CHECK;
/* Finds the checkpoint to resume from. host.host == host.n_hosts: all hosts' files are here. below_iterations: only
 * earlier checkpoints count; 0: all count. PSD_EFILE: the folder cannot be read; PSD_ENOMEM. */
enum psd_status psd_checkpoints_find(const struct psd_checkpoints *checkpoints, struct psd_checkpoint_host host,
				     uint32_t below_iterations, struct psd_checkpoints_found *found,
				     struct psd_error *err) PSD_MUST_CHECK;
/* Path of the host's file in the checkpoint after that many iterations. */
struct psd_checkpoint_path psd_checkpoint_path(const struct psd_checkpoints *checkpoints,
					       struct psd_checkpoint_host host, uint32_t iterations);
struct psd_checkpoint_path psd_checkpoint_parameters_path(const struct psd_checkpoints *checkpoints);
/* Creates the folder of the checkpoint after that many iterations. PSD_EFILE. */
enum psd_status psd_checkpoint_begin(const struct psd_checkpoints *checkpoints, uint32_t iterations,
				     struct psd_error *err) PSD_MUST_CHECK;
/* Removes old files of the host, once its new one is complete, so that n_kept stay (PSD_CHECKPOINTS_KEPT or
 * PSD_CHECKPOINTS_KEPT_WITH_SERVERS). Files that cannot be removed stay. */
void psd_checkpoint_prune(const struct psd_checkpoints *checkpoints, struct psd_checkpoint_host host,
			  uint32_t iterations, unsigned n_kept);
/* Removes the host's files of checkpoints after `iterations`, where the run starts, so that files of an earlier run
 * never mix with new ones. PSD_EFILE: one cannot be removed. */
enum psd_status psd_checkpoint_drop_later(const struct psd_checkpoints *checkpoints, struct psd_checkpoint_host host,
					  uint32_t iterations, struct psd_error *err) PSD_MUST_CHECK;

#endif
