/* The resources of an estimate's hosts: processors, which all hosts of a machine may share, and devices, of which
 * all-reduces may take a share. */
#include <math.h>
#include <stdlib.h>

#include "engine/estimate/estimate_parts.h"
#include "engine/program/event_tag.h"

/* ---- events ---- */

enum psd_status psd_estimate_out_of_memory(struct psd_error *err)
{
	return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for an estimate");
}

void psd_estimate_push(struct psd_estimate *estimate, double at_sec, uint64_t tag)
{
	if (!psd_heap_push(&estimate->events, (struct psd_heap_entry){at_sec, estimate->next_seq++, tag}))
		estimate->is_out_of_memory = true;
}

/* ---- processors ---- */

/* Returns the smallest number of cores of a host in the class: this host determines the time of an iteration. */
static double least_cores(const struct psd_estimate *estimate, unsigned class, const struct psd_pool_place places[])
{
	const unsigned n_hosts = psd_layout_hosts(psd_estimate_layout(estimate));
	double cores = INFINITY;

	for (unsigned h = 0; h < n_hosts; h++)
		if (estimate->classes.class_of[h] == class)
			cores = fmin(cores, places[h].cores);
	return cores;
}

/* A representative counts for all members of its class that share its cores. All classes that share a machine's cores
 * have one pool: the representatives of equal machines are on the last of these. */
static void give_pool(struct psd_estimate *estimate, unsigned c, const struct psd_pool_place places[])
{
	const unsigned n_hosts = psd_layout_hosts(psd_estimate_layout(estimate));
	const struct psd_classes *classes = &estimate->classes;
	const struct psd_pool_place *place = &places[classes->of[c].representative];
	struct psd_estimate_share *share = &estimate->shares[c];

	*share = (struct psd_estimate_share){.pool = estimate->n_pools, .shares_cores = place->hosts > 1};
	for (unsigned h = 0; h < n_hosts; h++)
		share->copies += classes->class_of[h] == c && places[h].pool == place->pool;
	for (unsigned b = 0; b < c; b++)
		if (places[classes->of[b].representative].pool == place->pool)
			share->pool = estimate->shares[b].pool;
	if (share->pool == estimate->n_pools)
		psd_pool_init(&estimate->pools[estimate->n_pools++], least_cores(estimate, c, places));
}

static enum psd_status make_pools(struct psd_estimate *estimate, struct psd_error *err)
{
	const struct psd_plan *plan = estimate->program->plan;
	struct psd_pool_place *places;

	if (!plan->machine.cores)
		return PSD_OK;
	places = calloc(psd_layout_hosts(&plan->layout), sizeof(*places));
	estimate->pools = calloc(estimate->classes.n, sizeof(*estimate->pools));
	estimate->shares = calloc(estimate->classes.n, sizeof(*estimate->shares));
	if (!places || !estimate->pools || !estimate->shares) {
		free(places);
		return psd_estimate_out_of_memory(err);
	}
	psd_pool_fill_places(places, &plan->layout, &plan->machine);
	for (unsigned c = 0; c < estimate->classes.n; c++)
		give_pool(estimate, c, places);
	free(places);
	return PSD_OK;
}

void psd_estimate_process(struct psd_estimate *estimate, unsigned class, double sec, double most_cores, uint64_t tag)
{
	const struct psd_estimate_share *share = &estimate->shares[class];

	if (!psd_pool_add(&estimate->pools[share->pool], estimate->now_sec, sec, most_cores, share->copies, tag))
		estimate->is_out_of_memory = true;
}

struct psd_socket_work psd_estimate_socket_work(const struct psd_estimate *estimate, double bytes, double n_messages,
						bool is_near)
{
	const struct psd_plan *plan = estimate->program->plan;

	return psd_cost_socket_work(&plan->machine, &plan->rates, bytes, n_messages, is_near);
}

/* ---- devices beside all-reduces ---- */

static enum psd_status make_devices(struct psd_estimate *estimate, struct psd_error *err)
{
	if (estimate->program->plan->system->host.device_share_ratio == 0.0)
		return PSD_OK;
	estimate->devices = calloc(estimate->classes.n, sizeof(*estimate->devices));
	return estimate->devices ? PSD_OK : psd_estimate_out_of_memory(err);
}

