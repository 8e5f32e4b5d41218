/* Hosts of a cluster on loopback that join it, each in a thread of the test. Time limits are so long that a host that
 * waits for nobody never ends. */
#ifndef PSD_TESTS_REAL_NET_JOINING_HOSTS_H
#define PSD_TESTS_REAL_NET_JOINING_HOSTS_H

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "real/net/mesh.h"
#include "real/net/socket.h"
#include "tests/real/kept_port.h"
#include "tests/real/waiting_socket.h"

enum { HOSTS = 3, LINES = 2, ROOM = 4096 };

#define LONG_SEC 1000.0
#define TERMS	 "seed: 1\nbatch: 8\n"

static const struct psd_socket_options plain = {.has_buffers = false};

struct host {
	struct psd_mesh_options options;
	struct psd_mesh_attempt attempt;
	int listener;
	int fds[HOSTS * LINES];
	struct psd_mesh_clock clock;
	enum psd_status status;
	struct psd_error err;
	char remarks[ROOM]; /* a line each */
	unsigned n_tries;
	pthread_t thread;
	atomic_uint n_remarks;
	atomic_bool has_ended;
};

struct cluster {
	struct psd_layout layout;
	struct psd_mesh_host places[HOSTS];
	struct host hosts[HOSTS];
};

static inline void note(void *context, const char *line)
{
	struct host *host = context;
	const size_t length = strlen(host->remarks);

	snprintf(host->remarks + length, ROOM - length, "%s\n", line);
	host->n_remarks++;
}

/* Each host listens, and has options but for its listener and its attempt. */
static inline void open_hosts(struct cluster *cluster)
{
	struct psd_error err;

	*cluster = (struct cluster){.layout = psd_layout_make(HOSTS, 1, 0)};
	for (unsigned h = 0; h < HOSTS; h++) {
		struct host *host = &cluster->hosts[h];

		memcpy(cluster->places[h].address, "127.0.0.1", sizeof("127.0.0.1"));
		host->options = (struct psd_mesh_options){
			.layout = &cluster->layout,
			.hosts = cluster->places,
			.self = h,
			.n_connections = LINES,
			.terms = TERMS,
			.within_sec = LONG_SEC,
			.greeting_sec = LONG_SEC,
			.remind_sec = LONG_SEC,
			.remark = note,
			.context = host,
		};
		cr_assert_eq(psd_socket_listen("127.0.0.1", keep_port(), &plain, &host->listener,
					       &cluster->places[h].port, &err),
			     PSD_OK, "%s", err.text);
	}
}

/* When it has joined, or failed to. */
static inline void await_host(struct host *host)
{
	pthread_join(host->thread, NULL);
	for (unsigned i = 0; i < HOSTS * LINES; i++)
		if (host->fds[i] >= 0)
			close(host->fds[i]);
}

static inline int connect_to(const struct cluster *cluster, unsigned host)
{
	return connect_within("127.0.0.1", cluster->places[host].port, LONG_SEC, &plain);
}

#endif
