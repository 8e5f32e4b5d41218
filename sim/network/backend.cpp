/* Starts SimGrid, gives it a generated platform, or loads and checks a user's. Routes of a generated platform come from
 * platform.c through a zone class of our own: nested star zones cannot choose a spine by the receiver, and are slower.
 * Links never keep their latencies. Refuses to start any transfer. */
#include "sim/network/backend.hpp"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <string>

#include <simgrid/kernel/routing/NetPoint.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <xbt/log.h>

namespace s4u = simgrid::s4u;
namespace routing = simgrid::kernel::routing;
using simgrid::kernel::resource::Model;

namespace psd
{

namespace
{

/* ---- routes of a generated platform ---- */

struct Zone : routing::NetZoneImpl {
	const Backend *backend;

	explicit Zone(const Backend *owner) : NetZoneImpl("world"), backend(owner)
	{
	}
	void get_local_route(const routing::NetPoint *from, const routing::NetPoint *to, routing::Route *into,
			     double * /* latency of the route: SimGrid's links have none */) override
	{
		unsigned links[PSD_ROUTE_LINKS], n_links;

		if (backend->is_way_broken) {
			into->link_list_.push_back(backend->broken->get_impl());
			return;
		}
		if (backend->n_class_flows > 0) {
			for (s4u::Link *link : backend->way)
				into->link_list_.push_back(link->get_impl());
			return;
		}
		/* hosts are the only netpoints of this zone, created in the order of their numbers */
		n_links = psd_platform_route(&backend->platform, unsigned(from->id()), unsigned(to->id()), links);
		into->link_list_.reserve(n_links);
		for (unsigned i = 0; i < n_links; i++)
			into->link_list_.push_back(backend->links[links[i]]->get_impl());
	}
};

/* Makes a pair of hosts for each flow. Links get their rates later. */
void build_classes(Backend *backend)
{
	auto *zone = new Zone(backend); /* SimGrid owns it */

	for (unsigned host = 0; host < 2 * backend->n_class_flows; host++)
		backend->hosts.push_back(zone->create_host("h" + std::to_string(host), {1e9}));
	for (unsigned link = 0; link < backend->n_class_links; link++)
		backend->links.push_back(zone->create_link("l" + std::to_string(link), {1}));
	backend->broken = zone->create_link("broken", {1});
	backend->broken->turn_off();
}

void build_platform(Backend *backend)
{
	const struct psd_platform *platform = &backend->platform;
	auto *zone = new Zone(backend); /* SimGrid owns it */
	char name[PSD_LINK_NAME];

	for (unsigned host = 0; host < psd_platform_hosts(platform); host++) {
		psd_platform_host_name(platform, host, name);
		backend->hosts.push_back(zone->create_host(name, {1e9}));
	}
	for (unsigned link = 0; link < psd_platform_links(platform); link++) {
		psd_platform_link_name(platform, link, name);
		backend->links.push_back(zone->create_link(name, {psd_platform_link_bps(platform, link) / 8}));
	}
	backend->broken = zone->create_link("broken", {1});
	backend->broken->turn_off();
}

/* ---- a user's platform ---- */

enum psd_status check_host(const s4u::Host *host, struct psd_place at, struct psd_error *err)
{
	const double speed = host->get_speed();

	if (!(speed > 0) || !std::isfinite(speed))
		return psd_error_set(err, PSD_EINVAL, at, "host '%.100s' has speed %g, must be above 0",
				     host->get_cname(), speed);
	return PSD_OK;
}

enum psd_status check_link(const s4u::Link *link, struct psd_place at, struct psd_error *err)
{
	const double bandwidth = link->get_bandwidth(), latency_sec = link->get_latency();

	if (!(bandwidth > 0) || !std::isfinite(bandwidth))
		return psd_error_set(err, PSD_EINVAL, at, "link '%.100s' has bandwidth %g Bps, must be above 0",
				     link->get_cname(), bandwidth);
	if (!(latency_sec >= 0) || !std::isfinite(latency_sec))
		return psd_error_set(err, PSD_EINVAL, at, "link '%.100s' has latency %g s, must be 0 or more",
				     link->get_cname(), latency_sec);
	return PSD_OK;
}

enum psd_status check_platform(const Backend *backend, struct psd_error *err)
{
	const struct psd_place at = {backend->platform.path, 0, 0};
	const unsigned needed = psd_platform_hosts(&backend->platform);
	enum psd_status status;

