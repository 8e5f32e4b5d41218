/* Everybody listens, connects to the lower numbers, then accepts the higher ones: connections wait in the listeners'
 * queues, so nobody waits in a circle. */
#define _POSIX_C_SOURCE 200809L
#include "real/net/mesh.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "real/net/socket.h"
#include "real/net/wire.h"

enum {
	GREETING_BYTES = PSD_WIRE_HEAD_BYTES + PSD_WIRE_HELLO_BYTES,
	CLOCK_BYTES = PSD_WIRE_HEAD_BYTES + PSD_WIRE_CLOCK_BYTES,
	CLOCK_ROUNDS = 8,
};

static const struct psd_socket_options socket_options = {.has_buffers = false};

char *psd_mesh_name(const struct psd_layout *layout, const struct psd_mesh_host hosts[], unsigned host,
		    char text[PSD_MESH_NAME_MAX])
{
	const bool is_worker = psd_layout_is_worker(layout, host);

	snprintf(text, PSD_MESH_NAME_MAX, "%s %u at %s:%u", is_worker ? "worker" : "server",
		 is_worker ? host : host - layout->workers, hosts[host].address, hosts[host].port);
	return text;
}

static enum psd_status send_greeting(const struct psd_mesh_options *options, int fd, unsigned line, const char *peer,
				     struct psd_error *err)
{
	const struct psd_wire_head head = {.kind = PSD_WIRE_HELLO, .length_bytes = PSD_WIRE_HELLO_BYTES};
	const struct psd_wire_hello hello = {options->self, psd_layout_hosts(options->layout), line,
					     options->plan_hash};
	uint8_t bytes[GREETING_BYTES];

	psd_wire_encode(&head, bytes);
	psd_wire_encode_hello(&hello, bytes + PSD_WIRE_HEAD_BYTES);
	return psd_socket_send_small(peer, fd, bytes, sizeof(bytes), err);
}

/* bytes: head and payload, of a message of this kind; its payload begins at PSD_WIRE_HEAD_BYTES. what: "a greeting". */
static enum psd_status read_small(const char *peer, int fd, enum psd_wire_kind kind, const char *what, double until_sec,
				  uint8_t *bytes, size_t n_bytes, struct psd_error *err)
{
	struct psd_wire_head head;
	struct psd_error cause;
	const enum psd_status status = psd_socket_read_all(peer, fd, bytes, n_bytes, until_sec, err);

	if (status)
		return status;
	if (psd_wire_decode(bytes, &head, &cause))
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "%s %s", peer, cause.text);
	if (head.kind != kind)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "%s sent something else than %s", peer, what);
	return PSD_OK;
}

static enum psd_status read_greeting(const struct psd_mesh_options *options, int fd, double until_sec, const char *peer,
				     struct psd_wire_hello *hello, struct psd_error *err)
{
	const unsigned n_hosts = psd_layout_hosts(options->layout);
	uint8_t bytes[GREETING_BYTES];
	const enum psd_status status =
		read_small(peer, fd, PSD_WIRE_HELLO, "a greeting", until_sec, bytes, sizeof(bytes), err);

	if (status)
		return status;
	*hello = psd_wire_decode_hello(bytes + PSD_WIRE_HEAD_BYTES);
	if (hello->n_hosts != n_hosts || hello->host >= n_hosts)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
				     "%s is host %" PRIu32 " of %" PRIu32 ", this run has %u", peer, hello->host,
				     hello->n_hosts, n_hosts);
	if (hello->plan_hash != options->plan_hash)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
				     "%s has another plan (%016" PRIx64 ", here %016" PRIx64
				     "): all need the same scenario and options",
				     peer, hello->plan_hash, options->plan_hash);
	if (hello->line >= options->n_lines)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "%s opens connection %" PRIu32 ", there are %u", peer,
				     hello->line, options->n_lines);
	return PSD_OK;
}

