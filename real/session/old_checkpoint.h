/* Last checkpoint of another run, on other hosts or by another system, read from all its hosts' files at once. The
 * files contain their shard map (shard_map.h); this gives the values of a tensor. Does not know the reader. */
#ifndef PSD_REAL_OLD_CHECKPOINT_H
#define PSD_REAL_OLD_CHECKPOINT_H

#include "real/data/tensor_file.h"
#include "real/session/checkpoint.h"
#include "real/session/shard_map.h"

/* Metadata of a checkpoint's file, borrowed from it; NULL: absent, as in files of an older psd-run. */
struct psd_old_checkpoint_notes {
	const char *iterations, *system, *program, *host, *run, *terms, *samples, *model, *shard_map;
};
struct psd_old_checkpoint_notes psd_old_checkpoint_read_notes(const struct psd_tensor_file *file);
/* Checks that a file's metadata is complete and fits its name. PSD_EINVAL if not. */
enum psd_status psd_old_checkpoint_check_name(const struct psd_old_checkpoint_notes *notes,
					      struct psd_checkpoint_host host, uint32_t iterations, const char *path,
					      struct psd_error *err) PSD_MUST_CHECK;

enum { PSD_OLD_CHECKPOINT_SYSTEM_MAX = 84 };

/* Properties of an old checkpoint that decide how a run resumes from it. */
struct psd_old_checkpoint_about {
	char system[PSD_OLD_CHECKPOINT_SYSTEM_MAX]; /* name of the system that wrote it, possibly cut */
	bool is_alike; /* the run's program and shard map are the same, or the file has none */
	bool has_samples;
	uint64_t samples; /* samples processed by all workers before the checkpoint */
};
/* Reads the metadata of the checkpoint after that many iterations. program, shard_map: those of this run. PSD_EINVAL,
 * PSD_EFILE: the file is of another kind, or damaged; PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_old_checkpoint_look(struct psd_old_checkpoint_about *about, const char *path, uint32_t iterations,
					const char *program, const char *shard_map,
					struct psd_error *err) PSD_MUST_CHECK;

struct psd_old_checkpoint {
	const struct psd_checkpoints *checkpoints; /* folder with the checkpoint, borrowed */
	uint32_t iterations;
	unsigned n_hosts;
	struct psd_tensor_file **files; /* files of the checkpoint, one per host */
	struct psd_shard_map shard_map;
	/* Tensor of the file that was read last, one per host; NULL: none. */
	const struct psd_file_tensor **found;
	enum psd_buffer buffer;
	unsigned item;
	bool has_looked;
};

/* Opens the files of all n_hosts hosts. graph: borrowed; must fit the files. *old is filled on success;
 * psd_old_checkpoint_close() releases it. PSD_EINVAL: one is damaged, of another model, or of another run than the
 * first; PSD_EFILE: one is missing; PSD_ENOMEM; PSD_ERUN. */
enum psd_status psd_old_checkpoint_open(struct psd_old_checkpoint *old, const struct psd_checkpoints *checkpoints,
					unsigned n_hosts, uint32_t iterations, const struct psd_graph *graph,
					struct psd_error *err) PSD_MUST_CHECK;
void psd_old_checkpoint_close(struct psd_old_checkpoint *old);
struct psd_checkpoint_path psd_old_checkpoint_path(const struct psd_old_checkpoint *old, unsigned host);
/* Host that updates the tensor: the root of its item, or worker 0 if all workers update it. */
unsigned psd_old_checkpoint_root(const struct psd_old_checkpoint *old, unsigned tensor);

/* True if any host has this buffer of the tensor's item; false for a tensor without an item. */
bool psd_old_checkpoint_keeps(struct psd_old_checkpoint *old, enum psd_buffer buffer, unsigned tensor);
/* Reads elements of a tensor from a buffer: from `host` if one host has all elements of the item, or from all shards if
 * they are distributed. PSD_EINVAL: a file lacks it; PSD_ERUN: a file was shortened. */
enum psd_status psd_old_checkpoint_read(struct psd_old_checkpoint *old, enum psd_buffer buffer, unsigned host,
					unsigned tensor, struct psd_range range, float *to,
					struct psd_error *err) PSD_MUST_CHECK;
/* Reads a range of one host's buffer of the item that has the tensor. */
enum psd_status psd_old_checkpoint_read_run(struct psd_old_checkpoint *old, enum psd_buffer buffer, unsigned host,
					    unsigned tensor, struct psd_range range, float *to,
					    struct psd_error *err) PSD_MUST_CHECK;

#endif
