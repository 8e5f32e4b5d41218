/* Where checkpoints lie: in FOLDER/iteration-N/host-H-of-P.safetensors what host H keeps when N iterations are done, in
 * FOLDER/parameters.safetensors the newest parameters, as host 0 has them. Hosts may share the folder, or have one
 * each. A host goes on when its file is whole. No worker completes an iteration without all other hosts: so none is
 * more than one checkpoint ahead, and of each the last two are kept. A separate server needs the workers alone, and may
 * be two ahead of another server: where there are any, the last three are kept. A run may go on from one of another
 * number of hosts, whose files then lie beside its own: the newest that is complete counts, and host H takes away what
 * was of hosts H, H + P, H + 2 P ... of others when it would take away its own. Knows names, not what is in the files.
 */
#ifndef PSD_REAL_CHECKPOINT_H
#define PSD_REAL_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"

struct psd_checkpoints {
	const char *folder;
	uint32_t every_iterations; /* >= 1; after the last one in any case */
};

struct psd_checkpoint_host {
	unsigned host, n_hosts;
};

/* Of a host: as many as it keeps, see above. */
enum { PSD_CHECKPOINTS_KEPT = 2, PSD_CHECKPOINTS_KEPT_WITH_SERVERS = 3 };

enum { PSD_CHECKPOINT_PATH_MAX = 4096 };

struct psd_checkpoint_path {
	char text[PSD_CHECKPOINT_PATH_MAX];
};

/* A checkpoint, and the first host whose file is not here; missing == n_hosts: all are. */
struct psd_checkpoint_set {
	uint32_t iterations; /* 0: there is none */
	unsigned n_hosts, missing;
};

struct psd_checkpoints_found {
	/* The newest that the host, and all whose files are here, can go on from: of as many hosts, of which the others
	 * may have folders of their own, or of another number, all of whose files are here. */
	struct psd_checkpoint_set newest;
	struct psd_checkpoint_set other; /* the newest of another number of hosts that lacks a file */
	bool has_any;			 /* some, complete or not */
	bool has_lost;			 /* as many hosts have been through a checkpoint here, and none is complete */
};

/* Makes the folder where there is none. PSD_EFILE: nothing can be written there. */
enum psd_status psd_checkpoints_open(const struct psd_checkpoints *checkpoints, struct psd_error *err) PSD_MUST_CHECK;
/* Keeps other runs out of the folder until the caller closes *descriptor, and all processes that have it from him; -1:
 * its file system has no such locks. Once, by host 0, since hosts may share the folder. Waits a moment for a run that
 * was killed. PSD_EFILE: another run has it. */
enum psd_status psd_checkpoints_lock(const struct psd_checkpoints *checkpoints, int *descriptor,
				     struct psd_error *err) PSD_MUST_CHECK;
/* host.host == host.n_hosts: all hosts' files are here. below_iterations: of so many and more another host has none; 0:
 * it may be any. PSD_EFILE: the folder cannot be read; PSD_ENOMEM. */
enum psd_status psd_checkpoints_find(const struct psd_checkpoints *checkpoints, struct psd_checkpoint_host host,
				     uint32_t below_iterations, struct psd_checkpoints_found *found,
				     struct psd_error *err) PSD_MUST_CHECK;
/* The host's file. */
struct psd_checkpoint_path psd_checkpoint_path(const struct psd_checkpoints *checkpoints,
					       struct psd_checkpoint_host host, uint32_t iterations);
struct psd_checkpoint_path psd_checkpoint_parameters_path(const struct psd_checkpoints *checkpoints);
/* Makes the folder of that file. PSD_EFILE. */
enum psd_status psd_checkpoint_begin(const struct psd_checkpoints *checkpoints, uint32_t iterations,
				     struct psd_error *err) PSD_MUST_CHECK;
/* The host's file is there: takes away all others of it, and those of other numbers of hosts that are its to take away,
 * but the newest before it, so that n_kept of them stay, PSD_CHECKPOINTS_KEPT or PSD_CHECKPOINTS_KEPT_WITH_SERVERS.
 * What cannot be taken away stays as well. */
void psd_checkpoint_prune(const struct psd_checkpoints *checkpoints, struct psd_checkpoint_host host,
			  uint32_t iterations, unsigned n_kept);
/* The host begins after so many iterations: takes away what an earlier run kept of later ones, so that a file of that
 * run never stands beside this one's. PSD_EFILE: it cannot be taken away. */
enum psd_status psd_checkpoint_drop_later(const struct psd_checkpoints *checkpoints, struct psd_checkpoint_host host,
					  uint32_t iterations, struct psd_error *err) PSD_MUST_CHECK;

#endif
