/* Every host listens, and connects to the hosts with lower numbers. One loop serves all connections. This host knows
 * the peers that it connects to; a process that connects here may be a stranger. */
#define _POSIX_C_SOURCE 200809L
#include "real/net/mesh.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "real/net/joining.h"
#include "real/net/secret.h"

#define FAILURE_SEC 1.0 /* time for several attempts to connect */
#define GRACE_SEC   2.0 /* beyond a peer's own limit, until its reason arrives */

static const struct psd_socket_options socket_options = {.has_buffers = false};

/* ---- the loop ---- */

static void remind(struct psd_joining *joining)
{
	char missing[PSD_MISSING_MAX];
	struct psd_error line;

	if (psd_socket_now_sec() < joining->remind_sec)
		return;
	joining->remind_sec += joining->options->remind_sec;
	psd_joining_write_missing(joining, missing);
	psd_error_set(&line, PSD_ERUN, PSD_NOWHERE, "still waiting for %s", missing);
	if (joining->options->remark && !joining->failure)
		joining->options->remark(joining->options->context, line.text);
}

static int wait_ms(const struct psd_joining *joining)
{
	double wake_sec = fmin(joining->until_sec, joining->remind_sec);

	for (unsigned t = 0; t < joining->n_handshakes; t++)
		wake_sec = fmin(wake_sec, joining->handshakes[t].until_sec);
	for (unsigned h = 0; h < joining->options->self; h++)
		if (!psd_joining_is_settled(joining, h) && !joining->states[h].is_talking)
			wake_sec = fmin(wake_sec, joining->states[h].again_sec);
	return (int)fmax(fmin(1e3 * (wake_sec - psd_socket_now_sec()), 1e6), 0.0) +
	       1; /* rounds up, so as not to spin */
}

static void list_polls(const struct psd_joining *joining)
{
	struct pollfd *poll = joining->polls;

	for (unsigned t = 0; t < joining->n_handshakes; t++)
		*poll++ = (struct pollfd){.fd = joining->handshakes[t].fd,
					  .events = joining->handshakes[t].is_connecting ? POLLOUT : POLLIN};
	for (unsigned h = 0; h < joining->n_hosts; h++)
		*poll++ = (struct pollfd){.fd = joining->states[h].has_more ? -1
									    : *psd_joining_first_connection(joining, h),
					  .events = POLLIN};
	*poll = (struct pollfd){.fd = joining->listener, .events = POLLIN};
}

/* Handshakes are served from the last one down, since the last one moves when another ends. */
static enum psd_status turn(struct psd_joining *joining, struct psd_error *err)
{
	enum psd_status status = psd_handshakes_begin(joining, err);
	const unsigned n_handshakes = joining->n_handshakes;

	list_polls(joining);
	if (status || poll(joining->polls, n_handshakes + joining->n_hosts + 1, wait_ms(joining)) < 0)
		return status;
	for (unsigned t = n_handshakes; t-- > 0 && !status;)
		if (joining->polls[t].revents)
			status = psd_handshake_continue(joining, &joining->handshakes[t], err);
	for (unsigned h = 0; h < joining->n_hosts && !status; h++)
		if (joining->polls[n_handshakes + h].revents)
			status = psd_handshakes_read_joined(joining, h, err);
	if (!status && joining->polls[n_handshakes + joining->n_hosts].revents)
		status = psd_handshakes_accept(joining, err);
	psd_handshakes_drop_silent(joining);
	remind(joining);
	return status;
}

static bool are_all_settled(const struct psd_joining *joining)
{
	for (unsigned h = 0; h < joining->n_hosts; h++)
		if (!psd_joining_is_settled(joining, h))
			return false;
	return true;
}

