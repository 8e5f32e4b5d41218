/* Implements network.h by SimGrid's S4U interface, without actors: all code runs in callbacks on SimGrid's main thread.
 * Refuses to know the purpose of a transfer. Two tricks make it fast.  Comms are reused and never stay on SimGrid's
 * list. SimGrid 3.32 puts each new host-to-host comm on one list and searches that whole list when the comm ends, so n
 * comms in flight cost n steps each. Resetting the state of an ended comm and starting it again keeps it off the list.
 * A new comm is first started over a link that is down, which removes it while the list is short. Comms are kept by
 * pair of hosts, because a comm cannot change its ends. Timers are a heap of ours behind one kernel timer, so that all
 * events at one date are one event of SimGrid's.  CPU seconds of a whole process on one core; in brackets with a new
 * comm for each transfer and the same timers. Ring of 512 hosts step by step, 523,264 transfers: 0.5 [1.5], 33 MB; the
 * same with jitter, so that no two transfers end together: 1.0. Ring of 4,096 as one flow each: 0.09, 47 MB. 467 rings
 * of 256 flows in sequence: 0.14. All of 256 hosts to all, 65,280 flows at once: 0.4 [13.7], 135 MB; of 512: 1.8, 450
 * MB. */
#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <queue>
#include <set>
#include <unordered_map>
#include <vector>

#include <simgrid/kernel/Timer.hpp>

#include "sim/network/backend.hpp"

namespace s4u = simgrid::s4u;
using simgrid::kernel::timer::Timer;

