/* Everybody listens, connects to the lower numbers, then accepts the higher ones: connections wait in the listeners'
 * queues, so nobody waits in a circle. */
#define _POSIX_C_SOURCE 200809L
#include "real/net/mesh.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/scenario/scenario_agree.h"
#include "real/net/socket.h"
#include "real/net/wire.h"

enum {
	GREETING_BYTES = PSD_WIRE_HEAD_BYTES + PSD_WIRE_HELLO_BYTES,
	CLOCK_BYTES = PSD_WIRE_HEAD_BYTES + PSD_WIRE_CLOCK_BYTES,
	CLOCK_ROUNDS = 8,
};

#define GRACE_SEC 1.0 /* after the first difference, for the others to hear of theirs */

static const struct psd_socket_options socket_options = {.has_buffers = false};
static const char somebody[] = "a host that connected";

char *psd_mesh_name(const struct psd_layout *layout, const struct psd_mesh_host hosts[], unsigned host,
		    char text[PSD_MESH_NAME_MAX])
{
	const bool is_worker = psd_layout_is_worker(layout, host);

	snprintf(text, PSD_MESH_NAME_MAX, "%s %u at %s:%u", is_worker ? "worker" : "server",
		 is_worker ? host : host - layout->workers, hosts[host].address, hosts[host].port);
	return text;
}

/* While hosts join. Who has other terms is told of it before this host gives up, and so tells itself. */
struct joining {
	const struct psd_mesh_options *options;
	int *fds;
	int listener;
	double until_sec;
	unsigned n_lines; /* that hosts have opened so far: the first to compare terms, then all */
	bool has_difference;
	struct psd_error difference; /* the first */
};

static enum psd_status send_greeting(const struct joining *joining, int fd, unsigned line, const char *peer,
				     struct psd_error *err)
{
	const struct psd_mesh_options *options = joining->options;
	const struct psd_wire_head head = {.kind = PSD_WIRE_HELLO, .length_bytes = PSD_WIRE_HELLO_BYTES};
	const size_t terms_bytes = line == 0 ? strlen(options->terms) : 0;
	const struct psd_wire_hello hello = {options->self, psd_layout_hosts(options->layout), line, terms_bytes};
	uint8_t bytes[GREETING_BYTES];
	enum psd_status status;

	psd_wire_encode(&head, bytes);
	psd_wire_encode_hello(&hello, bytes + PSD_WIRE_HEAD_BYTES);
	status = psd_socket_send_small(peer, fd, bytes, sizeof(bytes), err);
	if (status || terms_bytes == 0)
		return status;
	return psd_socket_send_small(peer, fd, (const uint8_t *)options->terms, terms_bytes, err);
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

/* One difference is enough, and soon all others will have heard of theirs. */
static void compare_terms(struct joining *joining, const char *peer, const char *terms)
{
	struct psd_text words = {.bytes = NULL};

	if (!psd_agreed_find_difference(joining->options->terms, terms, &words))
		return;
	if (!joining->has_difference)
		psd_error_set(&joining->difference, PSD_ERUN, PSD_NOWHERE,
			      "%s has another scenario or other options: %s", peer, words.bytes ? words.bytes : "");
	joining->has_difference = true;
	joining->until_sec = fmin(joining->until_sec, psd_socket_now_sec() + GRACE_SEC);
	psd_text_release(&words);
}

static enum psd_status read_terms(struct joining *joining, int fd, const char *peer, uint64_t n_bytes,
				  struct psd_error *err)
{
	enum psd_status status;
	char *terms;

	if (n_bytes > PSD_MESH_TERMS_MAX)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
				     "%s sent terms of %" PRIu64 " bytes, at most %d are read", peer, n_bytes,
				     PSD_MESH_TERMS_MAX);
	terms = calloc(1, (size_t)n_bytes + 1);
	if (!terms)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
	status = psd_socket_read_all(peer, fd, (uint8_t *)terms, (size_t)n_bytes, joining->until_sec, err);
	if (!status)
		compare_terms(joining, peer, terms);
	free(terms);
	return status;
}

/* peer: its name; NULL where only the greeting tells it. */
static enum psd_status read_greeting(struct joining *joining, int fd, const char *peer, struct psd_wire_hello *hello,
				     struct psd_error *err)
{
	const struct psd_mesh_options *options = joining->options;
	const unsigned n_hosts = psd_layout_hosts(options->layout);
	const char *who = peer ? peer : somebody;
	char name[PSD_MESH_NAME_MAX];
	uint8_t bytes[GREETING_BYTES];
	const enum psd_status status =
		read_small(who, fd, PSD_WIRE_HELLO, "a greeting", joining->until_sec, bytes, sizeof(bytes), err);

	if (status)
		return status;
	*hello = psd_wire_decode_hello(bytes + PSD_WIRE_HEAD_BYTES);
	if (hello->n_hosts != n_hosts || hello->host >= n_hosts)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
				     "%s is host %" PRIu32 " of %" PRIu32 ", this run has %u", who, hello->host,
				     hello->n_hosts, n_hosts);
	if (hello->line == 0)
		return read_terms(joining, fd, psd_mesh_name(options->layout, options->hosts, hello->host, name),
				  hello->terms_bytes, err);
	if (hello->line >= options->n_lines)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "%s opens connection %" PRIu32 ", there are %u", who,
				     hello->line, options->n_lines);
	return PSD_OK;
}

