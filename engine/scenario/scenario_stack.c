/* The stack of a system: the costs that neither the system nor the cluster names. Those of devices follow from the
 * table of devices. */
#include <string.h>

#include "engine/scenario/device.h"
#include "engine/scenario/scenario_keys.h"
#include "engine/scenario/stack.h"

/* Passes over memory for each byte of a gradient: an update with momentum reads gradient, velocity and parameter, and
 * writes the latter two; a sum reads two values and writes one. */
enum { PASSES_OF_UPDATE = 5, PASSES_OF_SUM = 3 };

static const double launch_sec = 10e-6; /* time of a kernel's launch: arXiv 1902.06855 has 30 us for three or four */

static bool has_launches(const struct psd_scenario *scenario, const struct psd_stack_row *stack,
			 const struct psd_device_row *device)
{
	return !stack->frees_device && scenario->machine.cores == 0 && !(device && device->shares_memory);
}

/* The device that computes layers; NULL: a profile has their seconds. */
static const struct psd_device_row *device_of(const struct psd_scenario *scenario, const struct psd_system *system)
{
	const char *name = psd_scenario_workload(scenario, system).device_name;

	return name ? psd_device_find(name) : NULL;
}

static bool has_processors(const struct psd_scenario *scenario, const struct psd_device_row *device)
{
	return scenario->machine.cores > 0 || (device && device->shares_memory);
}

static const char *default_name(const struct psd_scenario *scenario, const struct psd_system *system)
{
	if (system->sync < PSD_SYNC_ALL_REDUCE || has_processors(scenario, device_of(scenario, system)))
		return "psd";
	if (system->sync == PSD_SYNC_LIBRARY) /* the first one */
		return "mpi";
	return scenario->network.fabric == PSD_FABRIC_INFINIBAND ? "nccl-rdma" : "nccl-tcp";
}

static const struct psd_stack_row *stack_of(const struct psd_scenario *scenario, const struct psd_system *system)
{
	const char *name = system->stack_name ? system->stack_name : scenario->stack_name;

	return psd_stack_find(name ? name : default_name(scenario, system));
}

/* Measured samples per second, and a share of the peak, contain a worker's own updates. */
static void add_device(struct psd_host_costs *host, const struct psd_stack_row *stack,
		       const struct psd_device_row *device, bool has_updates)
{
	const double memory_bps = device ? device->memory_bps * device->memory_efficiency_ratio : 0.0;

	if (stack->frees_device)
		return;
	if (host->convert_bps == 0.0)
		host->convert_bps = memory_bps;
	if (host->update_bps == 0.0 && !has_updates)
		host->update_bps = memory_bps / PASSES_OF_UPDATE;
	if (stack->is_on_device)
		host->reduce_bps = memory_bps / PASSES_OF_SUM;
	if (host->tensor_sec == 0.0 && !(device && device->shares_memory))
		host->tensor_sec = launch_sec;
}

/* A user's platform has its own links; on a machine with cores all work shares these. */
static void leave_out(struct psd_host_costs *host, const struct psd_scenario *scenario)
{
	if (scenario->network.topology == PSD_TOPOLOGY_PLATFORM)
		host->transport_bps = host->incast_ratio = host->streams_ratio = 0.0;
	if (scenario->machine.cores > 0)
		host->device_share_ratio = host->tensor_sec = 0.0;
}

void psd_scenario_settle_stack(const struct psd_scenario *scenario, struct psd_system *system,
			       const struct psd_node *entry)
{
	system->stack = stack_of(scenario, system);
	psd_scenario_settle_device(scenario, system, entry);
}

void psd_scenario_settle_device(const struct psd_scenario *scenario, struct psd_system *system,
				const struct psd_node *entry)
{
	const struct psd_node *const cluster = psd_node_child(scenario->root, "cluster");
	const struct psd_node *const said[] = {psd_node_child(entry, "host"), psd_node_child(cluster, "host")};
	const struct psd_stack_row *stack = system->stack;
	const struct psd_workload workload = psd_scenario_workload(scenario, system);
	struct psd_host_costs host = stack->host;

	add_device(&host, stack, device_of(scenario, system),
		   workload.samples_per_sec > 0.0 || workload.mfu_ratio > 0.0);
	leave_out(&host, scenario);
	psd_schema_fill(&system->host, &host, &psd_scenario_host, said, 2);
	system->host.launch_sec = has_launches(scenario, stack, device_of(scenario, system)) ? launch_sec : 0.0;
}