namespace
{

// Transfers, of about a KiB
constexpr uint64_t MOST_IN_CACHE = 2000;
constexpr uint64_t MOST_IN_PAGES = 30000; // known to the processor

struct Transfer;

/* Facts about a pair of hosts. It is never freed: transfers point to it. */
struct Pair {
	Transfer *idle = nullptr;
	double latency_sec = -1; /* below 0: unknown yet */
	bool has_way = false;
};

struct Transfer {
	s4u::CommPtr comm;
	Pair *pair;
	Transfer *next_idle;
	unsigned from, to;
	uint64_t tag, seq;
	bool is_woken; /* true: the end of the transfer was reported */
};

struct Alarm {
	double date_sec;
	uint64_t seq, tag;
	bool operator<(const Alarm &other) const /* std::priority_queue puts the largest on top */
	{
		return date_sec != other.date_sec ? date_sec > other.date_sec : seq > other.seq;
	}
};

/* A link whose capacity is scaled: bytes per second at the start, and the share that SimGrid's solver asks for. */
struct ScaledLink {
	double start_bandwidth;
	double ratio;
};

struct Network {
	psd::Backend backend;
	psd_wake_fn wake;
	void *context;
	std::unordered_map<s4u::Link *, ScaledLink> scaled;
	std::unordered_map<uint64_t, Pair> pairs;
	std::deque<Transfer> transfers; /* all transfers, at fixed addresses */
	std::vector<Transfer *> ended;
	std::unordered_map<const s4u::Link *, unsigned> numbers;
	std::vector<s4u::Link *> seen; /* links of a user's platform, by the numbers of psd_network_way() */
	std::priority_queue<Alarm> alarms;
	Timer *armed;
	Transfer *ending;		  /* transfer that SimGrid still works on: not free for reuse */
	std::set<s4u::Activity *> vetoes; /* SimGrid's main loop ends if this is not empty */
	s4u::CommPtr veto;
	uint64_t seq, n_in_flight, n_solved;
	bool is_stopping, is_waking;
	bool has_changed;	  /* true: transfers have begun or ended at the present time */
	struct psd_error failure; /* first failure of a transfer; PSD_OK: none */
};

Network *network; /* SimGrid exists once per process, and so does this; never freed, because SimGrid points into it */

struct psd_place nowhere()
{
	return psd_place{nullptr, 0, 0};
}

/* ---- pairs of hosts ---- */

Pair *find_pair(unsigned from, unsigned to)
{
	return &network->pairs[uint64_t(from) << 32 | to];
}

void fail(unsigned from, unsigned to, const char *why)
{
	if (network->failure.status == PSD_OK)
		psd_error_set(&network->failure, PSD_ERUN, nowhere(), "transfer from %.100s to %.100s: %.300s",
			      network->backend.hosts[from]->get_cname(), network->backend.hosts[to]->get_cname(), why);
	psd_network_stop();
}

/* Removes a new comm from SimGrid's list by a failed start (see the head). Not done on a user's platform, whose links
 * stay as they are. */
void take_off_list(s4u::Comm *comm)
{
	if (!network->backend.broken)
		return;
	network->backend.is_way_broken = true;
	comm->set_payload_size(1);
	comm->start();
	network->backend.is_way_broken = false;
	comm->set_state(s4u::Activity::State::INITED);
}

Transfer *new_transfer(Pair *pair, unsigned from, unsigned to)
{
	Transfer *transfer = &network->transfers.emplace_back();

	/* a comm that gets its ends one by one is briefly vetoed, which would end the main loop */
	s4u::Activity::set_vetoed_activities(nullptr);
	transfer->comm = s4u::Comm::sendto_init(network->backend.hosts[from], network->backend.hosts[to]);
	s4u::Activity::set_vetoed_activities(&network->vetoes);
	take_off_list(transfer->comm.get());
	transfer->comm->set_data(transfer);
	transfer->pair = pair;
	transfer->from = from;
	transfer->to = to;
	return transfer;
}

Transfer *take_transfer(unsigned from, unsigned to)
{
	Pair *pair = find_pair(from, to);
	Transfer *transfer = pair->idle;

	if (!transfer)
		return new_transfer(pair, from, to);
	pair->idle = transfer->next_idle;
	transfer->comm->set_state(s4u::Activity::State::INITED);
	return transfer;
}

void keep_for_later(Transfer *transfer)
{
	transfer->next_idle = transfer->pair->idle;
	transfer->pair->idle = transfer;
}

/* Checks the route first: SimGrid abort()s where a user's platform has none. A comm that starts on a broken link ends
 * without a callback and with no bytes left. */
void start_on_users_platform(Transfer *transfer)
{
	const unsigned from = transfer->from, to = transfer->to;
	double latency_sec;

	if (!transfer->pair->has_way)
		transfer->pair->has_way =
			!psd::find_way(&network->backend, from, to, &latency_sec).empty() || latency_sec > 0;
	if (!transfer->pair->has_way)
		return fail(from, to, "the platform has no way between them");
	transfer->comm->start();
	if (transfer->comm->get_remaining() <= 0)
		fail(from, to, "a link on the way is down");
}

void start_transfer(unsigned from, unsigned to, uint64_t bytes, uint64_t tag)
{
	Transfer *transfer = take_transfer(from, to);

	transfer->tag = tag;
	transfer->seq = network->seq++;
	transfer->is_woken = false;
	transfer->comm->set_payload_size(bytes);
	network->n_in_flight++;
	network->has_changed = true;
	if (network->backend.platform.topology == PSD_TOPOLOGY_PLATFORM && network->backend.n_class_flows == 0)
		start_on_users_platform(transfer);
	else
		transfer->comm->start();
}

/* ---- waking ---- */

void wake_due();

void arm(double date_sec)
{
	if (network->armed && network->armed->get_date() <= date_sec)
		return;
	if (network->armed)
		network->armed->remove();
	network->armed = Timer::set(date_sec, [] {
		network->armed = nullptr;
		wake_due();
	});
}

void wake_alarms()
{
	const double now_sec = s4u::Engine::get_clock();
	/* sums of the same delays in another order differ in their last bits: treated as one date */
	const double due_sec = now_sec + now_sec * 1e-15;

	while (!network->is_stopping && !network->alarms.empty() && network->alarms.top().date_sec <= due_sec) {
		const uint64_t tag = network->alarms.top().tag;

		network->alarms.pop();
		network->wake(network->context, tag);
	}
}

void wake_ended()
{
	auto &ended = network->ended;
	size_t i = 0;

	std::sort(ended.begin(), ended.end(), [](const Transfer *a, const Transfer *b) { return a->seq < b->seq; });
	for (; i < ended.size() && !network->is_stopping; i++) {
		Transfer *transfer = ended[i];
		const uint64_t tag = transfer->tag;

		transfer->is_woken = true;
		if (transfer != network->ending)
			keep_for_later(transfer);
		network->wake(network->context, tag);
	}
	ended.erase(ended.begin(), ended.begin() + std::ptrdiff_t(i));
}

/* Counts SimGrid's work. At each date at which transfers begin or end, SimGrid visits the transfers that share links
 * with them. An event takes 0.5 us. A visit takes 0.1 us while all transfers fit the processor's cache, 0.5 us while
 * the TLB covers them, and 3 us otherwise. */
void count_solving()
{
	const uint64_t n = network->n_in_flight;

	if (network->has_changed)
		network->n_solved += n > MOST_IN_PAGES ? 6 * n : n > MOST_IN_CACHE ? n : n / 4;
	network->has_changed = false;
}

/* Calls wake for all timers and ended transfers that are due at the present time. These calls may set timers and start
 * transfers; no transfer ends before this function returns. */
void wake_due()
{
	network->is_waking = true;
	wake_alarms();
	wake_ended();
	wake_alarms();
	network->is_waking = false;
	count_solving();
	if (network->is_stopping)
		return;
	if (!network->alarms.empty())
		arm(std::max(network->alarms.top().date_sec, s4u::Engine::get_clock()));
	else if (network->n_in_flight == 0)
		psd_network_stop(); /* a user's platform may change its links for ever */
}

/* Called by SimGrid for each transfer that ends. All that end at one date are in the model's set before the first call;
 * the last call wakes all. A comm is free for reuse only when the next one ends. */
void on_completion(const s4u::Activity &activity)
{
	auto *transfer = activity.get_data<Transfer>();

	network->n_in_flight--;
	network->has_changed = true;
	if (activity.get_state() != s4u::Activity::State::FINISHED) {
		fail(transfer->from, transfer->to, "a link on the way went down");
		return;
	}
	if (network->ending && network->ending->is_woken)
		keep_for_later(network->ending);
	network->ending = nullptr;
	network->ended.push_back(transfer);
	if (!network->backend.model->get_finished_action_set()->empty())
		return;
	network->ending = transfer;
	wake_due();
}

} // namespace

