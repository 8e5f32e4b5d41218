/* How many connections two hosts are to have: what they agree on, what is tried, and which is best. */
#include <criterion/criterion.h>
#include <errno.h>
#include <sys/socket.h>

#include "real/net/connection_count.h"
#include "tests/real/net/meeting.h"

#define WITHIN_SEC 60.0
#define TRY_SEC	   1e-3 /* a block passes all the same */

struct choosing {
	struct host *host;
	const int *fds; /* NULL: the host's */
	bool wants_several, is_tried;
	double within_sec;
	unsigned n_connections;
	struct psd_wire_rates tried;
	enum psd_status status;
	struct psd_error err;
};

static void *agree(void *context)
{
	struct choosing *choosing = context;

	choosing->status =
		psd_connection_count_agree(&choosing->host->options, choosing->host->fds, choosing->wants_several,
					   psd_socket_now_sec() + WITHIN_SEC, &choosing->is_tried, &choosing->err);
	return NULL;
}

static void *try(void *context)
{
	struct choosing *choosing = context;

	choosing->status =
		psd_connection_count_try(&choosing->host->options, choosing->fds ? choosing->fds : choosing->host->fds,
					 TRY_SEC, psd_socket_now_sec() + choosing->within_sec, &choosing->n_connections,
					 &choosing->tried, &choosing->err);
	return NULL;
}

/* Two hosts with so many connections, which do it at once. */
static void do_both(struct host hosts[HOSTS], unsigned n_connections, struct choosing choosing[HOSTS],
		    void *(*what)(void *))
{
	const struct psd_layout layout = psd_layout_make(HOSTS, 1, 0);
	struct psd_mesh_host places[HOSTS] = {{"127.0.0.1", 1}, {"127.0.0.1", 2}};
	pthread_t other;

	for (unsigned h = 0; h < HOSTS; h++)
		hosts[h].options = (struct psd_mesh_options){.n_connections = n_connections, .terms = ""};
	meet(hosts);
	for (unsigned h = 0; h < HOSTS; h++) {
		cr_assert_eq(hosts[h].status, PSD_OK, "%s", hosts[h].err.text);
		hosts[h].options.layout = &layout; /* meet()'s are gone */
		hosts[h].options.hosts = places;
		choosing[h].host = &hosts[h];
	}
	cr_assert_eq(pthread_create(&other, NULL, what, &choosing[1]), 0);
	(void)what(&choosing[0]);
	pthread_join(other, NULL);
	part(hosts);
}

static void check_well(const struct choosing choosing[], unsigned n)
{
	for (unsigned h = 0; h < n; h++)
		cr_assert_eq(choosing[h].status, PSD_OK, "%s", choosing[h].err.text);
}

static bool are_tried(bool first, bool second)
{
	struct choosing choosing[HOSTS] = {{.wants_several = first}, {.wants_several = second}};
	struct host hosts[HOSTS];

	do_both(hosts, 1, choosing, agree);
	check_well(choosing, HOSTS);
	cr_assert_eq(choosing[0].is_tried, choosing[1].is_tried);
	return choosing[0].is_tried;
}

Test(connection_count, several_are_tried_where_all_hosts_may_profit)
{
	cr_expect(are_tried(true, true));
	cr_expect_not(are_tried(true, false));
	cr_expect_not(are_tried(false, true));
}

Test(connection_count, all_hosts_choose_the_same)
{
	struct choosing choosing[HOSTS] = {{.within_sec = WITHIN_SEC}, {.within_sec = WITHIN_SEC}};
	struct host hosts[HOSTS];

	do_both(hosts, PSD_CONNECTIONS_MOST, choosing, try);
	check_well(choosing, HOSTS);
	cr_expect_eq(choosing[0].n_connections, 1u << psd_connection_count_best(choosing[0].tried.bps));
	cr_expect_eq(choosing[0].n_connections, choosing[1].n_connections);
	for (unsigned i = 0; i < PSD_WIRE_TRIALS; i++) {
		cr_expect_gt(choosing[0].tried.bps[i], 0.0);
		cr_expect_eq(choosing[0].tried.bps[i], choosing[1].tried.bps[i]);
	}
}

