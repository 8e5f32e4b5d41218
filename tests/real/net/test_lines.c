/* How many connections two hosts are to have: what they agree on, what is tried, and which is best. */
#include <criterion/criterion.h>
#include <errno.h>

#include "real/net/lines.h"
#include "tests/real/net/meeting.h"

#define WITHIN_SEC 60.0
#define TRY_SEC	   1e-3 /* a block passes all the same */

struct choosing {
	struct host *host;
	bool wants_several, is_tried;
	double within_sec;
	unsigned n_lines;
	struct psd_wire_lines tried;
	enum psd_status status;
	struct psd_error err;
};

static void *agree(void *context)
{
	struct choosing *choosing = context;

	choosing->status = psd_lines_agree(&choosing->host->options, choosing->host->fds, choosing->wants_several,
					   psd_socket_now_sec() + WITHIN_SEC, &choosing->is_tried, &choosing->err);
	return NULL;
}

static void *try(void *context)
{
	struct choosing *choosing = context;

	choosing->status = psd_lines_try(&choosing->host->options, choosing->host->fds, TRY_SEC,
					 psd_socket_now_sec() + choosing->within_sec, &choosing->n_lines,
					 &choosing->tried, &choosing->err);
	return NULL;
}

/* Two hosts with so many connections, which do it at once. */
static void do_both(struct host hosts[HOSTS], unsigned n_lines, struct choosing choosing[HOSTS], void *(*what)(void *))
{
	const struct psd_layout layout = psd_layout_make(HOSTS, 1, 0);
	struct psd_mesh_host places[HOSTS] = {{"127.0.0.1", 1}, {"127.0.0.1", 2}};
	pthread_t other;

	for (unsigned h = 0; h < HOSTS; h++)
		hosts[h].options = (struct psd_mesh_options){.n_lines = n_lines, .terms = ""};
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

Test(lines, several_are_tried_where_all_hosts_may_profit)
{
	cr_expect(are_tried(true, true));
	cr_expect_not(are_tried(true, false));
	cr_expect_not(are_tried(false, true));
}

Test(lines, all_hosts_choose_the_same)
{
	struct choosing choosing[HOSTS] = {{.within_sec = WITHIN_SEC}, {.within_sec = WITHIN_SEC}};
	struct host hosts[HOSTS];

	do_both(hosts, PSD_LINES_MOST, choosing, try);
	check_well(choosing, HOSTS);
	cr_expect_eq(choosing[0].n_lines, 1u << psd_lines_best(choosing[0].tried.bps));
	cr_expect_eq(choosing[0].n_lines, choosing[1].n_lines);
	for (unsigned i = 0; i < PSD_WIRE_LINES_TRIED; i++) {
		cr_expect_gt(choosing[0].tried.bps[i], 0.0);
		cr_expect_eq(choosing[0].tried.bps[i], choosing[1].tried.bps[i]);
	}
}

/* Connections that carry bytes all the time never make anybody wait for nothing. */
Test(lines, what_flows_too_late_is_too_late)
{
	struct choosing choosing[HOSTS] = {{.within_sec = -1.0}, {.within_sec = -1.0}};
	struct host hosts[HOSTS];

	do_both(hosts, PSD_LINES_MOST, choosing, try);
	for (unsigned h = 0; h < HOSTS; h++) {
		cr_expect_eq(choosing[h].status, PSD_ERUN);
		cr_expect(strstr(choosing[h].err.text, strerror(ETIMEDOUT)), "%s", choosing[h].err.text);
	}
}

/* 10 as against 10.9 is within a tenth, as against 11.2 not. */
Test(lines, more_connections_must_be_worth_it)
{
	cr_expect_eq(psd_lines_best((double[]){10.0, 10.9, 10.5}), 0);
	cr_expect_eq(psd_lines_best((double[]){10.0, 11.2, 11.9}), 1);
	cr_expect_eq(psd_lines_best((double[]){10.0, 15.0, 20.0}), 2);
	cr_expect_eq(psd_lines_best((double[]){0.0, 0.0, 0.0}), 0);
}
