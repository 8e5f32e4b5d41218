/* Two hosts meet on loopback, one in a thread: what they agree on, and what they refuse. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "real/net/mesh.h"
#include "real/net/socket.h"

enum { HOSTS = 2, MOST_LINES = 4 };

struct host {
	struct psd_mesh_options options;
	int fds[HOSTS * MOST_LINES];
	struct psd_mesh_clock clock;
	enum psd_status status;
	struct psd_error err;
};

static void *join(void *context)
{
	struct host *host = context;

	host->status = psd_mesh_open(&host->options, host->fds, &host->clock, &host->err);
	return NULL;
}

/* Both at once. hosts[h].options.n_lines and plan_hash are the caller's. */
static void meet(struct host hosts[HOSTS])
{
	static const struct psd_socket_options socket_options = {.has_buffers = false};
	const struct psd_layout layout = psd_layout_make(HOSTS, 1, 0);
	struct psd_mesh_host places[HOSTS];
	struct psd_error err;
	pthread_t other;

	for (unsigned h = 0; h < HOSTS; h++) {
		memcpy(places[h].address, "127.0.0.1", sizeof("127.0.0.1"));
		hosts[h].options.layout = &layout;
		hosts[h].options.hosts = places;
		hosts[h].options.self = h;
		hosts[h].options.within_sec = 20;
		cr_assert_eq(psd_socket_listen("127.0.0.1", 0, &socket_options, &hosts[h].options.listener,
					       &places[h].port, &err),
			     PSD_OK, "%s", err.text);
	}
	cr_assert_eq(pthread_create(&other, NULL, join, &hosts[1]), 0);
	join(&hosts[0]);
	pthread_join(other, NULL);
}

static void part(struct host hosts[HOSTS])
{
	for (unsigned h = 0; h < HOSTS; h++)
		for (unsigned i = 0; !hosts[h].status && i < HOSTS * hosts[h].options.n_lines; i++)
			if (hosts[h].fds[i] >= 0)
				close(hosts[h].fds[i]);
}

Test(mesh, hosts_are_joined_by_every_line)
{
	struct host hosts[HOSTS] = {{.options = {.n_lines = 3, .plan_hash = 1}},
				    {.options = {.n_lines = 3, .plan_hash = 1}}};

	meet(hosts);
	for (unsigned line = 0; line < 3; line++) {
		const char sent = (char)('a' + line);
		char received;

		cr_assert_eq(hosts[0].status, PSD_OK, "%s", hosts[0].err.text);
		cr_assert_eq(hosts[1].status, PSD_OK, "%s", hosts[1].err.text);
		cr_assert_eq(hosts[0].fds[0 * 3 + line], -1, "to itself");
		cr_assert_eq(write(hosts[0].fds[1 * 3 + line], &sent, 1), 1);
		while (read(hosts[1].fds[0 * 3 + line], &received, 1) != 1)
			;
		cr_assert_eq(received, sent);
	}
	part(hosts);
}

Test(mesh, one_machine_has_one_clock)
{
	struct host hosts[HOSTS] = {{.options = {.n_lines = 1}}, {.options = {.n_lines = 1}}};

	meet(hosts);
	cr_assert_eq(hosts[1].status, PSD_OK, "%s", hosts[1].err.text);
	cr_assert_eq(hosts[1].clock.ahead_sec, 0.0);
	cr_assert_gt(hosts[1].clock.rtt_sec, 0.0);
	cr_assert_eq(hosts[0].clock.rtt_sec, hosts[1].clock.rtt_sec);
	part(hosts);
}

static void check_refused(struct host hosts[HOSTS], const char *words)
{
	meet(hosts);
	cr_assert_eq(hosts[0].status, PSD_ERUN);
	cr_assert(strstr(hosts[0].err.text, words), "'%s' is not in '%s'", words, hosts[0].err.text);
	cr_assert_neq(hosts[1].status, PSD_OK);
	part(hosts);
}

Test(mesh, another_plan_is_refused)
{
	struct host hosts[HOSTS] = {{.options = {.n_lines = 1, .plan_hash = 0xa}},
				    {.options = {.n_lines = 1, .plan_hash = 0xb}}};

	check_refused(
		hosts,
		"has another plan (000000000000000b, here 000000000000000a): all need the same scenario and options");
}