	if (backend->hosts.size() < needed)
		return psd_error_set(err, PSD_EINVAL, at, "platform has %zu hosts, the scenario needs %u",
				     backend->hosts.size(), needed);
	for (const s4u::Host *host : backend->hosts)
		if ((status = check_host(host, at, err)) != PSD_OK)
			return status;
	for (const s4u::Link *link : backend->engine->get_all_links())
		if ((status = check_link(link, at, err)) != PSD_OK)
			return status;
	return PSD_OK;
}

/* Removes latencies from links: CM02 would share a link by the round-trip times of its flows instead of evenly. */
void take_latencies(Backend *backend)
{
	for (s4u::Link *link : backend->engine->get_all_links()) {
		const double latency_sec = link->get_latency();

		if (latency_sec > 0) {
			backend->latencies_sec[link] = latency_sec;
			link->set_latency(0);
		}
	}
}

bool ends_with(const std::string &text, const std::string &end)
{
	return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

enum psd_status load_platform(Backend *backend, struct psd_error *err)
{
	const std::string path = backend->platform.path;
	const struct psd_place at = {backend->platform.path, 0, 0};
	FILE *file = fopen(path.c_str(), "r");
	const bool is_readable =
		file && (fgetc(file) != EOF || !ferror(file)); /* a folder can be opened, but not read */
	enum psd_status status;

	if (file)
		fclose(file);
	if (!is_readable)
		return psd_error_set(err, PSD_EFILE, at, "cannot read this platform");
	if (ends_with(path, ".so") || ends_with(path, ".dylib")) /* SimGrid would execute its code */
		return psd_error_set(err, PSD_EINVAL, at, "a platform must be SimGrid XML");
	try {
		backend->engine->load_platform(path);
		if (!backend->engine->get_netzone_root())
			return psd_error_set(err, PSD_EINVAL, at, "the platform has no zone, must have one");
		backend->hosts = backend->engine->get_all_hosts();
		std::sort(backend->hosts.begin(), backend->hosts.end(), [](const s4u::Host *a, const s4u::Host *b) {
			return psd_platform_compare_names(a->get_cname(), b->get_cname()) < 0;
		});
		status = check_platform(backend, err);
		if (status == PSD_OK)
			take_latencies(backend);
	} catch (const std::exception &failure) {
		status = psd_platform_refuse(backend->platform.path, failure.what(), err);
	}
	return status;
}

/* ---- starting ---- */

/* Keeps our signal handlers: SimGrid installs its own, and the one for SIGINT lists all actors. */
struct SignalKeeper {
	static constexpr int signals[] = {SIGINT, SIGSEGV, SIGBUS};
	struct sigaction actions[3];

	SignalKeeper()
	{
		for (int i = 0; i < 3; i++)
			sigaction(signals[i], nullptr, &actions[i]);
	}
	~SignalKeeper()
	{
		for (int i = 0; i < 3; i++)
			sigaction(signals[i], &actions[i], nullptr);
	}
	SignalKeeper(const SignalKeeper &) = delete;
	SignalKeeper &operator=(const SignalKeeper &) = delete;
};

/* CM02 without cross traffic and window limits is plain max-min sharing. The defaults add 4 % and cap long fast routes.
 * These options win over a <config> in the platform. */
void start_simgrid(Backend *backend)
{
	static std::string words[] = {"psd-sim", "--cfg=network/model:CM02", "--cfg=network/crosstraffic:no",
				      "--cfg=network/TCP-gamma:1e15", "--cfg=debug/clean-atexit:no"};
	static char *argv[] = {&words[0][0], &words[1][0], &words[2][0], &words[3][0], &words[4][0], nullptr};
	const SignalKeeper keeper;
	int argc = 5;

	xbt_log_control_set("root.thres:critical");
	xbt_log_control_set(
		/* the message before an abort() is all that is left, so nothing else is printed with it */
		"root.fmt:%m%n");
	backend->engine = new s4u::Engine(&argc, argv);
	if (backend->platform.ends_apart)
		s4u::Engine::set_config("surf/precision:1e-12");
}

void find_model(Backend *backend)
{
	for (Model *model : backend->engine->get_all_models())
		if (model->get_name() == "Network_CM02")
			backend->model = model;
	if (!backend->model)
		throw std::runtime_error("SimGrid has no CM02 network model");
}

} // namespace

enum psd_status open_backend(Backend *backend, struct psd_error *err)
{
	enum psd_status status = PSD_OK;

	try {
		start_simgrid(backend);
		if (backend->n_class_flows > 0)
			build_classes(backend);
		else if (backend->platform.topology == PSD_TOPOLOGY_PLATFORM)
			status = load_platform(backend, err);
		else
			build_platform(backend);
		if (status != PSD_OK)
			return status;
		backend->engine->seal_platform();
		find_model(backend);
	} catch (const std::exception &failure) {
		return psd_error_set(err, PSD_ERUN, psd_place{nullptr, 0, 0}, "SimGrid: %.500s", failure.what());
	}
	return PSD_OK;
}

std::vector<s4u::Link *> find_way(const Backend *backend, unsigned from, unsigned to, double *latency_sec)
{
	std::vector<s4u::Link *> links;

	*latency_sec = 0;
	try {
		backend->hosts[from]->route_to(backend->hosts[to], links, latency_sec);
	} catch (const std::exception &) {
		links.clear();
	}
	return links;
}

double links_latency_sec(const Backend *backend, unsigned from, unsigned to)
{
	double unused_sec, latency_sec = 0;

	for (const s4u::Link *link : find_way(backend, from, to, &unused_sec)) {
		const auto found = backend->latencies_sec.find(link);

		latency_sec += found == backend->latencies_sec.end() ? 0 : found->second;
	}
	return latency_sec;
}

} // namespace psd