/* Connections that carry bytes all the time never make anybody wait for nothing. */
Test(connection_count, a_flow_after_the_time_limit_is_too_late)
{
	struct choosing choosing[HOSTS] = {{.within_sec = -1.0}, {.within_sec = -1.0}};
	struct host hosts[HOSTS];

	do_both(hosts, PSD_CONNECTIONS_MOST, choosing, try);
	for (unsigned h = 0; h < HOSTS; h++) {
		cr_expect_eq(choosing[h].status, PSD_ELOST);
		cr_expect(strstr(choosing[h].err.text, strerror(ETIMEDOUT)), "%s", choosing[h].err.text);
	}
}

enum { SPREAD_HOSTS = 4 };

/* One connection between any two hosts, for what they tell each other, and more only between nodes of two hosts: 0 and
 * 2, 1 and 3. */
static void connect_nodes(int fds[SPREAD_HOSTS][SPREAD_HOSTS * PSD_CONNECTIONS_MOST])
{
	for (unsigned h = 0; h < SPREAD_HOSTS; h++)
		for (unsigned i = 0; i < SPREAD_HOSTS * PSD_CONNECTIONS_MOST; i++)
			fds[h][i] = -1;
	for (unsigned h = 0; h < SPREAD_HOSTS; h++)
		for (unsigned g = h + 1; g < SPREAD_HOSTS; g++)
			for (unsigned i = 0; i < (g == h + 2 ? (unsigned)PSD_CONNECTIONS_MOST : 1u); i++) {
				int ends[2];

				cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
				fds[h][g * PSD_CONNECTIONS_MOST + i] = ends[0];
				fds[g][h * PSD_CONNECTIONS_MOST + i] = ends[1];
			}
}

Test(connection_count, links_are_tried_and_not_the_memory_of_a_node)
{
	const struct psd_layout layout = psd_layout_make(SPREAD_HOSTS, 2, 0);
	const struct psd_mesh_host places[SPREAD_HOSTS] = {{"a", 1}, {"a", 2}, {"b", 1}, {"b", 2}};
	struct host hosts[SPREAD_HOSTS];
	struct choosing choosing[SPREAD_HOSTS];
	int fds[SPREAD_HOSTS][SPREAD_HOSTS * PSD_CONNECTIONS_MOST];
	pthread_t threads[SPREAD_HOSTS];

	connect_nodes(fds);
	for (unsigned h = 0; h < SPREAD_HOSTS; h++) {
		hosts[h].options = (struct psd_mesh_options){.layout = &layout, .hosts = places, .self = h};
		choosing[h] = (struct choosing){.host = &hosts[h], .fds = fds[h], .within_sec = WITHIN_SEC};
		cr_assert_eq(pthread_create(&threads[h], NULL, try, &choosing[h]), 0);
	}
	for (unsigned h = 0; h < SPREAD_HOSTS; h++)
		pthread_join(threads[h], NULL);
	check_well(choosing, SPREAD_HOSTS);
	for (unsigned h = 0; h < SPREAD_HOSTS; h++)
		for (unsigned i = 0; i < SPREAD_HOSTS * PSD_CONNECTIONS_MOST; i++)
			if (fds[h][i] >= 0)
				close(fds[h][i]);
}

/* 10 as against 10.9 is within a tenth, as against 11.2 not. */
Test(connection_count, more_connections_must_be_worth_it)
{
	cr_expect_eq(psd_connection_count_best((double[]){10.0, 10.9, 10.5}), 0);
	cr_expect_eq(psd_connection_count_best((double[]){10.0, 11.2, 11.9}), 1);
	cr_expect_eq(psd_connection_count_best((double[]){10.0, 15.0, 20.0}), 2);
	cr_expect_eq(psd_connection_count_best((double[]){0.0, 0.0, 0.0}), 0);
}
