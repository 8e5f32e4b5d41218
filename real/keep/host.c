/* Memory of a host: two of them where the device has its own. */
#include "real/keep/host.h"

#include <math.h>

#include "real/net/socket.h"

bool psd_worker_is_replayed(const struct psd_worker_options *options)
{
	return options->replay && options->self >= options->replay->real_workers;
}

enum psd_status psd_worker_out_of_memory(struct psd_error *err)
{
	return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a worker");
}

void *psd_host_take(struct psd_host *host, size_t n, size_t bytes, struct psd_error *err)
{
	void *memory = psd_arena_take(&host->arena, n * bytes);

	if (!memory)
		(void)psd_worker_out_of_memory(err);
	return memory;
}

/* Iterations of the resumed run count as if this run had executed them. */
uint64_t psd_host_samples(const struct psd_host *host, uint64_t iteration)
{
	const uint64_t first = host->options->first_iteration, batch = host->global_batch;
	const uint64_t begun = host->options->first_sample;

	if (iteration >= first)
		return begun + (iteration - first) * batch;
	return begun > (first - iteration) * batch ? begun - (first - iteration) * batch : 0;
}

/* ---- parameters ---- */

/* Copies all parameters that this host keeps between the memories of host and device. */
static enum psd_status copy_parameters(struct psd_host *host, enum psd_stream stream, struct psd_error *err)
{
	const bool is_out = stream == PSD_STREAM_COPY_OUT;

	if (host->on_device == &host->memory)
		return PSD_OK;
	for (unsigned t = 0; t < host->graph->n_tensors; t++) {
		const struct psd_held here = psd_memory_held(&host->memory, t);
		const struct psd_held there = psd_memory_held(&host->apart, t);

		if (here.piece.elements > 0)
			PSD_TRY(host->kind->copy(host->device, stream, is_out ? here.values : there.values,
						 is_out ? there.values : here.values,
						 here.piece.elements * sizeof(float), err));
	}
	if (host->kind->is_asynchronous)
		PSD_TRY(host->kind->wait(host->device, stream, host->kind->mark(host->device, stream), err));
	return PSD_OK;
}

/* Copies the exact parameters of a root to its device. */
static enum psd_status copy_masters(struct psd_host *host, struct psd_error *err)
{
	for (unsigned i = 0; i < host->plan->n_items; i++) {
		const struct psd_plan_item *item = &host->plan->items[i];
		float *to = psd_memory_kept(host->on_device, PSD_BUFFER_MASTER, i, 0),
		      *from = psd_memory_kept(&host->memory, PSD_BUFFER_MASTER, i, 0);

		if (to && to != from && item->root == host->self)
			PSD_TRY(host->kind->copy(host->device, PSD_STREAM_COPY_IN, to, from,
						 item->subject.elements * sizeof(*to), err));
	}
	return PSD_OK;
}

enum psd_status psd_host_fetch_parameters(struct psd_host *host, struct psd_error *err)
{
	return copy_parameters(host, PSD_STREAM_COPY_OUT, err);
}

enum psd_status psd_host_bring_parameters(struct psd_host *host, struct psd_error *err)
{
	psd_memory_fill_own(&host->memory);
	PSD_TRY(copy_masters(host, err));
	return copy_parameters(host, PSD_STREAM_COPY_IN, err); /* waits */
}

enum psd_status psd_host_open_memory(struct psd_host *host, struct psd_error *err)
{
	const bool has_own = host->kind->has_own_memory;
	struct psd_memory_options options = {
		.host = host->self,
		.adds_arrivals = !host->options->train->is_deterministic && !host->plan->async,
		.place = has_own ? PSD_MEMORY_HOST : PSD_MEMORY_SHARED,
		.kind = host->kind,
		.device = host->device,
	};

	host->on_device = has_own ? &host->apart : &host->memory;
	PSD_TRY(psd_memory_init(&host->memory, host->program, &options, err));
	options.place = PSD_MEMORY_DEVICE;
	if (has_own)
		PSD_TRY(psd_memory_init(&host->apart, host->program, &options, err));
	psd_memory_fill_parameters(&host->memory, host->options->train->seed);
	return psd_host_bring_parameters(host, err);
}

/* ---- parts of a test, a checkpoint or the start ---- */

static double time_part(struct psd_host *host)
{
	const double now_sec = psd_socket_now_sec();

	return now_sec - atomic_exchange(&host->parts_done.moved_sec, now_sec);
}

void psd_host_moved(struct psd_host *host)
{
	(void)time_part(host);
}

static void count_longest(struct psd_host *host, _Atomic double *longest_sec)
{
	const double sec = time_part(host);

	atomic_store(longest_sec, fmax(sec, atomic_load(longest_sec)));
}

void psd_host_moved_test(struct psd_host *host)
{
	count_longest(host, &host->parts_done.longest_test_sec);
}

void psd_host_moved_save(struct psd_host *host)
{
	count_longest(host, &host->parts_done.longest_save_sec);
}
