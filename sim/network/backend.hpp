/* SimGrid's engine with hosts and links, either generated or from a user's file. Private to sim/, C++. */
#ifndef PSD_SIM_BACKEND_HPP
#define PSD_SIM_BACKEND_HPP

#include <unordered_map>
#include <vector>

#include <simgrid/s4u.hpp>

extern "C" {
#include "engine/scenario/scenario.h"
#include "sim/network/platform.h"
}

namespace psd
{

struct Backend {
	struct psd_platform platform;
	simgrid::s4u::Engine *engine;
	simgrid::kernel::resource::Model *model; /* SimGrid's network model */
	std::vector<simgrid::s4u::Host *> hosts; /* by number */
	std::vector<simgrid::s4u::Link *> links; /* by number; empty for a user's platform */
	simgrid::s4u::Link *broken;		 /* a link that is down; NULL for a user's platform */
	bool is_way_broken;			 /* true: all routes of a generated platform take the broken link */
	std::unordered_map<const simgrid::s4u::Link *, double>
		latencies_sec; /* latency of each link of a user's file */
};

/* Starts SimGrid on backend->platform and fills the rest. The backend must keep its address until the process ends.
 * Returns PSD_EINVAL or PSD_EFILE for a bad file, in one line, or PSD_ERUN if SimGrid fails. */
enum psd_status open_backend(Backend *backend, struct psd_error *err);
/* Returns the links from one host to another. An empty route means that a user's platform has none, or that it has one
 * without links. *latency_sec is what SimGrid adds to the links' latencies. */
std::vector<simgrid::s4u::Link *> find_way(const Backend *backend, unsigned from, unsigned to, double *latency_sec);
/* Sum of the latencies that a user's file gives the links of a route. */
double links_latency_sec(const Backend *backend, unsigned from, unsigned to);

} // namespace psd

#endif
