/* Everybody listens, connects to the lower numbers, then accepts the higher ones: connections wait in the listeners' queues, so nobody
 * waits in a circle. */
#define _GNU_SOURCE
#include "real/mesh.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "real/socket.h"
#include "real/wire.h"

enum { GREETING_BYTES = PSD_WIRE_HEAD_BYTES + PSD_WIRE_HELLO_BYTES };

static const struct psd_socket_options socket_options = {.has_buffers = false};

static double now_sec(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

char *psd_mesh_name(const struct psd_layout *layout, const struct psd_mesh_host hosts[], unsigned host,
		    char text[PSD_MESH_NAME_MAX])
{
	const bool is_worker = psd_layout_is_worker(layout, host);

	snprintf(text, PSD_MESH_NAME_MAX, "%s %u at %s:%u", is_worker ? "worker" : "server",
		 is_worker ? host : host - layout->workers, hosts[host].address, hosts[host].port);
	return text;
}

static enum psd_status send_greeting(const struct psd_mesh_options *options, int fd, const char *peer, struct psd_error *err)
{
	const struct psd_wire_head head = {.kind = PSD_WIRE_HELLO, .length_bytes = PSD_WIRE_HELLO_BYTES};
	const struct psd_wire_hello hello = {options->self, psd_layout_hosts(options->layout), options->plan_hash};
	uint8_t bytes[GREETING_BYTES];

	psd_wire_encode(&head, bytes);
	psd_wire_encode_hello(&hello, bytes + PSD_WIRE_HEAD_BYTES);
	/* a fresh connection's buffer takes this at once */
	if (send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) != (ssize_t)sizeof(bytes))
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "%s does not take a greeting: %s", peer, strerror(errno));
	return PSD_OK;
}

static enum psd_status read_all(int fd, uint8_t *bytes, size_t n_bytes, double until_sec, const char *peer, struct psd_error *err)
{
	for (size_t at = 0; at < n_bytes;) {
		struct pollfd polled = {.fd = fd, .events = POLLIN};
		const double left_sec = until_sec - now_sec();
		const int n_ready = poll(&polled, 1, left_sec > 0 ? (int)(1000 * left_sec) + 1 : 0);
		ssize_t n_read;

		if (n_ready == 0)
			return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "%s connected and said nothing", peer);
		n_read = recv(fd, bytes + at, n_bytes - at, 0);
		if (n_read == 0)
			return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "%s closed the connection before its greeting", peer);
		if (n_read < 0 && errno != EAGAIN && errno != EINTR)
			return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "%s: %s", peer, strerror(errno));
		at += n_read > 0 ? (size_t)n_read : 0;
	}
	return PSD_OK;
}

static enum psd_status read_greeting(const struct psd_mesh_options *options, int fd, double until_sec, const char *peer,
				     unsigned *host, struct psd_error *err)
{
	const unsigned n_hosts = psd_layout_hosts(options->layout);
	uint8_t bytes[GREETING_BYTES];
	struct psd_wire_hello hello;
	struct psd_wire_head head;
	struct psd_error cause;
	enum psd_status status = read_all(fd, bytes, sizeof(bytes), until_sec, peer, err);

	if (status)
		return status;
	if (psd_wire_decode(bytes, &head, &cause))
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "%s %s", peer, cause.text);
	hello = psd_wire_decode_hello(bytes + PSD_WIRE_HEAD_BYTES);
	if (head.kind != PSD_WIRE_HELLO || hello.n_hosts != n_hosts || hello.host >= n_hosts)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "%s is host %" PRIu32 " of %" PRIu32 ", this run has %u", peer,
				     hello.host, hello.n_hosts, n_hosts);
	if (hello.plan_hash != options->plan_hash)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
				     "%s has another plan (%016" PRIx64 ", here %016" PRIx64
				     "): all need the same scenario and options",
				     peer, hello.plan_hash, options->plan_hash);
	*host = hello.host;
	return PSD_OK;
}

static enum psd_status connect_to(const struct psd_mesh_options *options, unsigned host, double until_sec, int fds[],
				  struct psd_error *err)
{
	char name[PSD_MESH_NAME_MAX], who[32];
	const bool is_worker = psd_layout_is_worker(options->layout, host);
	enum psd_status status;

	snprintf(who, sizeof(who), "%s %u", is_worker ? "worker" : "server", is_worker ? host : host - options->layout->workers);
	status = psd_socket_connect(who, options->hosts[host].address, options->hosts[host].port, until_sec - now_sec(),
				    &socket_options, &fds[host], err);
	return status ? status
		      : send_greeting(options, fds[host], psd_mesh_name(options->layout, options->hosts, host, name), err);
}

static void write_missing(const struct psd_mesh_options *options, const int fds[], char *text, size_t room)
{
	size_t length = (size_t)snprintf(text, room, "hosts");

	for (unsigned h = options->self + 1; h < psd_layout_hosts(options->layout) && length + 16 < room; h++)
		if (fds[h] < 0)
			length += (size_t)snprintf(text + length, room - length, " %u", h);
}

static enum psd_status accept_one(const struct psd_mesh_options *options, int listener, double until_sec, int fds[],
				  struct psd_error *err)
{
	char missing[200];
	unsigned host;
	int fd;
	enum psd_status status;

	write_missing(options, fds, missing, sizeof(missing));
	status = psd_socket_accept(listener, missing, until_sec - now_sec(), &socket_options, &fd, err);
	if (status)
		return status;
	status = read_greeting(options, fd, until_sec, "a host that connected", &host, err);
	if (!status && (host <= options->self || fds[host] >= 0))
		status = psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "two hosts say that they are host %u", host);
	if (status) {
		close(fd);
		return status;
	}
	fds[host] = fd;
	return send_greeting(options, fd, "a host that connected", err);
}

static enum psd_status join_all(const struct psd_mesh_options *options, int listener, int fds[], struct psd_error *err)
{
	const unsigned n_hosts = psd_layout_hosts(options->layout);
	const double until_sec = now_sec() + options->within_sec;
	enum psd_status status = PSD_OK;

	for (unsigned h = 0; h < options->self && !status; h++)
		status = connect_to(options, h, until_sec, fds, err);
	for (unsigned h = options->self + 1; h < n_hosts && !status; h++)
		status = accept_one(options, listener, until_sec, fds, err);
	for (unsigned h = 0; h < options->self && !status; h++) {
		char name[PSD_MESH_NAME_MAX];
		unsigned host;

		psd_mesh_name(options->layout, options->hosts, h, name);
		status = read_greeting(options, fds[h], until_sec, name, &host, err);
		if (!status && host != h)
			status = psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "%s says that it is host %u", name, host);
	}
	return status;
}

enum psd_status psd_mesh_open(const struct psd_mesh_options *options, int fds[], struct psd_error *err)
{
	const unsigned n_hosts = psd_layout_hosts(options->layout);
	const struct psd_mesh_host *own = &options->hosts[options->self];
	int listener = options->listener;
	enum psd_status status = PSD_OK;
	uint16_t port;

	for (unsigned h = 0; h < n_hosts; h++)
		fds[h] = -1;
	if (listener < 0 && n_hosts > 1)
		status = psd_socket_listen(own->address, own->port, &socket_options, &listener, &port, err);
	if (!status)
		status = join_all(options, listener, fds, err);
	if (listener >= 0)
		close(listener);
	for (unsigned h = 0; h < n_hosts && status; h++)
		if (fds[h] >= 0) {
			close(fds[h]);
			fds[h] = -1;
		}
	return status;
}
