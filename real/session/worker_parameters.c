/* Parameters of all workers, gathered by worker 0 in a pause where each worker keeps a part of them. The other workers
 * send their parts to it, item by item: the messages of one operation, which is numbered after those of the program. */
#include "real/keep/whole.h"
#include "real/net/socket.h"
#include "real/session/worker_parts.h"

static uint32_t operation(const struct psd_worker *worker)
{
	return worker->host.program->n_ops;
}

/* First item (bucket) from `item` on of which a worker sends a part; the number of items: none. */
static unsigned next_sent(const struct psd_worker *worker, unsigned from, unsigned item)
{
	while (item < worker->host.plan->n_items && psd_whole_sent(&worker->host, item, from).elements == 0)
		item++;
	return item;
}

static bool is_over(const struct psd_worker *worker)
{
	const unsigned n_items = worker->host.plan->n_items;
	bool is_over = !worker->gathering.is_sending;

	if (worker->host.self != 0)
		return is_over && worker->gathering.next[worker->host.self] == n_items;
	for (unsigned w = 1; w < worker->host.layout->workers; w++)
		is_over = is_over && worker->gathering.next[w] == n_items;
	return is_over;
}

static void send_next(struct psd_worker *worker)
{
	struct psd_gathering *gathering = &worker->gathering;
	const unsigned self = worker->host.self, item = gathering->next[self];

	if (self == 0 || item == worker->host.plan->n_items)
		return;
	const uint64_t bytes = psd_whole_sent(&worker->host, item, self).elements * sizeof(float);
	const struct iovec segment = {psd_memory_kept(&worker->host.memory, PSD_BUFFER_OWN, item, 0), bytes};
	const struct psd_wire_head head = {.kind = PSD_WIRE_DATA,
					   .op = operation(worker),
					   .iteration = gathering->iteration,
					   .part = item,
					   .length_bytes = bytes};

	psd_connections_send(worker->connections, 0, &head, &segment, 1);
	gathering->next[self] = next_sent(worker, self, item + 1);
	gathering->is_sending = true;
}

/* ---- beginning and end ---- */

static void gather_job(void *context)
{
	struct psd_job *job = context;
	struct psd_worker *worker = job->worker;

	job->start_sec = psd_worker_now(worker);
	job->status = psd_host_fetch_own(&worker->host, &job->err);
	if (!job->status && worker->host.self == 0)
		job->status = psd_whole_open(&worker->host, &job->err);
}

enum psd_status psd_worker_open_gathering(struct psd_worker *worker, struct psd_error *err)
{
	worker->gathering.next =
		psd_host_take(&worker->host, worker->host.n_hosts, sizeof(*worker->gathering.next), err);
	return worker->gathering.next ? PSD_OK : PSD_ENOMEM;
}

bool psd_worker_has_gathered(const struct psd_worker *worker, uint32_t iteration)
{
	return worker->gathering.state == PSD_GATHERING_GOES_ON && worker->gathering.iteration == iteration &&
	       is_over(worker);
}

bool psd_worker_gather_parameters(struct psd_worker *worker, uint32_t iteration)
{
	struct psd_gathering *gathering = &worker->gathering;
	struct psd_jobs *jobs = &worker->jobs[PSD_RESOURCE_DEVICE];
	struct psd_job *job = &jobs->jobs[jobs->n_queued % PSD_LANE_JOBS];

	if (gathering->state != PSD_GATHERING_NONE)
		return false;
	gathering->state = PSD_GATHERING_BEGINS;
	gathering->iteration = iteration;
	gathering->begun_sec = psd_worker_now(worker);
	for (unsigned w = 0; w < worker->host.layout->workers; w++)
		gathering->next[w] = next_sent(worker, w, 0);
	*job = (struct psd_job){.worker = worker,
				.task.iteration = iteration,
				.queued_sec = psd_socket_now_sec(),
				.is_pause = true,
				.is_gathering = true};
	jobs->n_queued++;
	psd_lane_start(&jobs->lane, gather_job, job);
	return true;
}

void psd_worker_begin_gathering(struct psd_worker *worker)
{
	worker->gathering.state = PSD_GATHERING_GOES_ON;
	send_next(worker);
}

void psd_worker_end_gathering(struct psd_worker *worker)
{
	worker->gathering.state = PSD_GATHERING_NONE;
	psd_whole_close(&worker->host);
}

/* ---- messages ---- */

bool psd_worker_is_of_gathering(const struct psd_worker *worker, const struct psd_wire_head *head)
{
	return psd_host_keeps_parts(&worker->host) && head->kind == PSD_WIRE_DATA && head->op == operation(worker);
}

bool psd_worker_expects_part(const struct psd_worker *worker, unsigned peer, const struct psd_wire_head *head)
{
	const unsigned n_items = worker->host.plan->n_items;
	const bool is_repeated =
		head->iteration == worker->gathering.iteration && head->part < worker->gathering.next[peer];

	return worker->host.self == 0 && !is_repeated && psd_layout_is_worker(worker->host.layout, peer) &&
	       head->part < n_items && head->iteration <= worker->host.options->n_iterations &&
	       head->iteration >= psd_interpreter_iteration(&worker->interpreter, 0) && head->length_bytes > 0 &&
	       head->length_bytes == psd_whole_sent(&worker->host, head->part, peer).elements * sizeof(float);
}

bool psd_worker_takes_part(const struct psd_worker *worker, unsigned peer, const struct psd_wire_head *head,
			   struct psd_destination *destination)
{
	const struct psd_gathering *gathering = &worker->gathering;

	if (gathering->state != PSD_GATHERING_GOES_ON || head->iteration != gathering->iteration ||
	    head->part != gathering->next[peer])
		return false;
	destination->segments[0] =
		(struct iovec){psd_whole_at(&worker->host, head->part, psd_whole_sent(&worker->host, head->part, peer)),
			       head->length_bytes};
	destination->n_segments = 1;
	return true;
}

void psd_worker_part_arrived(struct psd_worker *worker, unsigned peer)
{
	worker->gathering.next[peer] = next_sent(worker, peer, worker->gathering.next[peer] + 1);
}

void psd_worker_part_left(struct psd_worker *worker)
{
	worker->gathering.is_sending = false;
	send_next(worker);
}
