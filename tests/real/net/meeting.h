/* Two hosts meet on loopback, one in a thread. */
#ifndef PSD_TESTS_REAL_MEETING_H
#define PSD_TESTS_REAL_MEETING_H

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

static inline void *join(void *context)
{
	struct host *host = context;

	host->status = psd_mesh_open(&host->options, host->fds, &host->clock, &host->err);
	return NULL;
}

/* Both at once. hosts[h].options.n_connections and terms are the caller's. */
static inline void meet(struct host hosts[HOSTS])
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
		hosts[h].options.within_sec = hosts[h].options.greeting_sec = hosts[h].options.remind_sec = 20;
		cr_assert_eq(psd_socket_listen("127.0.0.1", 0, &socket_options, &hosts[h].options.listener,
					       &places[h].port, &err),
			     PSD_OK, "%s", err.text);
	}
	cr_assert_eq(pthread_create(&other, NULL, join, &hosts[1]), 0);
	join(&hosts[0]);
	pthread_join(other, NULL);
}

static inline void part(struct host hosts[HOSTS])
{
	for (unsigned h = 0; h < HOSTS; h++)
		for (unsigned i = 0; !hosts[h].status && i < HOSTS * hosts[h].options.n_connections; i++)
			if (hosts[h].fds[i] >= 0)
				close(hosts[h].fds[i]);
}

#endif
