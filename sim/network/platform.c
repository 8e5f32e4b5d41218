/* Geometry of generated platforms, and their XML. Knows no SimGrid: routes and capacities come from here, and
 * network.cpp gives them to SimGrid. */
#include "sim/network/platform.h"

#include <assert.h>
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "engine/cost/cost.h"

#define UNLIMITED_BPS 1e15 /* practically no limit: 100 MB pass in 1 us */
/* largest number of hosts whose routes are written pair by pair: 262,000 routes, 40 MB of XML */
#define DUMP_PAIR_HOSTS 512

unsigned psd_platform_hosts(const struct psd_platform *platform)
{
	return platform->workers + platform->servers;
}

static struct psd_layout layout_of(const struct psd_platform *platform)
{
	return (struct psd_layout){
		.workers = platform->workers,
		.nodes = platform->nodes,
		.workers_per_node = platform->workers_per_node,
		.workers_per_switch = platform->workers_per_switch,
		.shards = platform->servers,
		.has_separate_servers = platform->servers > 0,
		.nodes_per_rack = platform->nodes_per_rack,
		.servers_in = platform->servers_in,
		.n_servers_in = platform->n_servers_in,
		.kinds = platform->kinds,
		.n_kinds = platform->n_kinds,
		.is_uneven = platform->is_uneven,
		.has_own_latencies = platform->has_own_latencies,
	};
}

static unsigned all_nodes(const struct psd_platform *platform)
{
	return platform->nodes + platform->servers;
}

unsigned psd_platform_node_of(const struct psd_platform *platform, unsigned host)
{
	const struct psd_layout layout = layout_of(platform);

	return psd_layout_node(&layout, host);
}

unsigned psd_platform_first_host(const struct psd_platform *platform, unsigned node)
{
	const struct psd_layout layout = layout_of(platform);

	return psd_layout_first(&layout, node);
}

unsigned psd_platform_node_link(unsigned node, int is_in)
{
	return 2 * node + (is_in ? 1 : 0);
}

static unsigned leaf_of(const struct psd_platform *platform, unsigned node)
{
	const struct psd_layout layout = layout_of(platform);

	return psd_layout_rack(&layout, node);
}

static unsigned leaves(const struct psd_platform *platform)
{
	const struct psd_layout layout = layout_of(platform);

	return psd_layout_racks(&layout);
}

static unsigned spines(const struct psd_platform *platform)
{
	return psd_cost_spines(platform->topology, platform->nodes_per_rack, platform->oversubscription_ratio);
}

/* Links are numbered in pairs (out or up, in or down): nodes, workers' local links, uplinks of nodes' switches, then
 * the uplinks of each leaf. */
static unsigned first_local(const struct psd_platform *platform)
{
	return 2 * all_nodes(platform);
}

static bool has_local_links(const struct psd_platform *platform)
{
	return platform->workers_per_node > 1 || platform->workers_per_switch > 0;
}

static unsigned first_switch(const struct psd_platform *platform)
{
	return first_local(platform) + (has_local_links(platform) ? 2 * platform->workers : 0);
}

static unsigned switches_of_node(const struct psd_platform *platform)
{
	return platform->workers_per_switch > 0 ? (platform->workers_per_node - 1) / platform->workers_per_switch + 1
						: 0;
}

/* Returns the number of the uplink of a worker's switch. */
static unsigned switch_uplink(const struct psd_platform *platform, unsigned worker)
{
	const struct psd_layout layout = layout_of(platform);

	return first_switch(platform) + 2 * psd_layout_switch(&layout, worker);
}

static unsigned first_uplink(const struct psd_platform *platform)
{
	return first_switch(platform) + 2 * platform->nodes * switches_of_node(platform);
}

static unsigned uplink(const struct psd_platform *platform, unsigned leaf, unsigned spine)
{
	return first_uplink(platform) + 2 * (leaf * spines(platform) + spine);
}

unsigned psd_platform_links(const struct psd_platform *platform)
{
	return platform->topology == PSD_TOPOLOGY_STAR ? first_uplink(platform) : uplink(platform, leaves(platform), 0);
}

static double node_link_ratio(const struct psd_platform *platform, unsigned node)
{
	const struct psd_layout layout = layout_of(platform);

	return psd_layout_link_ratio(&layout, node);
}

double psd_platform_link_bps(const struct psd_platform *platform, unsigned link)
{
	if (link < first_local(platform))
		return node_link_ratio(platform, link / 2) * (link % 2 ? platform->receive_bps : platform->send_bps);
	if (link < first_switch(platform))
		return platform->local_bps > 0 ? platform->local_bps : UNLIMITED_BPS;
	if (link < first_uplink(platform))
		return platform->between_bps;
	return platform->nodes_per_rack * platform->link_bps / platform->oversubscription_ratio / spines(platform);
}

bool psd_platform_is_shared(const struct psd_platform *platform, unsigned link)
{
	const struct psd_layout layout = layout_of(platform);

	return platform->topology == PSD_TOPOLOGY_PLATFORM || link >= first_switch(platform) ||
	       psd_layout_workers_on(&layout, link / 2) > 1;
}