/* Tells all connected hosts; psd_mesh_report_failure() reaches others. */
static void give_up(struct psd_joining *joining, const struct psd_error *err)
{
	const unsigned n_fds = joining->n_hosts * joining->options->n_connections;
	char name[PSD_MESH_NAME_MAX];
	struct psd_error words;

	psd_error_set(&words, PSD_ERUN, PSD_NOWHERE, "%s: %s", psd_joining_name(joining, joining->options->self, name),
		      err->text);
	for (unsigned t = 0; t < joining->n_handshakes; t++)
		if (!joining->handshakes[t].is_connecting)
			psd_joining_say_failed(joining, joining->handshakes[t].fd, err->status, words.text);
	for (unsigned i = 0; i < n_fds; i++) {
		if (joining->fds[i] < 0)
			continue;
		if (i % joining->options->n_connections == 0)
			psd_joining_say_failed(joining, joining->fds[i], err->status, words.text);
		psd_secret_end(joining->options->secret, joining->fds[i]);
		close(joining->fds[i]);
		joining->fds[i] = -1;
	}
}

/* Closes all connections of the attempt that is over; peers are told. */
static void begin_anew(struct psd_joining *joining, const struct psd_error *err)
{
	struct psd_mesh_attempt *attempt = joining->options->attempt;
	struct psd_error line;

	psd_error_set(&line, PSD_ELOST, PSD_NOWHERE, "%s: joining again", err->text);
	if (joining->options->remark && !joining->is_behind)
		joining->options->remark(joining->options->context, line.text);
	give_up(joining, err);
	while (joining->n_handshakes > 0)
		psd_handshake_end(joining, joining->handshakes);
	for (unsigned h = 0; h < joining->n_hosts; h++)
		joining->states[h] =
			(struct psd_joining_host){.found = joining->states[h].found, .pause_sec = PSD_FIRST_PAUSE_SEC};
	joining->refused = joining->n_hosts;
	joining->is_behind = false;
	attempt->number = attempt->next_number;
	attempt->next_number = attempt->number + 1;
}

static enum psd_status settle_all(struct psd_joining *joining, struct psd_error *err)
{
	while (!are_all_settled(joining))
		PSD_TRY(psd_socket_now_sec() < joining->until_sec ? turn(joining, err)
								  : psd_joining_give_up(joining, err));
	return PSD_OK;
}

/* True if hosts join again after this status. It may come while clocks are compared, too: hosts that are all connected
 * with this one may still miss each other. */
static bool joins_again(const struct psd_joining *joining, enum psd_status status)
{
	return status == PSD_ELOST && joining->options->attempt && !joining->options->is_addition &&
	       !joining->is_too_late && psd_socket_now_sec() < joining->until_sec;
}

static enum psd_status join_all(struct psd_joining *joining, struct psd_mesh_clock *clock, struct psd_error *err)
{
	const struct psd_mesh_options *options = joining->options;

	for (;;) {
		enum psd_status status = settle_all(joining, err);

		if (!status)
			/* a peer may still wait for another host, and its limit began before it joined this one */
			status = psd_clocks_compare(options, joining->fds,
						    psd_socket_now_sec() + options->within_sec + GRACE_SEC, clock, err);
		if (!joins_again(joining, status))
			return status;
		begin_anew(joining, err);
	}
}

/* ---- opening and closing ---- */

enum psd_status psd_mesh_listen(const struct psd_mesh_host *self, int *listener, struct psd_error *err)
{
	uint16_t port; /* the same */

	return psd_socket_listen(self->address, self->port, &socket_options, listener, &port, err);
}

static enum psd_status open_joining(struct psd_joining *joining, struct psd_error *err)
{
	joining->most_handshakes = PSD_MOST_STRANGERS + joining->options->self;
	joining->states = calloc(joining->n_hosts, sizeof(*joining->states));
	joining->handshakes = calloc(joining->most_handshakes, sizeof(*joining->handshakes));
	joining->polls = calloc(joining->most_handshakes + joining->n_hosts + 1, sizeof(*joining->polls));
	if (!joining->states || !joining->handshakes || !joining->polls)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for %u hosts", joining->n_hosts);
	for (unsigned h = 0; h < joining->n_hosts; h++)
		joining->states[h].pause_sec = PSD_FIRST_PAUSE_SEC;
	if (joining->listener >= 0 || joining->n_hosts == 1)
		return PSD_OK;
	return psd_mesh_listen(&joining->options->hosts[joining->options->self], &joining->listener, err);
}