static enum psd_status open_network(const struct psd_platform *platform, unsigned n_flows, unsigned n_links,
				    psd_wake_fn wake, void *context, struct psd_error *err)
{
	enum psd_status status;

	assert(!network);
	network = new Network();
	network->backend.platform = *platform;
	network->backend.n_class_flows = n_flows;
	network->backend.n_class_links = n_links;
	network->wake = wake;
	network->context = context;
	status = psd::open_backend(&network->backend, err);
	if (status != PSD_OK)
		return status;
	s4u::Activity::on_completion_cb(on_completion);
	network->veto = s4u::Comm::sendto_init();
	s4u::Activity::set_vetoed_activities(&network->vetoes);
	return PSD_OK;
}

enum psd_status psd_network_open(const struct psd_platform *platform, psd_wake_fn wake, void *context,
				 struct psd_error *err)
{
	return open_network(platform, 0, 0, wake, context, err);
}

enum psd_status psd_network_open_classes(const struct psd_platform *platform, unsigned n_flows, unsigned n_links,
					 psd_wake_fn wake, void *context, struct psd_error *err)
{
	return open_network(platform, n_flows > 0 ? n_flows : 1, n_links, wake, context, err);
}

double psd_network_now_sec(void)
{
	return s4u::Engine::get_clock();
}

void psd_network_timer(double delay_sec, uint64_t tag)
{
	assert(delay_sec >= 0 && std::isfinite(delay_sec));
	network->alarms.push({s4u::Engine::get_clock() + delay_sec, network->seq++, tag});
	if (!network->is_waking)
		arm(network->alarms.top().date_sec);
}

void psd_network_transfer(unsigned from, unsigned to, uint64_t bytes, uint64_t tag)
{
	assert(from != to && from < network->backend.hosts.size() && to < network->backend.hosts.size());
	if (bytes == 0) {
		psd_network_timer(0, tag);
		return;
	}
	try {
		start_transfer(from, to, bytes, tag);
	} catch (const std::exception &failure) {
		fail(from, to, failure.what());
	}
}

void psd_network_set_rate(unsigned link, double bps)
{
	assert(link < network->backend.n_class_links);
	network->backend.links[link]->set_bandwidth(bps / 8);
}

/* SimGrid adds up the shares of a flow that has a link several times on its way. */
void psd_network_flow(unsigned flow, const struct psd_class_link *links, unsigned n, uint64_t bytes, uint64_t tag)
{
	auto &way = network->backend.way;

	assert(flow < network->backend.n_class_flows);
	way.clear();
	for (unsigned i = 0; i < n; i++)
		way.insert(way.end(), links[i].n_flows, network->backend.links[links[i].link]);
	psd_network_transfer(2 * flow, 2 * flow + 1, bytes, tag);
}

double psd_network_latency_sec(unsigned from, unsigned to)
{
	const struct psd_platform *platform = &network->backend.platform;
	const bool is_near = psd_platform_node_of(platform, from) == psd_platform_node_of(platform, to);
	const double ends_sec = is_near ? 0 : platform->host_latency_sec;

	if (from == to)
		return 0;
	if (platform->topology != PSD_TOPOLOGY_PLATFORM)
		return psd_platform_latency_sec(platform, from, to);
	Pair *pair = find_pair(from, to);
	if (pair->latency_sec < 0)
		pair->latency_sec = psd::links_latency_sec(&network->backend, from, to);
	return pair->latency_sec + ends_sec;
}

