/* What a run has kept in its last checkpoint, of all its hosts at once, for a run that is another one: on other hosts,
 * or by another system. Its files say how they are cut (spread.h); here is what is in them of a tensor. Refuses to know
 * whom it is for. */
#ifndef PSD_REAL_FORMER_H
#define PSD_REAL_FORMER_H

#include "real/data/tensor_file.h"
#include "real/session/checkpoint.h"
#include "real/session/spread.h"

/* What a file says of itself; borrowed from it. NULL: it does not, as those of an older psd-run. */
struct psd_former_notes {
	const char *iterations, *system, *program, *host, *run, *terms, *samples, *model, *spread;
};
struct psd_former_notes psd_former_read_notes(const struct psd_tensor_file *file);

enum { PSD_FORMER_SYSTEM_MAX = 84 };

/* What of that decides how a run goes on. */
struct psd_former_about {
	char system[PSD_FORMER_SYSTEM_MAX]; /* its beginning */
	bool is_alike;			    /* its program and its spread are the same; or it does not say which */
	bool has_samples;
	uint64_t samples; /* that all workers have gone through */
};
/* The file of so many iterations. program, spread: as this run would have them. PSD_EINVAL, PSD_EFILE: it is no file of
 * this kind, or damaged; PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_former_look(struct psd_former_about *about, const char *path, uint32_t iterations,
				const char *program, const char *spread, struct psd_error *err) PSD_MUST_CHECK;

struct psd_former {
	const struct psd_checkpoints *checkpoints; /* borrowed */
	uint32_t iterations;
	unsigned n_hosts;
	struct psd_tensor_file **files; /* one for each host */
	struct psd_spread spread;
	/* Of the buffer that was looked for last, what each host has of it; NULL: nothing. */
	const struct psd_file_tensor **found;
	enum psd_buffer buffer;
	unsigned item;
	bool has_looked;
};

/* Opens the files of all n_hosts hosts. graph: borrowed; must be that of the files. *former is filled on success, and
 * released by psd_former_close(). PSD_EINVAL: one is damaged, of another model, or of another run than the first;
 * PSD_EFILE: one is missing; PSD_ENOMEM; PSD_ERUN. */
enum psd_status psd_former_open(struct psd_former *former, const struct psd_checkpoints *checkpoints, unsigned n_hosts,
				uint32_t iterations, const struct psd_graph *graph,
				struct psd_error *err) PSD_MUST_CHECK;
void psd_former_close(struct psd_former *former);
struct psd_checkpoint_path psd_former_path(const struct psd_former *former, unsigned host);
/* Who updates the tensor: its item's root where it has one, else each worker, of whom worker 0 speaks for all. */
unsigned psd_former_root(const struct psd_former *former, unsigned tensor);

/* Whether some host has such a buffer of the tensor's item; false of a tensor in no item. */
bool psd_former_keeps(struct psd_former *former, enum psd_buffer buffer, unsigned tensor);
/* What is there of the tensor's elements in such a buffer, which somebody keeps: of all elements of an item that of the
 * host, of what is spread over shards all. PSD_EINVAL: a file lacks it; PSD_ERUN: a file was shortened. */
enum psd_status psd_former_read(struct psd_former *former, enum psd_buffer buffer, unsigned host, unsigned tensor,
				struct psd_range range, float *to, struct psd_error *err) PSD_MUST_CHECK;
/* Values of a host's buffer of the tensor's item, wherever they are in it. */
enum psd_status psd_former_read_run(struct psd_former *former, enum psd_buffer buffer, unsigned host, unsigned tensor,
				    struct psd_range range, float *to, struct psd_error *err) PSD_MUST_CHECK;

#endif