static enum psd_status connect_to(const struct psd_mesh_options *options, unsigned host, unsigned line,
				  double until_sec, int fds[], struct psd_error *err)
{
	const bool is_worker = psd_layout_is_worker(options->layout, host);
	int *fd = &fds[host * options->n_lines + line];
	char name[PSD_MESH_NAME_MAX], who[32];
	enum psd_status status;

	snprintf(who, sizeof(who), "%s %u", is_worker ? "worker" : "server",
		 is_worker ? host : host - options->layout->workers);
	status = psd_socket_connect(who, options->hosts[host].address, options->hosts[host].port,
				    until_sec - psd_socket_now_sec(), &socket_options, fd, err);
	return status ? status
		      : send_greeting(options, *fd, line, psd_mesh_name(options->layout, options->hosts, host, name),
				      err);
}

static bool has_all_lines(const struct psd_mesh_options *options, const int fds[], unsigned host)
{
	for (unsigned line = 0; line < options->n_lines; line++)
		if (fds[host * options->n_lines + line] < 0)
			return false;
	return true;
}

static void write_missing(const struct psd_mesh_options *options, const int fds[], char *text, size_t room)
{
	size_t length = (size_t)snprintf(text, room, "hosts");

	for (unsigned h = options->self + 1; h < psd_layout_hosts(options->layout) && length + 16 < room; h++)
		if (!has_all_lines(options, fds, h))
			length += (size_t)snprintf(text + length, room - length, " %u", h);
}

static enum psd_status accept_one(const struct psd_mesh_options *options, int listener, double until_sec, int fds[],
				  struct psd_error *err)
{
	static const char somebody[] = "a host that connected";
	struct psd_wire_hello hello;
	char missing[200];
	int fd;
	enum psd_status status;

	write_missing(options, fds, missing, sizeof(missing));
	status = psd_socket_accept(listener, missing, until_sec - psd_socket_now_sec(), &socket_options, &fd, err);
	if (status)
		return status;
	status = read_greeting(options, fd, until_sec, somebody, &hello, err);
	if (!status && (hello.host <= options->self || fds[hello.host * options->n_lines + hello.line] >= 0))
		status = psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "two hosts say that they are host %" PRIu32,
				       hello.host);
	if (status) {
		close(fd);
		return status;
	}
	fds[hello.host * options->n_lines + hello.line] = fd;
	return send_greeting(options, fd, hello.line, somebody, err);
}

static enum psd_status hear_from(const struct psd_mesh_options *options, unsigned host, double until_sec,
				 const int fds[], struct psd_error *err)
{
	char name[PSD_MESH_NAME_MAX];
	enum psd_status status = PSD_OK;

	psd_mesh_name(options->layout, options->hosts, host, name);
	for (unsigned line = 0; line < options->n_lines && !status; line++) {
		struct psd_wire_hello hello;

		status = read_greeting(options, fds[host * options->n_lines + line], until_sec, name, &hello, err);
		if (!status && (hello.host != host || hello.line != line))
			status = psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "%s says that it is host %" PRIu32, name,
					       hello.host);
	}
	return status;
}

static enum psd_status join_all(const struct psd_mesh_options *options, int listener, double until_sec, int fds[],
				struct psd_error *err)
{
	const unsigned n_hosts = psd_layout_hosts(options->layout);
	enum psd_status status = PSD_OK;

	for (unsigned h = 0; h < options->self && !status; h++)
		for (unsigned line = 0; line < options->n_lines && !status; line++)
			status = connect_to(options, h, line, until_sec, fds, err);
	for (unsigned i = (n_hosts - options->self - 1) * options->n_lines; i > 0 && !status; i--)
		status = accept_one(options, listener, until_sec, fds, err);
	for (unsigned h = 0; h < options->self && !status; h++)
		status = hear_from(options, h, until_sec, fds, err);
	return status;
}

/* ---- clocks ---- */

static enum psd_status send_clock(const char *peer, int fd, const struct psd_wire_clock *clock, struct psd_error *err)
{
	const struct psd_wire_head head = {.kind = PSD_WIRE_CLOCK, .length_bytes = PSD_WIRE_CLOCK_BYTES};
	uint8_t bytes[CLOCK_BYTES];

	psd_wire_encode(&head, bytes);
	psd_wire_encode_clock(clock, bytes + PSD_WIRE_HEAD_BYTES);
	return psd_socket_send_small(peer, fd, bytes, sizeof(bytes), err);
}