double psd_platform_slowed_bps(const struct psd_platform *platform, const double *ratios, unsigned link)
{
	const bool is_of_node = ratios && link < psd_platform_node_link(platform->nodes + platform->servers, 0);

	return psd_platform_link_bps(platform, link) * (is_of_node ? ratios[link / 2] : 1.0);
}

double psd_platform_latency_sec(const struct psd_platform *platform, unsigned from, unsigned to)
{
	const struct psd_layout layout = layout_of(platform);
	const unsigned from_node = psd_layout_node(&layout, from), to_node = psd_layout_node(&layout, to);

	if (from == to)
		return 0.0;
	return from_node == to_node ? platform->local_latency_sec
				    : platform->latency_sec + platform->host_latency_sec +
					      psd_layout_more_latency_sec(&layout, from_node, to_node);
}

void psd_platform_host_name(const struct psd_platform *platform, unsigned host, char *name)
{
	const struct psd_layout layout = layout_of(platform);

	if (host >= platform->workers)
		snprintf(name, PSD_LINK_NAME, "s%u", host - platform->workers);
	else if (platform->workers_per_node == 1)
		snprintf(name, PSD_LINK_NAME, "n%u", host);
	else
		snprintf(name, PSD_LINK_NAME, "n%uw%u", psd_layout_node(&layout, host),
			 psd_layout_position(&layout, host));
}

void psd_platform_link_name(const struct psd_platform *platform, unsigned link, char *name)
{
	const unsigned pair = link / 2;

	if (link < first_local(platform))
		snprintf(name, PSD_LINK_NAME, "node%u_%s", pair, link % 2 ? "in" : "out");
	else if (link < first_switch(platform))
		snprintf(name, PSD_LINK_NAME, "worker%u_%s", pair - all_nodes(platform), link % 2 ? "in" : "out");
	else if (link < first_uplink(platform))
		snprintf(name, PSD_LINK_NAME, "node%u_switch%u_%s",
			 (pair - first_switch(platform) / 2) / switches_of_node(platform),
			 (pair - first_switch(platform) / 2) % switches_of_node(platform), link % 2 ? "down" : "up");
	else
		snprintf(name, PSD_LINK_NAME, "leaf%u_spine%u_%s",
			 (pair - first_uplink(platform) / 2) / spines(platform),
			 (pair - first_uplink(platform) / 2) % spines(platform), link % 2 ? "down" : "up");
}

/* Tells whether a route leaves its node or its switch. */
static bool passes_switches(const struct psd_platform *platform, unsigned host)
{
	return platform->workers_per_switch > 0 && host < platform->workers;
}

static unsigned route_between_nodes(const struct psd_platform *platform, unsigned from_node, unsigned to_node,
				    unsigned *links)
{
	unsigned n_links = 0;

	links[n_links++] = psd_platform_node_link(from_node, 0);
	if (platform->topology != PSD_TOPOLOGY_STAR) {
		const unsigned from_leaf = leaf_of(platform, from_node), to_leaf = leaf_of(platform, to_node);
		const unsigned spine = to_node % spines(platform);

		if (from_leaf != to_leaf) {
			links[n_links++] = uplink(platform, from_leaf, spine);
			links[n_links++] = uplink(platform, to_leaf, spine) + 1;
		}
	}
	links[n_links++] = psd_platform_node_link(to_node, 1);
	return n_links;
}

unsigned psd_platform_route(const struct psd_platform *platform, unsigned from, unsigned to, unsigned *links)
{
	const unsigned from_node = psd_platform_node_of(platform, from), to_node = psd_platform_node_of(platform, to);
	const bool is_far = from_node != to_node;
	unsigned n_links = 0;

	assert(from != to);
	if (!is_far || passes_switches(platform, from))
		links[n_links++] = first_local(platform) + 2 * from;
	const bool is_across = is_far || (passes_switches(platform, from) &&
					  switch_uplink(platform, from) != switch_uplink(platform, to));
	if (is_across && passes_switches(platform, from))
		links[n_links++] = switch_uplink(platform, from);
	if (is_far)
		n_links += route_between_nodes(platform, from_node, to_node, links + n_links);
	if (is_across && passes_switches(platform, to))
		links[n_links++] = switch_uplink(platform, to) + 1;
	if (!is_far || passes_switches(platform, to))
		links[n_links++] = first_local(platform) + 2 * to + 1;
	return n_links;
}

/* ---- names ---- */

/* Compares the numbers at *a and *b and moves both behind them. Leading zeros do not count here. */
static int compare_numbers(const char **a, const char **b)
{
	size_t a_digits, b_digits;
	int order;

	*a += strspn(*a, "0");
	*b += strspn(*b, "0");
	a_digits = strspn(*a, "0123456789");
	b_digits = strspn(*b, "0123456789");
	order = a_digits != b_digits ? (a_digits < b_digits ? -1 : 1) : memcmp(*a, *b, a_digits);
	*a += a_digits;
	*b += b_digits;
	return order;
}

