/* Reader of a checkpoint that another run has written, on other hosts or with another system. It reads the files of all
 * of that run's hosts. Each file contains the run's shard map (shard_map.h), by which the values of a tensor are found.
 * Does not know the run that resumes. */
#ifndef PSD_REAL_OLD_CHECKPOINT_H
#define PSD_REAL_OLD_CHECKPOINT_H

#include "real/data/tensor_file.h"
#include "real/session/checkpoint.h"
#include "real/session/shard_map.h"

/* Metadata of a checkpoint's file. The strings are borrowed from the file; NULL: the file, of an older psd-run, lacks
 * the entry. */
struct psd_old_checkpoint_notes {
	const char *iterations, *system, *program, *host, *run, *terms, *samples, *model, *shard_map;
};
struct psd_old_checkpoint_notes psd_old_checkpoint_read_notes(const struct psd_tensor_file *file);
/* Checks that a file's metadata is complete, and that it names the host and the iterations that the file's name says.
 * PSD_EINVAL: it is not or does not. */
enum psd_status psd_old_checkpoint_check_name(const struct psd_old_checkpoint_notes *notes,
					      struct psd_checkpoint_host host, uint32_t iterations, const char *path,
					      struct psd_error *err) PSD_MUST_CHECK;

/* Checks that a file is of the same run as the file of host 0 beside it, whose metadata are `first`. PSD_EINVAL: it is
 * not; somebody has copied files of two runs into one folder. */
enum psd_status psd_old_checkpoint_check_run(const struct psd_old_checkpoint_notes *first,
					     const struct psd_old_checkpoint_notes *notes, const char *path,
					     struct psd_error *err) PSD_MUST_CHECK;

enum { PSD_OLD_CHECKPOINT_SYSTEM_MAX = 84 };

/* Properties of a checkpoint that decide how a run resumes from it. */
struct psd_old_checkpoint_about {
	/* Name of the system that wrote the checkpoint, cut if it is too long. */
	char system[PSD_OLD_CHECKPOINT_SYSTEM_MAX];
	bool is_alike; /* program and shard map in the file are those of the resuming run, or the file has none */
	bool has_samples;
	uint64_t samples; /* number of samples that all workers processed before the checkpoint; valid if has_samples */
};
/* Reads the properties of a checkpoint after `iterations` iterations from the file at path into *about. program,
 * shard_map: texts of the resuming run, to compare with. PSD_EINVAL, PSD_EFILE: the file is damaged, or is not a
 * checkpoint; PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_old_checkpoint_look(struct psd_old_checkpoint_about *about, const char *path, uint32_t iterations,
					const char *program, const char *shard_map,
					struct psd_error *err) PSD_MUST_CHECK;

struct psd_old_checkpoint {
	const struct psd_checkpoints *checkpoints; /* folder of the checkpoint; borrowed */
	uint32_t iterations;
	unsigned n_hosts;
	struct psd_tensor_file **files; /* open files of the checkpoint; shape (n_hosts) */
	struct psd_shard_map shard_map;
	/* Result of the last search: in each host's file, the tensor of buffer `buffer` of the item (bucket) `item`;
	 * shape (n_hosts). NULL: the file has no such tensor. */
	const struct psd_file_tensor **found;
	enum psd_buffer buffer;
	unsigned item;
	bool has_looked;
};

/* Opens the files of all n_hosts hosts that wrote the checkpoint after `iterations` iterations. graph: the resuming
 * run's, borrowed; the files must fit it. *old is filled on success; psd_old_checkpoint_close() releases it.
 * PSD_EINVAL: a file is damaged, or is of another model, or of another run than the first file; PSD_EFILE: a file is
 * missing; PSD_ENOMEM; PSD_ERUN. */
enum psd_status psd_old_checkpoint_open(struct psd_old_checkpoint *old, const struct psd_checkpoints *checkpoints,
					unsigned n_hosts, uint32_t iterations, const struct psd_graph *graph,
					struct psd_error *err) PSD_MUST_CHECK;
void psd_old_checkpoint_close(struct psd_old_checkpoint *old);
struct psd_checkpoint_path psd_old_checkpoint_path(const struct psd_old_checkpoint *old, unsigned host);
/* Returns the number of the host that updated the tensor: the root of its item (bucket); 0 if all workers updated
 * it. */
unsigned psd_old_checkpoint_root(const struct psd_old_checkpoint *old, unsigned tensor);

/* True if the file of any host has this buffer of the item (bucket) to which the tensor belongs. False if the tensor
 * belongs to no item. */
bool psd_old_checkpoint_keeps(struct psd_old_checkpoint *old, enum psd_buffer buffer, unsigned tensor);
/* Reads a range of a tensor's elements from a buffer into `to`. They come from the file of `host` if one host has all
 * elements of the tensor's item (bucket), or from the files of all shards if these are distributed. PSD_EINVAL: a file
 * lacks the buffer; PSD_ERUN: a file has become shorter. */
enum psd_status psd_old_checkpoint_read(struct psd_old_checkpoint *old, enum psd_buffer buffer, unsigned host,
					unsigned tensor, struct psd_range range, float *to,
					struct psd_error *err) PSD_MUST_CHECK;
/* Reads a range of a buffer from the file of `host` into `to`. It is the buffer of the item (bucket) to which the
 * tensor belongs; the range counts from the buffer's first element in that file. Statuses as
 * psd_old_checkpoint_read(). */
enum psd_status psd_old_checkpoint_read_run(struct psd_old_checkpoint *old, enum psd_buffer buffer, unsigned host,
					    unsigned tensor, struct psd_range range, float *to,
					    struct psd_error *err) PSD_MUST_CHECK;

#endif
