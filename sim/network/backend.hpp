/* What the network runs on: SimGrid's engine, its hosts and their links, generated or from a user's file. Private to
 * sim/, C++. */
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
	simgrid::kernel::resource::Model *model; /* of the network */
	std::vector<simgrid::s4u::Host *> hosts; /* by number */
	std::vector<simgrid::s4u::Link *> links; /* of a generated platform, by number */
	simgrid::s4u::Link *broken;		 /* of a generated platform: a link that is down */
	bool is_way_broken; /* all ways of a generated platform take the broken link for the moment */
	std::unordered_map<const simgrid::s4u::Link *, double>
		latencies_sec; /* of a user's links, as the file has them */
};

/* Starts SimGrid on backend->platform and fills the rest; backend must stay where it is until the process ends.
 * PSD_EINVAL, PSD_EFILE: the user's file, in one line; PSD_ERUN: SimGrid gave up. */
enum psd_status open_backend(Backend *backend, struct psd_error *err);
/* The links from one host to another. Empty: no way (a user's platform need not connect all hosts), or one without
 * links but with *latency_sec, what SimGrid itself counts besides the links. */
std::vector<simgrid::s4u::Link *> find_way(const Backend *backend, unsigned from, unsigned to, double *latency_sec);
/* Sum of the links' latencies on a user's platform, as the file has them. */
double links_latency_sec(const Backend *backend, unsigned from, unsigned to);

} // namespace psd

#endif
