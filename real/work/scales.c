/* Loss scales: one for each slice of each item (bucket), of a worker's own gradients and of the sums of a shard or
 * root. */
#include "real/keep/state.h"
#include "real/work/work.h"

struct scales {
	const struct psd_host *host;
	unsigned n;
	struct psd_scale *all; /* n of the worker, then n of the sums */
	/* Values of all as files have them: factors, and numbers of sums since they changed. */
	float *ratios;
	int32_t *n_good;
};

/* Slices of the items before this one. */
static unsigned slices_before(const struct psd_plan *plan, unsigned item)
{
	unsigned n = 0;

	for (unsigned i = 0; i < item; i++)
		n += plan->items[i].n_slices;
	return n;
}

static void keep(void *context, struct psd_state *state)
{
	const struct scales *scales = context;

	for (unsigned i = 0; i < 2 * scales->n; i++) {
		scales->ratios[i] = scales->all[i].ratio;
		scales->n_good[i] = (int32_t)scales->all[i].n_good;
	}
	psd_state_add_vector(state, "loss_scales", PSD_TENSOR_F32, 2 * scales->n, scales->ratios);
	psd_state_add_vector(state, "loss_scales.n_good", PSD_TENSOR_I32, 2 * scales->n, scales->n_good);
}

static enum psd_status take(void *context, const char *path, struct psd_error *err)
{
	const struct scales *scales = context;

	(void)path, (void)err;
	for (unsigned i = 0; i < 2 * scales->n; i++) {
		scales->all[i].ratio = scales->ratios[i];
		scales->all[i].n_good = (uint32_t)scales->n_good[i];
	}
	return PSD_OK;
}

static enum psd_status open(struct psd_work *work, struct psd_error *err)
{
	struct psd_host *host = work->host;
	const unsigned n = slices_before(host->plan, host->plan->n_items);
	struct scales *scales = work->states.scales = psd_host_take(host, 1, sizeof(*scales), err);

	if (!scales)
		return PSD_ENOMEM;
	*scales = (struct scales){.host = host, .n = n};
	scales->all = psd_host_take(host, 2 * n, sizeof(*scales->all), err);
	scales->ratios = psd_host_take(host, 2 * n, sizeof(*scales->ratios), err);
	scales->n_good = psd_host_take(host, 2 * n, sizeof(*scales->n_good), err);
	if (!scales->all || !scales->ratios || !scales->n_good)
		return PSD_ENOMEM;
	for (unsigned i = 0; i < 2 * n; i++)
		scales->all[i] = psd_scale_make(host->plan->wire, host->options->train->loss_scale);
	if (host->plan->wire->is_scaled)
		host->keepers[host->n_keepers++] =
			(struct psd_keeper){"loss_scales", "loss scales", keep, take, NULL, scales};
	return PSD_OK;
}

struct psd_scale *psd_work_scale(const struct psd_work *work, const struct psd_op *op)
{
	const struct scales *scales = work->states.scales;
	const bool is_of_workers = op->where == PSD_WHERE_WORKERS || op->where == PSD_WHERE_GROUP;

	return scales->all + (is_of_workers ? 0 : scales->n) + slices_before(work->host->plan, (unsigned)op->item) +
	       op->slice;
}

bool psd_work_skips(const struct psd_work *work, const struct psd_op *op)
{
	const struct psd_scale *scales = psd_work_scale(work, op);
	bool is = false;

	for (unsigned s = 0; s < work->host->plan->items[op->item].n_slices; s++)
		is = is || scales[s].is_skipped;
	return is;
}

void psd_work_count_updates(const struct psd_work *work, struct psd_worker_result *result)
{
	const struct scales *scales = work->states.scales;

	for (unsigned i = 0; scales && i < scales->n; i++) {
		result->n_updates += scales->all[i].n_taken;
		result->n_left_out += scales->all[i].n_left_out;
	}
}

const struct psd_family psd_family_scales = {.open = open};
