/* SimGrid's engine with hosts and links, which are either generated or read from a user's file. Private to sim/,
 * C++. */
#ifndef PSD_SIM_BACKEND_HPP
#define PSD_SIM_BACKEND_HPP

#include <unordered_map>
#include <vector>

#include <simgrid/s4u/Comm.hpp>
#include <simgrid/s4u/Engine.hpp>
#include <simgrid/s4u/Host.hpp>
#include <simgrid/s4u/Link.hpp>
#include <simgrid/s4u/NetZone.hpp>

extern "C" {
#include "engine/scenario/scenario.h"
#include "sim/network/platform.h"
}

namespace psd
{

struct Backend {
	struct psd_platform platform;
	simgrid::s4u::Engine *engine;		 /* SimGrid's engine */
	simgrid::kernel::resource::Model *model; /* SimGrid's network model */
	std::vector<simgrid::s4u::Host *> hosts; /* by number */
	std::vector<simgrid::s4u::Link *> links; /* by number; empty for a user's platform */
	/* link that is always down: a transfer that begins on it fails at once; NULL for a user's platform */
	simgrid::s4u::Link *broken;
	/* while true, all new routes of a generated platform contain the broken link, so that a transfer begins on it
	 * and fails at once */
	bool is_way_broken;
	/* network of classes: numbers of links and of flows; 0: the platform has its own hosts and links */
	unsigned n_class_links, n_class_flows;
	/* network of classes: way of the flow that begins, each link as often as it has equal flows */
	std::vector<simgrid::s4u::Link *> way;
	std::unordered_map<const simgrid::s4u::Link *, double>
		latencies_sec; /* latency of each link in a user's file, seconds */
};

/* Starts SimGrid with backend->platform and fills the other members. *backend must exist at the same address until the
 * process ends. PSD_EINVAL, PSD_EFILE: the user's file cannot be used; the text is one line. PSD_ERUN: SimGrid has
 * failed. */
enum psd_status open_backend(Backend *backend, struct psd_error *err);
/* Returns the links of the route from one host to another; none if a user's platform has no such route, or a route
 * without links. *latency_sec becomes the latency of the route that does not belong to a link. */
std::vector<simgrid::s4u::Link *> find_way(const Backend *backend, unsigned from, unsigned to, double *latency_sec);
/* Returns the sum of the latencies of the links of a route in a user's file, seconds. */
double links_latency_sec(const Backend *backend, unsigned from, unsigned to);

} // namespace psd

#endif
