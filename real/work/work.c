#include "real/work/work.h"

#define ADDRESS_OF_FAMILY(name) &psd_family_##name,
static const struct psd_family *const families[] = {PSD_FAMILIES(ADDRESS_OF_FAMILY)};
enum { N_FAMILIES = sizeof(families) / sizeof(families[0]) };

static const struct psd_work_row *row_in(const struct psd_family *family, const struct psd_plan *plan,
					 const struct psd_op *op)
{
	for (unsigned r = 0; r < PSD_MOST_WORK_ROWS && family->rows[r].run; r++)
		if (family->rows[r].kind == op->kind && (!family->takes || family->takes(plan, op)))
			return &family->rows[r];
	return NULL;
}

const struct psd_work_row *psd_work_find(const struct psd_plan *plan, const struct psd_op *op)
{
	const struct psd_work_row *row = NULL;

	for (unsigned f = 0; f < N_FAMILIES && !row; f++)
		row = row_in(families[f], plan, op);
	return row;
}

enum psd_status psd_work_open(struct psd_work *work, struct psd_error *err)
{
	const struct psd_program *program = work->host->program;

	work->rows = psd_host_take(work->host, program->n_ops, sizeof(*work->rows), err);
	if (!work->rows)
		return PSD_ENOMEM;
	for (uint32_t o = 0; o < program->n_ops; o++)
		work->rows[o] = psd_work_find(program->plan, &program->ops[o]);
	for (unsigned f = 0; f < N_FAMILIES; f++)
		if (families[f]->open)
			PSD_TRY(families[f]->open(work, err));
	return PSD_OK;
}

void psd_work_close(struct psd_work *work)
{
	psd_feed_close(psd_work_feed(work)); /* it may read into memory of the device */
}

bool psd_work_is_small(const struct psd_work *work, const struct psd_op *op, double last_sec)
{
	const struct psd_work_row *row = work->rows[op - work->host->program->ops];

	return row && row->is_small && row->is_small(work, op, last_sec);
}