static void set_alarm(struct psd_estimate *estimate, unsigned class)
{
	const double sec = psd_device_share_alarm(&estimate->devices[class], estimate->now_sec);

	if (isfinite(sec))
		psd_estimate_push(estimate, estimate->now_sec + sec,
				  psd_event_tag(PSD_ESTIMATE_FINISHED, class, PSD_RESOURCE_DEVICE));
}

static void begin_on_device(struct psd_estimate *estimate, unsigned class, double sec)
{
	psd_interpreter_worked(&estimate->interpreter, class, sec);
	psd_device_share_begin(&estimate->devices[class], estimate->now_sec, sec);
	set_alarm(estimate, class);
}

void psd_estimate_set_beside(struct psd_estimate *estimate, unsigned class, bool is_beside)
{
	if (!estimate->devices)
		return;
	psd_device_share_set_beside(&estimate->devices[class], estimate->now_sec, is_beside);
	set_alarm(estimate, class);
}

/* ---- operations ---- */
void psd_estimate_work(void *context, unsigned host, enum psd_resource resource, struct psd_task task, double sec)
{
	struct psd_estimate *estimate = context;
	const struct psd_program *program = estimate->program;
	const unsigned of_layout = estimate->classes.of[host].representative;
	const double cores = estimate->pools ? psd_op_cores(&program->ops[task.op], &program->plan->machine) : 0.0;
	const double busy_sec = sec * psd_program_busy_ratio(program, task.op, of_layout);
	const uint64_t tag = psd_event_tag(PSD_ESTIMATE_FINISHED, host, resource);

	if (resource == PSD_RESOURCE_DEVICE && cores > 0.0) {
		psd_interpreter_worked(&estimate->interpreter, host, sec);
		estimate->shares[host].wait_sec = sec - busy_sec;
	}
	if (cores > 0.0)
		psd_estimate_process(estimate, host, busy_sec * cores, cores, tag);
	else if (resource == PSD_RESOURCE_DEVICE && estimate->devices)
		begin_on_device(estimate, host, sec);
	else
		psd_estimate_push(estimate, estimate->now_sec + sec, tag);
}

bool psd_estimate_work_ends(struct psd_estimate *estimate, unsigned class, enum psd_resource resource)
{
	struct psd_estimate_share *share = estimate->shares ? &estimate->shares[class] : NULL;

	if (resource == PSD_RESOURCE_DEVICE && share && share->wait_sec > 0.0) {
		psd_estimate_push(estimate, estimate->now_sec + share->wait_sec,
				  psd_event_tag(PSD_ESTIMATE_FINISHED, class, resource));
		share->wait_sec = 0.0;
		return false;
	}
	if (resource != PSD_RESOURCE_DEVICE || !estimate->devices)
		return true;
	if (psd_device_share_ends(&estimate->devices[class], estimate->now_sec))
		return true;
	set_alarm(estimate, class);
	return false;
}

struct psd_pool *psd_estimate_first_pool(struct psd_estimate *estimate, double *next_sec)
{
	struct psd_pool *first = NULL;

	*next_sec = INFINITY;
	for (unsigned p = 0; p < estimate->n_pools; p++) {
		const double sec = psd_pool_next_sec(&estimate->pools[p]);

		if (sec < *next_sec) {
			*next_sec = sec;
			first = &estimate->pools[p];
		}
	}
	return first;
}

enum psd_status psd_estimate_open_work(struct psd_estimate *estimate, struct psd_error *err)
{
	PSD_TRY(make_pools(estimate, err));
	return make_devices(estimate, err);
}

void psd_estimate_begin_work(struct psd_estimate *estimate)
{
	const double share_ratio = estimate->program->plan->system->host.device_share_ratio;

	for (unsigned p = 0; p < estimate->n_pools; p++) {
		const double cores = estimate->pools[p].cores;

		psd_pool_release(&estimate->pools[p]);
		psd_pool_init(&estimate->pools[p], cores);
	}
	for (unsigned c = 0; estimate->devices && c < estimate->classes.n; c++)
		psd_device_share_init(&estimate->devices[c], share_ratio);
}

void psd_estimate_close_work(struct psd_estimate *estimate)
{
	for (unsigned p = 0; p < estimate->n_pools; p++)
		psd_pool_release(&estimate->pools[p]);
	free(estimate->pools);
	free(estimate->shares);
	free(estimate->devices);
}
