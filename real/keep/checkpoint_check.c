#include "real/keep/checkpoint_check.h"

#include "real/data/tensor_file.h"
#include "real/keep/old_checkpoint.h"

/* first: the open file of host 0 of the same checkpoint; NULL: this file is the first one. */
static enum psd_status check_file(const struct psd_tensor_file *first, struct psd_tensor_file *file,
				  struct psd_checkpoint_host host, uint32_t iterations, const char *path,
				  struct psd_error *err)
{
	const struct psd_old_checkpoint_notes notes = psd_old_checkpoint_read_notes(file);
	const struct psd_old_checkpoint_notes beside = psd_old_checkpoint_read_notes(first ? first : file);
	bool has_checksums;

	PSD_TRY(psd_old_checkpoint_check_name(&notes, host, iterations, path, err));
	PSD_TRY(psd_old_checkpoint_check_run(&beside, &notes, path, err));
	return psd_tensor_file_verify(file, &has_checksums, err);
}

/* *first: NULL at first, then the open file of the first host, which the caller closes. */
static enum psd_status check_host(const struct psd_checkpoints *checkpoints, struct psd_checkpoint_host host,
				  uint32_t iterations, struct psd_tensor_file **first, struct psd_error *err)
{
	const struct psd_checkpoint_path path = psd_checkpoint_path(checkpoints, host, iterations);
	struct psd_tensor_file *file;

	PSD_TRY(psd_tensor_file_open(&file, path.text, err));
	const enum psd_status status = check_file(*first, file, host, iterations, path.text, err);
	if (*first)
		psd_tensor_file_close(file);
	else
		*first = file;
	return status;
}

enum psd_status psd_checkpoint_check(const struct psd_checkpoints *checkpoints, const struct psd_checkpoint_set *set,
				     struct psd_checkpoint_host host, struct psd_error *err)
{
	struct psd_tensor_file *first = NULL;
	enum psd_status status = PSD_OK;

	if (set->missing < set->n_hosts)
		status = check_host(checkpoints, host, set->iterations, &first, err);
	for (unsigned h = 0; set->missing == set->n_hosts && h < set->n_hosts && !status; h++)
		status = check_host(checkpoints, (struct psd_checkpoint_host){h, set->n_hosts}, set->iterations, &first,
				    err);
	psd_tensor_file_close(first);
	return status;
}