static enum psd_status read_clock(const char *peer, int fd, double until_sec, struct psd_wire_clock *clock,
				  struct psd_error *err)
{
	uint8_t bytes[CLOCK_BYTES];
	const enum psd_status status =
		read_small(peer, fd, PSD_WIRE_CLOCK, "its clock", until_sec, bytes, sizeof(bytes), err);

	if (status)
		return status;
	*clock = psd_wire_decode_clock(bytes + PSD_WIRE_HEAD_BYTES);
	return PSD_OK;
}

/* On host 0: the peer's clock is read half way between asking and hearing, best when that was quick (Cristian 1989). */
static enum psd_status compare_clock(const char *peer, int fd, double until_sec, double *rtt_sec, struct psd_error *err)
{
	struct psd_wire_clock told = {.rtt_sec = INFINITY, .is_last = 1};
	enum psd_status status = PSD_OK;

	for (unsigned round = 0; round < CLOCK_ROUNDS && !status; round++) {
		const struct psd_wire_clock question = {.sec = psd_socket_now_sec()};
		struct psd_wire_clock answer;
		double now_sec;

		status = send_clock(peer, fd, &question, err);
		if (!status)
			status = read_clock(peer, fd, until_sec, &answer, err);
		now_sec = psd_socket_now_sec();
		if (status || now_sec - question.sec >= told.rtt_sec)
			continue;
		told.rtt_sec = now_sec - question.sec;
		told.sec = answer.sec - (question.sec + now_sec) / 2;
	}
	if (status)
		return status;
	if (fabs(told.sec) <= told.rtt_sec / 2)
		told.sec = 0.0;
	if (told.rtt_sec < *rtt_sec)
		*rtt_sec = told.rtt_sec;
	return send_clock(peer, fd, &told, err);
}

static enum psd_status answer_clock(const char *peer, int fd, double until_sec, struct psd_mesh_clock *clock,
				    struct psd_error *err)
{
	for (;;) {
		struct psd_wire_clock told, answer = {.sec = 0.0};
		enum psd_status status = read_clock(peer, fd, until_sec, &told, err);

		if (status)
			return status;
		if (told.is_last) {
			*clock = (struct psd_mesh_clock){told.sec, told.rtt_sec};
			return PSD_OK;
		}
		answer.sec = psd_socket_now_sec();
		status = send_clock(peer, fd, &answer, err);
		if (status)
			return status;
	}
}

static enum psd_status compare_clocks(const struct psd_mesh_options *options, const int fds[], double until_sec,
				      struct psd_mesh_clock *clock, struct psd_error *err)
{
	const unsigned n_hosts = psd_layout_hosts(options->layout);
	struct psd_mesh_clock compared = {0.0, n_hosts > 1 ? INFINITY : 0.0};
	char name[PSD_MESH_NAME_MAX];
	enum psd_status status = PSD_OK;

	if (options->self > 0)
		return answer_clock(psd_mesh_name(options->layout, options->hosts, 0, name), fds[0], until_sec, clock,
				    err);
	for (unsigned h = 1; h < n_hosts && !status; h++)
		status = compare_clock(psd_mesh_name(options->layout, options->hosts, h, name),
				       fds[h * options->n_lines], until_sec, &compared.rtt_sec, err);
	if (!status)
		*clock = compared;
	return status;
}

enum psd_status psd_mesh_open(const struct psd_mesh_options *options, int fds[], struct psd_mesh_clock *clock,
			      struct psd_error *err)
{
	const unsigned n_hosts = psd_layout_hosts(options->layout), n_fds = n_hosts * options->n_lines;
	const struct psd_mesh_host *own = &options->hosts[options->self];
	const double until_sec = psd_socket_now_sec() + options->within_sec;
	int listener = options->listener;
	enum psd_status status = PSD_OK;
	uint16_t port;

	for (unsigned i = 0; i < n_fds; i++)
		fds[i] = -1;
	if (listener < 0 && n_hosts > 1)
		status = psd_socket_listen(own->address, own->port, &socket_options, &listener, &port, err);
	if (!status)
		status = join_all(options, listener, until_sec, fds, err);
	if (!status)
		status = compare_clocks(options, fds, until_sec, clock, err);
	if (listener >= 0)
		close(listener);
	for (unsigned i = 0; i < n_fds && status; i++)
		if (fds[i] >= 0) {
			close(fds[i]);
			fds[i] = -1;
		}
	return status;
}