unsigned psd_network_way(unsigned from, unsigned to, unsigned links[], unsigned room)
{
	unsigned n = 0;
	double unused_sec;

	if (network->backend.platform.topology != PSD_TOPOLOGY_PLATFORM) {
		unsigned route[PSD_ROUTE_LINKS];

		n = std::min(psd_platform_route(&network->backend.platform, from, to, route), room);
		std::copy(route, route + n, links);
		return n;
	}
	for (s4u::Link *link : psd::find_way(&network->backend, from, to, &unused_sec)) {
		const auto numbered = network->numbers.insert({link, unsigned(network->seen.size())});

		if (numbered.second)
			network->seen.push_back(link);
		if (n < room)
			links[n++] = numbered.first->second;
	}
	return n;
}

double psd_network_describe_link(unsigned link, char *name)
{
	if (network->backend.platform.topology != PSD_TOPOLOGY_PLATFORM) {
		psd_platform_link_name(&network->backend.platform, link, name);
		return psd_platform_link_bps(&network->backend.platform, link);
	}
	std::snprintf(name, PSD_LINK_NAME, "%s", network->seen[link]->get_cname());
	return 8 * network->seen[link]->get_bandwidth();
}

/* Scales a link through the solver: a comm keeps the smallest bandwidth of its links at its start as a bound, so a link
 * that was slow then would stay slow for it. Above ratio 1 the bandwidth itself grows. */
static void scale_link(s4u::Link *link, double ratio)
{
	const auto inserted = network->scaled.insert({link, {link->get_bandwidth(), 1}});
	ScaledLink *scaled = &inserted.first->second;

	scaled->ratio = std::min(ratio, 1.0);
	if (inserted.second && link->get_sharing_policy() == s4u::Link::SharingPolicy::SHARED)
		link->set_sharing_policy(s4u::Link::SharingPolicy::NONLINEAR,
					 [scaled](double bandwidth, int) { return bandwidth * scaled->ratio; });
	if (link->get_sharing_policy() == s4u::Link::SharingPolicy::NONLINEAR)
		link->set_bandwidth(scaled->start_bandwidth *
				    std::max(ratio, 1.0)); /* makes SimGrid solve again, too */
	else
		link->set_bandwidth(scaled->start_bandwidth * ratio);
}

/* Scales the first link out and the last link in: a host of a user's platform has no link of its own. */
static void scale_users_link(unsigned node, double ratio)
{
	const unsigned host = psd_platform_first_host(&network->backend.platform, node);
	const unsigned other = host == 0 ? 1 : 0;
	double unused_sec;

	if (host >= network->backend.hosts.size() || other >= network->backend.hosts.size())
		return;
	const auto out = psd::find_way(&network->backend, host, other, &unused_sec);
	const auto in = psd::find_way(&network->backend, other, host, &unused_sec);
	if (!out.empty())
		scale_link(out.front(), ratio);
	if (!in.empty() && (out.empty() || in.back() != out.front()))
		scale_link(in.back(), ratio);
}

void psd_network_scale_link(unsigned node, double ratio)
{
	assert(ratio > 0);
	if (network->backend.platform.topology == PSD_TOPOLOGY_PLATFORM) {
		scale_users_link(node, ratio);
		return;
	}
	scale_link(network->backend.links[psd_platform_node_link(node, 0)], ratio);
	scale_link(network->backend.links[psd_platform_node_link(node, 1)], ratio);
}

void psd_network_stop(void)
{
	network->is_stopping = true;
	network->vetoes.insert(network->veto.get());
}

enum psd_status psd_network_run(struct psd_error *err)
{
	network->is_stopping = false;
	network->vetoes.clear();
	if (network->failure.status == PSD_OK &&
	    (network->n_in_flight || !network->alarms.empty() || !network->ended.empty())) {
		if (!network->ended.empty())
			arm(s4u::Engine::get_clock());
		else if (!network->alarms.empty())
			arm(std::max(network->alarms.top().date_sec, s4u::Engine::get_clock()));
		try {
			network->backend.engine->run();
		} catch (const std::exception &failure) {
			return psd_error_set(err, PSD_ERUN, nowhere(), "SimGrid: %.500s", failure.what());
		}
	}
	if (network->armed)
		network->armed->remove();
	network->armed = nullptr;
	if (network->failure.status != PSD_OK && err)
		*err = network->failure;
	return network->failure.status;
}

uint64_t psd_network_work(void)
{
	return network->n_solved;
}
