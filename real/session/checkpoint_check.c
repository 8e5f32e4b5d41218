#include "real/session/checkpoint_check.h"

#include "real/data/tensor_file.h"
#include "real/session/old_checkpoint.h"

static enum psd_status check_file(const struct psd_checkpoints *checkpoints, struct psd_checkpoint_host host,
				  uint32_t iterations, struct psd_error *err)
{
	const struct psd_checkpoint_path path = psd_checkpoint_path(checkpoints, host, iterations);
	struct psd_old_checkpoint_notes notes;
	struct psd_tensor_file *file;
	bool has_checksums;
	enum psd_status status;

	PSD_TRY(psd_tensor_file_open(&file, path.text, err));
	notes = psd_old_checkpoint_read_notes(file);
	status = psd_old_checkpoint_check_name(&notes, host, iterations, path.text, err);
	if (!status)
		status = psd_tensor_file_verify(file, &has_checksums, err);
	psd_tensor_file_close(file);
	return status;
}

enum psd_status psd_checkpoint_check(const struct psd_checkpoints *checkpoints, const struct psd_checkpoint_set *set,
				     struct psd_checkpoint_host host, struct psd_error *err)
{
	enum psd_status status = PSD_OK;

	if (set->missing < set->n_hosts)
		return check_file(checkpoints, host, set->iterations, err);
	for (unsigned h = 0; h < set->n_hosts && !status; h++)
		status = check_file(checkpoints, (struct psd_checkpoint_host){h, set->n_hosts}, set->iterations, err);
	return status;
}