int psd_platform_compare_names(const char *a, const char *b)
{
	const char *const whole_a = a, *const whole_b = b;

	while (*a && *b) {
		if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
			const int order = compare_numbers(&a, &b);

			if (order)
				return order;
		} else if (*a == *b) {
			a++;
			b++;
		} else {
			break;
		}
	}
	if (*a != *b)
		return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
	return strcmp(whole_a, whole_b); /* n1 and n01: any fixed order will do */
}

/* ---- XML ---- */

static double dumped_latency_sec(const struct psd_platform *platform, unsigned link)
{
	const struct psd_layout layout = layout_of(platform);

	return link < first_local(platform)
		       ? (platform->latency_sec + psd_layout_more_latency_sec(&layout, link / 2, link / 2)) / 2
		       : 0;
}

static void write_hosts_and_links(FILE *out, const struct psd_platform *platform)
{
	char name[PSD_LINK_NAME];

	for (unsigned host = 0; host < psd_platform_hosts(platform); host++) {
		psd_platform_host_name(platform, host, name);
		fprintf(out, "    <host id=\"%s\" speed=\"1Gf\"/>\n", name);
	}
	if (platform->local_latency_sec > 0)
		fprintf(out,
			"    <link id=\"inside\" bandwidth=\"%.17gBps\" latency=\"%.17gs\" "
			"sharing_policy=\"FATPIPE\"/>\n",
			UNLIMITED_BPS / 8, platform->local_latency_sec);
	for (unsigned link = 0; link < psd_platform_links(platform); link++) {
		psd_platform_link_name(platform, link, name);
		fprintf(out, "    <link id=\"%s\" bandwidth=\"%.17gBps\" latency=\"%.17gs\"/>\n", name,
			psd_platform_link_bps(platform, link) / 8, dumped_latency_sec(platform, link));
	}
}

static void write_star(FILE *out, const struct psd_platform *platform)
{
	char host_name[PSD_LINK_NAME], out_name[PSD_LINK_NAME], in_name[PSD_LINK_NAME];

	for (unsigned host = 0; host < psd_platform_hosts(platform); host++) {
		const unsigned node = psd_platform_node_of(platform, host);

		psd_platform_host_name(platform, host, host_name);
		psd_platform_link_name(platform, psd_platform_node_link(node, 0), out_name);
		psd_platform_link_name(platform, psd_platform_node_link(node, 1), in_name);
		fprintf(out, "    <host_link id=\"%s\" up=\"%s\" down=\"%s\"/>\n", host_name, out_name, in_name);
	}
}

static void write_route(FILE *out, const struct psd_platform *platform, unsigned from, unsigned to)
{
	char from_name[PSD_LINK_NAME], to_name[PSD_LINK_NAME], link_name[PSD_LINK_NAME];
	unsigned links[PSD_ROUTE_LINKS];
	const unsigned n_links = psd_platform_route(platform, from, to, links);

	psd_platform_host_name(platform, from, from_name);
	psd_platform_host_name(platform, to, to_name);
	fprintf(out, "    <route src=\"%s\" dst=\"%s\" symmetrical=\"NO\">", from_name, to_name);
	for (unsigned i = 0; i < n_links; i++) {
		psd_platform_link_name(platform, links[i], link_name);
		fprintf(out, "<link_ctn id=\"%s\"/>", link_name);
	}
	if (platform->local_latency_sec > 0 &&
	    psd_platform_node_of(platform, from) == psd_platform_node_of(platform, to))
		fputs("<link_ctn id=\"inside\"/>",
		      out); /* not on workers' links, since these links are also a part of routes to other nodes */
	fputs("</route>\n", out);
}

enum psd_status psd_platform_write(FILE *out, const struct psd_platform *platform, struct psd_error *err)
{
	const unsigned hosts = psd_platform_hosts(platform);
	const int is_plain_star = platform->topology == PSD_TOPOLOGY_STAR && !has_local_links(platform);

	if (platform->topology == PSD_TOPOLOGY_PLATFORM)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "the scenario has a platform file already: '%.200s'",
				     platform->path);
	if (!is_plain_star && hosts > DUMP_PAIR_HOSTS)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				     "the platform has %u hosts, must have at most %d, except for a star with one "
				     "worker on each node",
				     hosts, DUMP_PAIR_HOSTS);
	fprintf(out,
		"<?xml version=\"1.0\"?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<platform "
		"version=\"4.1\">\n"
		"  <zone id=\"world\" routing=\"%s\">\n",
		is_plain_star ? "Cluster" : "Full");
	write_hosts_and_links(out, platform);
	if (is_plain_star)
		write_star(out, platform);
	for (unsigned from = 0; !is_plain_star && from < hosts; from++)
		for (unsigned to = 0; to < hosts; to++)
			if (from != to)
				write_route(out, platform, from, to);
	fputs("  </zone>\n</platform>\n", out);
	if (fflush(out) || ferror(out))
		return psd_error_set(err, PSD_EFILE, PSD_NOWHERE, "cannot write the platform");
	return PSD_OK;
}