/* Checks the limit of open files: with too few, hosts would join and be dropped until the time is over. This host needs
 * no connections to itself; strangers get that share. */
static enum psd_status check_files(struct psd_joining *joining, struct psd_error *err)
{
	const unsigned n_needed = joining->n_hosts * joining->options->n_connections;
	unsigned n_opened = 0;

	if (joining->n_hosts == 1)
		return PSD_OK;
	while (n_opened < n_needed && (joining->fds[n_opened] = dup(joining->listener)) >= 0)
		n_opened++;
	const int error = errno;
	for (unsigned i = 0; i < n_opened; i++) {
		close(joining->fds[i]);
		joining->fds[i] = -1;
	}
	if (n_opened == n_needed)
		return PSD_OK;
	return psd_error_set(
		err, PSD_ERUN, PSD_NOWHERE,
		"%u files are needed for connections with other hosts, and this one can open no more than %u: "
		"%s (ulimit -n)",
		n_needed, n_opened, strerror(error));
}

static void close_joining(struct psd_joining *joining)
{
	while (joining->handshakes && joining->n_handshakes > 0)
		psd_handshake_end(joining, joining->handshakes);
	for (unsigned h = 0; joining->states && h < joining->n_hosts; h++)
		if (joining->states[h].found)
			freeaddrinfo(joining->states[h].found);
	if (joining->listener >= 0)
		close(joining->listener);
	free(joining->states);
	free(joining->handshakes);
	free(joining->polls);
}

static struct psd_joining make_joining(const struct psd_mesh_options *options, int fds[])
{
	const double now_sec = psd_socket_now_sec();
	struct psd_joining joining = {
		.options = options,
		.n_hosts = psd_layout_hosts(options->layout),
		.fds = fds,
		.listener = options->listener,
		.until_sec = now_sec + options->within_sec,
		.remind_sec = now_sec + options->remind_sec,
	};

	joining.refused = joining.n_hosts;
	if (options->attempt)
		options->attempt->next_number = options->attempt->number + 1;
	for (unsigned i = 0; i < joining.n_hosts * options->n_connections; i++)
		fds[i] = -1;
	return joining;
}

enum psd_status psd_mesh_open(const struct psd_mesh_options *options, int fds[], struct psd_mesh_clock *clock,
			      struct psd_error *err)
{
	struct psd_joining joining = make_joining(options, fds);
	enum psd_status status = open_joining(&joining, err);

	if (!status)
		status = check_files(&joining, err);
	if (!status)
		status = join_all(&joining, clock, err);
	if (status)
		give_up(&joining, err);
	close_joining(&joining);
	return status;
}

void psd_mesh_report_failure(const struct psd_mesh_host hosts[], unsigned n_hosts, unsigned self, uint64_t run_hash,
			     struct psd_secret *secret, const char *words)
{
	const struct psd_layout layout = psd_layout_make(n_hosts, 1, 0);
	const struct psd_mesh_options options = {
		.layout = &layout,
		.hosts = hosts,
		.self = self,
		.n_connections = 1,
		.secret = secret,
		.listener = -1,
		.run_hash = run_hash,
		.terms = "",
		.within_sec = FAILURE_SEC,
		.greeting_sec = FAILURE_SEC,
		.remind_sec = INFINITY,
	};
	int *fds = calloc(n_hosts, sizeof(*fds));
	struct psd_error line, ignored;

	if (!fds)
		return;
	psd_error_set(&line, PSD_ERUN, PSD_NOWHERE, "host %u at %s:%u: %s", self, hosts[self].address, hosts[self].port,
		      words);
	struct psd_joining joining = make_joining(&options, fds);
	joining.failure = line.text;
	enum psd_status status = open_joining(&joining, &ignored);
	if (status != PSD_ENOMEM) /* without a listener only lower hosts hear it */
		status = settle_all(&joining, &ignored);
	(void)status; /* absent hosts are not told */
	close_joining(&joining);
	free(fds);
}