static enum psd_status connect_to(const struct joining *joining, unsigned host, unsigned line, struct psd_error *err)
{
	const struct psd_mesh_options *options = joining->options;
	const bool is_worker = psd_layout_is_worker(options->layout, host);
	int *fd = &joining->fds[host * options->n_lines + line];
	char name[PSD_MESH_NAME_MAX], who[32];
	enum psd_status status;

	snprintf(who, sizeof(who), "%s %u", is_worker ? "worker" : "server",
		 is_worker ? host : host - options->layout->workers);
	status = psd_socket_connect(who, options->hosts[host].address, options->hosts[host].port,
				    joining->until_sec - psd_socket_now_sec(), &socket_options, fd, err);
	return status ? status
		      : send_greeting(joining, *fd, line, psd_mesh_name(options->layout, options->hosts, host, name),
				      err);
}

static bool has_lines(const struct joining *joining, unsigned host)
{
	for (unsigned line = 0; line < joining->n_lines; line++)
		if (joining->fds[host * joining->options->n_lines + line] < 0)
			return false;
	return true;
}

/* Higher hosts that are to come. False: none. */
static bool write_missing(const struct joining *joining, char *text, size_t room)
{
	size_t length = (size_t)snprintf(text, room, "hosts");
	bool is_any = false;

	for (unsigned h = joining->options->self + 1; h < psd_layout_hosts(joining->options->layout); h++) {
		if (has_lines(joining, h))
			continue;
		is_any = true;
		if (length + 16 < room)
			length += (size_t)snprintf(text + length, room - length, " %u", h);
	}
	return is_any;
}

static enum psd_status accept_one(struct joining *joining, const char *missing, struct psd_error *err)
{
	const struct psd_mesh_options *options = joining->options;
	struct psd_wire_hello hello;
	int fd, *place;
	enum psd_status status = psd_socket_accept(
		joining->listener, missing, joining->until_sec - psd_socket_now_sec(), &socket_options, &fd, err);

	if (status)
		return status;
	status = read_greeting(joining, fd, NULL, &hello, err);
	if (!status) {
		place = &joining->fds[hello.host * options->n_lines + hello.line];
		if (hello.host <= options->self || *place >= 0)
			status = psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "two hosts say that they are host %" PRIu32,
					       hello.host);
	}
	if (status) {
		close(fd);
		return status;
	}
	*place = fd;
	return send_greeting(joining, fd, hello.line, somebody, err);
}

static enum psd_status hear_from(struct joining *joining, unsigned host, unsigned line, struct psd_error *err)
{
	const struct psd_mesh_options *options = joining->options;
	struct psd_wire_hello hello;
	char name[PSD_MESH_NAME_MAX];
	enum psd_status status;

	psd_mesh_name(options->layout, options->hosts, host, name);
	status = read_greeting(joining, joining->fds[host * options->n_lines + line], name, &hello, err);
	if (!status && (hello.host != host || hello.line != line))
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "%s says that it is host %" PRIu32, name, hello.host);
	return status;
}

/* Opens the lines from `first` up to joining->n_lines to every other host. */
static enum psd_status open_lines(struct joining *joining, unsigned first, struct psd_error *err)
{
	const unsigned self = joining->options->self;
	enum psd_status status = PSD_OK;
	char missing[200];

	for (unsigned h = 0; h < self; h++)
		for (unsigned line = first; line < joining->n_lines && !status; line++)
			status = connect_to(joining, h, line, err);
	while (!status && write_missing(joining, missing, sizeof(missing)))
		status = accept_one(joining, missing, err);
	for (unsigned h = 0; h < self; h++)
		for (unsigned line = first; line < joining->n_lines && !status; line++)
			status = hear_from(joining, h, line, err);
	return status;
}

/* On the first line everybody hears everybody's terms before anybody gives up. */
static enum psd_status join_all(struct joining *joining, struct psd_error *err)
{
	enum psd_status status;

	joining->n_lines = 1;
	status = open_lines(joining, 0, err);
	if (joining->has_difference) {
		*err = joining->difference;
		return PSD_ERUN;
	}
	joining->n_lines = joining->options->n_lines;
	return status ? status : open_lines(joining, 1, err);
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
	struct joining joining = {
		.options = options,
		.fds = fds,
		.listener = options->listener,
		.until_sec = psd_socket_now_sec() + options->within_sec,
	};
	enum psd_status status = PSD_OK;
	uint16_t port;

	for (unsigned i = 0; i < n_fds; i++)
		fds[i] = -1;
	if (joining.listener < 0 && n_hosts > 1)
		status = psd_socket_listen(own->address, own->port, &socket_options, &joining.listener, &port, err);
	if (!status)
		status = join_all(&joining, err);
	if (!status)
		status = compare_clocks(options, fds, joining.until_sec, clock, err);
	if (joining.listener >= 0)
		close(joining.listener);
	for (unsigned i = 0; i < n_fds && status; i++)
		if (fds[i] >= 0) {
			close(fds[i]);
			fds[i] = -1;
		}
	return status;
}
