/* Reads a checkpoint that another run has written, on other hosts or with another system. It reads the files of all
 * hosts of that run. Each file contains the run's shard map (shard_map.h), which tells where the values of a tensor
 * are. This module does not know the run that resumes. */
#ifndef PSD_REAL_OLD_CHECKPOINT_H
#define PSD_REAL_OLD_CHECKPOINT_H

#include "real/data/tensor_file.h"
#include "real/keep/checkpoint.h"
#include "real/keep/shard_map.h"

/* Metadata in a file of a checkpoint. The strings are valid until the file is closed. NULL: the file has no such entry,
 * because an older psd-run wrote it. */
struct psd_old_checkpoint_notes {
	const char *iterations, *system, *program, *host, *run, *terms, *samples, *model, *shard_map;
};
struct psd_old_checkpoint_notes psd_old_checkpoint_read_notes(const struct psd_tensor_file *file);
/* Checks that the metadata of a file are complete, and that they have the host and the iterations of the file's name.
 * PSD_EINVAL: they are not complete, or they differ from the name. */
enum psd_status psd_old_checkpoint_check_name(const struct psd_old_checkpoint_notes *notes,
					      struct psd_checkpoint_host host, uint32_t iterations, const char *path,
					      struct psd_error *err) PSD_MUST_CHECK;

/* Checks that a file belongs to the same run as the file of host 0 in the same folder. first: metadata of the file of
 * host 0. PSD_EINVAL: it does not; files of two runs were copied into one folder. */
enum psd_status psd_old_checkpoint_check_run(const struct psd_old_checkpoint_notes *first,
					     const struct psd_old_checkpoint_notes *notes, const char *path,
					     struct psd_error *err) PSD_MUST_CHECK;

enum { PSD_OLD_CHECKPOINT_SYSTEM_MAX = 84 };

/* Properties of a checkpoint that decide how a run resumes from it. */
struct psd_old_checkpoint_about {
	/* Name of the system that wrote the checkpoint; a long name is cut. */
	char system[PSD_OLD_CHECKPOINT_SYSTEM_MAX];
	bool is_alike; /* the file has the same program and shard map as the resuming run, or it has neither */
	bool has_samples;
	/* Total number of samples that all workers processed before the checkpoint; valid if has_samples. */
	uint64_t samples;
};
/* Reads the properties of a checkpoint after `iterations` iterations into *about. path: a file of the checkpoint.
 * graph: model of the resuming run; program, shard_map: its texts, with which the texts in the file are compared.
 * PSD_EINVAL, PSD_EFILE: the file is of another model, damaged, or does not belong to a checkpoint; PSD_ENOMEM,
 * PSD_ERUN. */
enum psd_status psd_old_checkpoint_look(struct psd_old_checkpoint_about *about, const char *path, uint32_t iterations,
					const struct psd_graph *graph, const char *program, const char *shard_map,
					struct psd_error *err) PSD_MUST_CHECK;

/* Reads the measured seconds of a sample on each group of nodes, by which the run divided its samples, from a file of a
 * checkpoint into sample_sec, shape (n_groups). *has_split: false if the file has none, or has them for another number
 * of groups; then sample_sec is unchanged. PSD_EINVAL: they are not seconds that a worker can
 * need; statuses of psd_tensor_file_open(). */
enum psd_status psd_old_checkpoint_read_split(double sample_sec[], unsigned n_groups, const char *path, bool *has_split,
					      struct psd_error *err) PSD_MUST_CHECK;

struct psd_old_checkpoint {
	const struct psd_checkpoints *checkpoints; /* folder of the checkpoint; borrowed */
	uint32_t iterations;
	unsigned n_hosts;
	struct psd_tensor_file **files; /* open files of the checkpoint; shape (n_hosts) */
	struct psd_shard_map shard_map;
	/* Result of the last search: for each host's file, the tensor that has buffer `buffer` of the item (bucket)
	 * `item`; NULL: the file has no such tensor; shape (n_hosts). */
	const struct psd_file_tensor **found;
	enum psd_buffer buffer;
	unsigned item;
	bool has_looked;
};

/* Opens the files of all n_hosts hosts that wrote the checkpoint after `iterations` iterations. graph: model of the
 * resuming run, borrowed; the files must have the same tensors. *old is filled on success; psd_old_checkpoint_close()
 * releases it. PSD_EINVAL: a file is damaged, belongs to another model, or belongs to another run than the first file;
 * PSD_EFILE: a file is missing; PSD_ENOMEM; PSD_ERUN. */
enum psd_status psd_old_checkpoint_open(struct psd_old_checkpoint *old, const struct psd_checkpoints *checkpoints,
					unsigned n_hosts, uint32_t iterations, const struct psd_graph *graph,
					struct psd_error *err) PSD_MUST_CHECK;
void psd_old_checkpoint_close(struct psd_old_checkpoint *old);
struct psd_checkpoint_path psd_old_checkpoint_path(const struct psd_old_checkpoint *old, unsigned host);
/* Returns the number of the host that updated the tensor, which is the root of its item (bucket). Returns 0 if all
 * workers updated it. */
unsigned psd_old_checkpoint_root(const struct psd_old_checkpoint *old, unsigned tensor);

/* True if the file of at least one host has this buffer of the item (bucket) to which the tensor belongs. False if not,
 * or if the tensor belongs to no item. */
bool psd_old_checkpoint_keeps(struct psd_old_checkpoint *old, enum psd_buffer buffer, unsigned tensor);
/* Reads a range of a tensor's elements from a buffer into `to`. If one host has all elements of the tensor's item
 * (bucket), they are read from the file of host number `host`. If they are distributed over shards, they are read from
 * the files of the shards. PSD_EINVAL: a file lacks the buffer; PSD_ERUN: a file was shortened. */
enum psd_status psd_old_checkpoint_read(struct psd_old_checkpoint *old, enum psd_buffer buffer, unsigned host,
					unsigned tensor, struct psd_range range, float *to,
					struct psd_error *err) PSD_MUST_CHECK;
/* Reads a range of a buffer from the file of `host` into `to`. The buffer is that of the item (bucket) to which the
 * tensor belongs. range: elements, counted from the first element of the buffer in that file. Statuses as
 * psd_old_checkpoint_read(). */
enum psd_status psd_old_checkpoint_read_run(struct psd_old_checkpoint *old, enum psd_buffer buffer, unsigned host,
					    unsigned tensor, struct psd_range range, float *to,
					    struct psd_error *err) PSD_MUST_CHECK;

#endif
