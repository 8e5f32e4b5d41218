/* What a run has kept in its last checkpoint, of all its hosts at once, for a run that is another one: on other hosts,
 * or by another system. Its files say how they are cut (shard_map.h); here is what is in them of a tensor. Refuses to know
 * whom it is for. */
#ifndef PSD_REAL_OLD_CHECKPOINT_H
#define PSD_REAL_OLD_CHECKPOINT_H

#include "real/data/tensor_file.h"
#include "real/session/checkpoint.h"
#include "real/session/shard_map.h"

/* What a file says of itself; borrowed from it. NULL: it does not, as those of an older psd-run. */
struct psd_old_checkpoint_notes {
	const char *iterations, *system, *program, *host, *run, *terms, *samples, *model, *shard_map;
};
struct psd_old_checkpoint_notes psd_old_checkpoint_read_notes(const struct psd_tensor_file *file);

enum { PSD_OLD_CHECKPOINT_SYSTEM_MAX = 84 };

/* What of that decides how a run goes on. */
struct psd_old_checkpoint_about {
	char system[PSD_OLD_CHECKPOINT_SYSTEM_MAX]; /* its beginning */
	bool is_alike; /* its program and its spread are the same; or it does not say which */
	bool has_samples;
	uint64_t samples; /* that all workers have gone through */
};
/* The file of so many iterations. program, spread: as this run would have them. PSD_EINVAL, PSD_EFILE: it is no file of
 * this kind, or damaged; PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_old_checkpoint_look(struct psd_old_checkpoint_about *about, const char *path, uint32_t iterations,
					const char *program, const char *shard_map,
					struct psd_error *err) PSD_MUST_CHECK;

struct psd_old_checkpoint {
	const struct psd_checkpoints *checkpoints; /* borrowed */
	uint32_t iterations;
	unsigned n_hosts;
	struct psd_tensor_file **files; /* one for each host */
	struct psd_shard_map shard_map;
	/* Of the buffer that was looked for last, what each host has of it; NULL: nothing. */
	const struct psd_file_tensor **found;
	enum psd_buffer buffer;
	unsigned item;
	bool has_looked;
};

/* Opens the files of all n_hosts hosts. graph: borrowed; must be that of the files. *former is filled on success, and
 * released by psd_old_checkpoint_close(). PSD_EINVAL: one is damaged, of another model, or of another run than the first;
 * PSD_EFILE: one is missing; PSD_ENOMEM; PSD_ERUN. */
enum psd_status psd_old_checkpoint_open(struct psd_old_checkpoint *old, const struct psd_checkpoints *checkpoints,
					unsigned n_hosts, uint32_t iterations, const struct psd_graph *graph,
					struct psd_error *err) PSD_MUST_CHECK;
void psd_old_checkpoint_close(struct psd_old_checkpoint *old);
struct psd_checkpoint_path psd_old_checkpoint_path(const struct psd_old_checkpoint *old, unsigned host);
/* Who updates the tensor: its item's root where it has one, else each worker, of whom worker 0 speaks for all. */
unsigned psd_old_checkpoint_root(const struct psd_old_checkpoint *old, unsigned tensor);

/* Whether some host has such a buffer of the tensor's item; false of a tensor in no item. */
bool psd_old_checkpoint_keeps(struct psd_old_checkpoint *old, enum psd_buffer buffer, unsigned tensor);
/* What is there of the tensor's elements in such a buffer, which somebody keeps: of all elements of an item that of the
 * host, of what is spread over shards all. PSD_EINVAL: a file lacks it; PSD_ERUN: a file was shortened. */
enum psd_status psd_old_checkpoint_read(struct psd_old_checkpoint *old, enum psd_buffer buffer, unsigned host,
					unsigned tensor, struct psd_range range, float *to,
					struct psd_error *err) PSD_MUST_CHECK;
/* Values of a host's buffer of the tensor's item, wherever they are in it. */
enum psd_status psd_old_checkpoint_read_run(struct psd_old_checkpoint *old, enum psd_buffer buffer, unsigned host,
					    unsigned tensor, struct psd_range range, float *to,
					    struct psd_error *err) PSD_MUST_CHECK;

#endif
