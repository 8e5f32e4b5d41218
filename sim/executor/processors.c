/* Work on processor cores that layers, sums and the sending and receiving of messages share, and on devices that
 * all-reduces slow down. */
#include <math.h>
#include <stdlib.h>

#include "sim/executor/simulation.h"

bool psd_sim_has_processors(const struct psd_simulation *sim)
{
	return sim->simulated->plan.machine.cores > 0;
}

enum psd_status psd_sim_open_processors(struct psd_simulation *sim, struct psd_error *err)
{
	const unsigned n_hosts = psd_layout_hosts(sim->layout);

	if (!psd_sim_has_processors(sim))
		return PSD_OK;
	sim->places = calloc(n_hosts, sizeof(*sim->places));
	sim->pools = calloc(n_hosts, sizeof(*sim->pools));
	sim->timers_sec = calloc(n_hosts, sizeof(*sim->timers_sec));
	sim->waits_sec = calloc(n_hosts, sizeof(*sim->waits_sec));
	if (!sim->places || !sim->pools || !sim->timers_sec || !sim->waits_sec)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for the processors of %u hosts",
				     n_hosts);
	sim->n_pools = psd_pool_fill_places(sim->places, sim->layout, &sim->simulated->plan.machine);
	for (unsigned p = 0; p < sim->n_pools; p++)
		sim->timers_sec[p] = INFINITY;
	for (unsigned h = 0; h < n_hosts; h++)
		psd_pool_init(&sim->pools[sim->places[h].pool], sim->places[h].cores);
	return PSD_OK;
}

void psd_sim_close_processors(struct psd_simulation *sim)
{
	for (unsigned p = 0; p < sim->n_pools; p++)
		psd_pool_release(&sim->pools[p]);
	free(sim->pools);
	free(sim->timers_sec);
	free(sim->waits_sec);
	free(sim->places);
}

/* A timer cannot be cancelled: one that fires too early finds no work to end and sets the next timer. */
static void set_timer(struct psd_simulation *sim, unsigned pool)
{
	const double next_sec = psd_pool_next_sec(&sim->pools[pool]);

	if (next_sec >= sim->timers_sec[pool])
		return;
	sim->timers_sec[pool] = next_sec;
	psd_network_timer(fmax(0.0, next_sec - psd_network_now_sec()), psd_event_tag(PSD_WAKE_POOL, pool, 0));
}

void psd_sim_process(struct psd_simulation *sim, unsigned host, double sec, double most_cores, uint64_t tag)
{
	const unsigned pool = sim->places[host].pool;

	if (!psd_pool_add(&sim->pools[pool], psd_network_now_sec(), sec, most_cores, 1, tag)) {
		sim->is_out_of_memory = true;
		psd_network_stop();
		return;
	}
	set_timer(sim, pool);
}

/* An older timer may fire first; only the one that was set last counts. */
void psd_sim_wake_processors(struct psd_simulation *sim, unsigned pool)
{
	const double now_sec = psd_network_now_sec(), clock_error = 1e-14;
	uint64_t tag;

	if (sim->timers_sec[pool] <= now_sec * (1 + clock_error))
		sim->timers_sec[pool] = INFINITY;
	while (psd_pool_take_ended(&sim->pools[pool], now_sec, &tag))
		psd_sim_wake(sim, tag);
	set_timer(sim, pool);
}

struct psd_socket_work psd_sim_socket_work(const struct psd_simulation *sim, unsigned from, unsigned to, uint64_t bytes,
					   double n_messages)
{
	const struct psd_plan *plan = &sim->simulated->plan;
	const bool is_near = psd_layout_node(sim->layout, from) == psd_layout_node(sim->layout, to);

	return psd_cost_socket_work(&plan->machine, &plan->rates, (double)bytes, n_messages, is_near);
}

/* ---- devices that compute during all-reduces ---- */

enum psd_status psd_sim_open_device_shares(struct psd_simulation *sim, struct psd_error *err)
{
	const unsigned n_hosts = sim->n_hosts;
	const double share_ratio = sim->simulated->system->host.device_share_ratio;

	if (share_ratio == 0.0)
		return PSD_OK;
	sim->device_shares = calloc(n_hosts, sizeof(*sim->device_shares));
	if (!sim->device_shares)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for the devices of %u hosts",
				     n_hosts);
	for (unsigned h = 0; h < n_hosts; h++)
		psd_device_share_init(&sim->device_shares[h], share_ratio);
	return PSD_OK;
}

static void set_alarm(struct psd_simulation *sim, unsigned host)
{
	const double sec = psd_device_share_alarm(&sim->device_shares[host], psd_network_now_sec());

	if (isfinite(sec))
		psd_network_timer(sec, psd_event_tag(PSD_WAKE_WORK, host, PSD_RESOURCE_DEVICE));
}

void psd_sim_begin_device_share(struct psd_simulation *sim, unsigned host, double sec)
{
	psd_interpreter_worked(&sim->interpreter, host, sec);
	psd_device_share_begin(&sim->device_shares[host], psd_network_now_sec(), sec);
	set_alarm(sim, host);
}

void psd_sim_set_beside(struct psd_simulation *sim, unsigned host, bool is_beside)
{
	if (!sim->device_shares)
		return;
	psd_device_share_set_beside(&sim->device_shares[host], psd_network_now_sec(), is_beside);
	set_alarm(sim, host);
}

bool psd_sim_work_ends(struct psd_simulation *sim, unsigned host, enum psd_resource resource)
{
	if (resource == PSD_RESOURCE_DEVICE && sim->waits_sec && sim->waits_sec[host] > 0.0) {
		psd_network_timer(sim->waits_sec[host], psd_event_tag(PSD_WAKE_WORK, host, resource));
		sim->waits_sec[host] = 0.0;
		return false;
	}
	if (resource != PSD_RESOURCE_DEVICE || !sim->device_shares)
		return true;
	if (psd_device_share_ends(&sim->device_shares[host], psd_network_now_sec()))
		return true;
	set_alarm(sim, host);
	return false;
}
