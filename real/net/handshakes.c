/* Connections whose ends do not know each other yet. An error on a connection that this host opened ends the joining; a
 * faulty one that another process opened is dropped. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "real/net/joining.h"
#include "real/net/secret.h"

#define MAX_PAUSE_SEC 0.1
#define STRANGE                                                                                                        \
	"did not prove that it knows this run's secret: '--secret' must name the same bytes on all hosts, or on "      \
	"none. Bytes that were damaged on their way look the same"

static const struct psd_socket_options socket_options = {.has_buffers = false};

/* ---- beginning and end ---- */

void psd_handshake_end(struct psd_joining *joining, struct psd_handshake *handshake)
{
	psd_secret_end(joining->options->secret, handshake->fd);
	if (handshake->fd >= 0)
		close(handshake->fd);
	if (handshake->is_ours)
		joining->states[handshake->host].is_talking = false;
	psd_greeting_release(&handshake->greeting);
	*handshake = joining->handshakes[--joining->n_handshakes];
}

static void try_again_later(struct psd_joining *joining, unsigned host, int error)
{
	struct psd_joining_host *state = &joining->states[host];

	state->error = error;
	state->again_sec = psd_socket_now_sec() + state->pause_sec;
	state->pause_sec = fmin(2 * state->pause_sec, MAX_PAUSE_SEC);
}

/* Ends a handshake, and tells the other end the reason in words. Always returns PSD_OK. */
static enum psd_status refuse(struct psd_joining *joining, struct psd_handshake *handshake, const char *words)
{
	char name[PSD_MESH_NAME_MAX];
	struct psd_error line;

	if (!handshake->is_refused)
		psd_joining_remark(joining, "refused", handshake->name, words);
	psd_error_set(&line, PSD_ERUN, PSD_NOWHERE, "%s refused %s: %s",
		      psd_joining_name(joining, joining->options->self, name), handshake->name, words);
	psd_joining_say_refused(joining->options->secret, handshake->fd, line.text);
	psd_handshake_end(joining, handshake);
	return PSD_OK;
}

/* Refuses a stranger, which is told nothing else. Always returns PSD_OK. */
static enum psd_status refuse_strange(struct psd_joining *joining, struct psd_handshake *handshake)
{
	char name[PSD_MESH_NAME_MAX];
	struct psd_error line;

	psd_joining_remark(joining, "refused", handshake->name, STRANGE);
	psd_error_set(&line, PSD_ERUN, PSD_NOWHERE, "%s refused %s: it " STRANGE,
		      psd_joining_name(joining, joining->options->self, name), handshake->name);
	psd_joining_say_refused(NULL, handshake->fd, line.text);
	psd_handshake_end(joining, handshake);
	return PSD_OK;
}

/* Returns false if there is none. words: the reason. */
static bool drop_oldest_stranger(struct psd_joining *joining, const char *words)
{
	struct psd_handshake *oldest = NULL;

	for (unsigned t = 0; t < joining->n_handshakes; t++)
		if (!joining->handshakes[t].is_ours &&
		    (!oldest || joining->handshakes[t].until_sec < oldest->until_sec))
			oldest = &joining->handshakes[t];
	if (oldest)
		(void)refuse(joining, oldest, words);
	return oldest;
}

/* Tries to free a descriptor after an error; true: there is one. */
static bool make_room(struct psd_joining *joining, int error)
{
	return (error == EMFILE || error == ENFILE) &&
	       drop_oldest_stranger(joining, "is silent, and this host can open no more files (ulimit -n)");
}

static struct psd_handshake *add_handshake(struct psd_joining *joining, int fd)
{
	if (joining->n_handshakes == joining->most_handshakes)
		/* this host has opened fewer */
		(void)drop_oldest_stranger(joining, "is silent, and too many others connect");
	struct psd_handshake *handshake = &joining->handshakes[joining->n_handshakes++];
	*handshake = (struct psd_handshake){.fd = fd};
	return handshake;
}

/* error: 0 if the peer closed it; EACCES if it does not know the secret. */
static enum psd_status lose(struct psd_joining *joining, struct psd_handshake *handshake, int error,
			    struct psd_error *err)
{
	const char *how = error ? strerror(error) : "closed the connection before greeting";

	if (error == EACCES && joining->options->secret && !handshake->is_connecting) {
		if (!handshake->is_ours)
			return refuse_strange(joining, handshake);
		if (joining->failure) {
			joining->states[handshake->host].is_told = true; /* as far as possible */
			psd_handshake_end(joining, handshake);
			return PSD_OK;
		}
		if (!psd_socket_is_to_itself(handshake->fd))
			return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "%s " STRANGE, handshake->name);
	}
	if (!handshake->is_ours && !handshake->is_refused)
		psd_joining_remark(joining, "dropped", handshake->name, how);
	if (handshake->is_ours && error && !psd_socket_may_pass(error) && !joining->failure)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot connect to %s: %s", handshake->name, how);
	if (handshake->is_ours)
		try_again_later(joining, handshake->host, error);
	psd_handshake_end(joining, handshake);
	return PSD_OK;
}

static enum psd_status begin_handshake(struct psd_joining *joining, unsigned host, struct psd_error *err)
{
	struct psd_joining_host *state = &joining->states[host];
	const struct psd_mesh_host *place = &joining->options->hosts[host];
	int fd = -1, error;

	if (!state->found)
		PSD_TRY(psd_socket_look_up(place->address, place->port, &state->found, err));
	state->next = state->next ? state->next : state->found;
	error = psd_socket_connect(state->next, &socket_options, &fd);
	if (make_room(joining, error))
		error = EAGAIN;
	state->next = state->next->ai_next;
	struct psd_handshake *handshake = add_handshake(joining, fd);
	handshake->is_ours = handshake->is_connecting = state->is_talking = true;
	handshake->host = host;
	handshake->connection = joining->failure ? 0 : psd_joining_next_connection(joining, host);
	handshake->until_sec = psd_socket_now_sec() + joining->options->greeting_sec;
	psd_joining_name(joining, host, handshake->name);
	return error ? lose(joining, handshake, error, err) : PSD_OK;
}

enum psd_status psd_handshakes_begin(struct psd_joining *joining, struct psd_error *err)
{
	for (unsigned h = 0; h < joining->options->self; h++)
		if (!psd_joining_is_settled(joining, h) && !joining->states[h].is_talking &&
		    psd_socket_now_sec() >= joining->states[h].again_sec)
			PSD_TRY(begin_handshake(joining, h, err));
	return PSD_OK;
}

enum psd_status psd_handshakes_accept(struct psd_joining *joining, struct psd_error *err)
{
	for (unsigned i = 0; i < PSD_MOST_STRANGERS; i++) {
		char from[PSD_SOCKET_PLACE_MAX];
		struct psd_handshake *handshake;
		int fd;
		const int error = psd_socket_accept(joining->listener, &socket_options, &fd, from);

		if (make_room(joining, error))
			continue;
		if (error == EMFILE || error == ENFILE || error == EBADF || error == ENOMEM)
			return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot accept connections: %s",
					     strerror(error));
		if (error) /* nobody listens, or the peer has gone again */
			break;
		handshake = add_handshake(joining, fd);
		handshake->until_sec = psd_socket_now_sec() + joining->options->greeting_sec;
		snprintf(handshake->name, sizeof(handshake->name), "a connection from %s", from);
		if (!psd_secret_begin(joining->options->secret, fd, joining->options->self, false, 0))
			return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a connection");
	}
	return PSD_OK;
}

/* ---- messages ---- */

static enum psd_status settle(struct psd_joining *joining, struct psd_handshake *handshake, unsigned host,
			      unsigned connection)
{
	psd_joining_first_connection(joining, host)[connection] = handshake->fd;
	handshake->fd = -1;
	joining->states[host].pause_sec = PSD_FIRST_PAUSE_SEC;
	psd_handshake_end(joining, handshake);
	return PSD_OK;
}

/* True if the peer gives up an attempt, not the run. */
static bool will_come_again(const struct psd_joining *joining, const struct psd_wire_head *head)
{
	return joining->options->attempt && psd_wire_status(head) == PSD_ELOST;
}

/* Compares a greeting's attempt with this one. PSD_ELOST: this attempt is over. name: of the peer. */
static enum psd_status compare_attempts(struct psd_joining *joining, const struct psd_wire_hello *hello,
					const char *name, bool *is_of_this, struct psd_error *err)
{
	struct psd_mesh_attempt *attempt = joining->options->attempt;

	/* a host that never joins again has other terms, compared next */
	*is_of_this = !attempt || hello->first_iteration == PSD_WIRE_NO_ATTEMPT ||
		      (hello->attempt == attempt->number &&
		       (hello->connection > 0 || hello->first_iteration == attempt->first_iteration));
	if (*is_of_this || hello->attempt < attempt->number)
		return PSD_OK;
	if (hello->attempt > attempt->number) {
		attempt->next_number = hello->attempt;
		joining->is_behind = true;
		return psd_error_set(err, PSD_ELOST, PSD_NOWHERE,
				     "%s started to join again while others were still joining", name);
	}
	if (hello->first_iteration > attempt->first_iteration)
		return PSD_OK;
	attempt->first_iteration = hello->first_iteration;
	joining->is_too_late = true;
	return psd_error_set(err, PSD_ELOST, PSD_NOWHERE, "%s has no checkpoint of more than %" PRIu32 " iterations",
			     name, hello->first_iteration);
}

/* A peer says that a host gives up. That counts only if the host is expected, has the same list of hosts, and has
 * joined as often: another run on the same hosts must not end this one. */
static enum psd_status take_failed(struct psd_joining *joining, struct psd_handshake *handshake, struct psd_error *err)
{
	const struct psd_wire_failed *failed = &handshake->greeting.failed;
	char words[160];

	if (will_come_again(joining, &handshake->greeting.head)) {
		psd_handshake_end(joining, handshake);
		return PSD_OK;
	}
	if (failed->n_hosts == joining->n_hosts && failed->host < failed->n_hosts &&
	    !psd_joining_is_settled(joining, failed->host) &&
	    (failed->hosts_hash == psd_joining_hash(joining) || failed->host == joining->refused)) {
		if (failed->host == joining->refused)
			*err = joining->difference;
		else
			psd_error_set(err, psd_wire_status(&handshake->greeting.head), PSD_NOWHERE, "%s",
				      failed->words);
		return err->status;
	}
	snprintf(words, sizeof(words),
		 "says that host %" PRIu32 " of %" PRIu32 " gives up, which this run does not wait for", failed->host,
		 failed->n_hosts);
	return refuse(joining, handshake, words);
}

static const char *find_strangeness(const struct psd_joining *joining, const struct psd_wire_hello *hello,
				    char text[160])
{
	const unsigned n_hosts = joining->n_hosts, self = joining->options->self;

	if (hello->n_hosts != n_hosts || hello->host >= n_hosts)
		snprintf(text, 160, "is host %" PRIu32 " of %" PRIu32 ", this run has %u", hello->host, hello->n_hosts,
			 n_hosts);
	else if (hello->host <= self)
		snprintf(text, 160, "says that it is host %" PRIu32 ", which is %s", hello->host,
			 hello->host == self ? "this one" : "to be connected to");
	else
		return NULL;
	return text;
}

static const char *find_mistake(const struct psd_joining *joining, const struct psd_wire_hello *hello, char text[160])
{
	if (psd_joining_next_connection(joining, hello->host) == joining->options->n_connections)
		snprintf(text, 160, "says that it is host %" PRIu32 ", which is here already", hello->host);
	else if (hello->connection != psd_joining_next_connection(joining, hello->host))
		snprintf(text, 160, "opens connection %" PRIu32 " of host %" PRIu32 ", the next is %u",
			 hello->connection, hello->host, psd_joining_next_connection(joining, hello->host));
	else
		return NULL;
	return text;
}

/* Remarks that a host greeted in vain; it will give up or come again. */
static void greet_in_vain(struct psd_joining *joining, struct psd_handshake *handshake)
{
	(void)psd_joining_greet(joining, handshake->fd, handshake->greeting.hello.connection);
	handshake->is_refused = true;
	psd_greeting_release(&handshake->greeting);
}

/* Accepts a greeting of a host of this run. */
static enum psd_status take_host(struct psd_joining *joining, struct psd_handshake *handshake, struct psd_error *err)
{
	const struct psd_wire_hello hello = handshake->greeting.hello;
	char text[160], name[PSD_MESH_NAME_MAX];

	if (hello.connection == 0 && joining->options->attempt &&
	    *psd_joining_first_connection(joining, hello.host) >= 0)
		return psd_error_set(err, PSD_ELOST, PSD_NOWHERE, "%s was started again",
				     psd_joining_name(joining, hello.host, name));
	if (find_mistake(joining, &hello, text))
		return refuse(joining, handshake, text);
	if (hello.connection == 0 &&
	    psd_joining_find_difference(joining, hello.host, handshake->greeting.terms, &joining->difference)) {
		psd_joining_remark(joining, "refused", handshake->name, joining->difference.text);
		joining->refused = hello.host;
		greet_in_vain(joining, handshake);
		return PSD_OK;
	}
	return psd_joining_greet(joining, handshake->fd, hello.connection)
		       ? settle(joining, handshake, hello.host, hello.connection)
		       : lose(joining, handshake, 0, err);
}

static enum psd_status take_stranger(struct psd_joining *joining, struct psd_handshake *handshake,
				     struct psd_error *err)
{
	const struct psd_wire_hello hello = handshake->greeting.hello;
	char text[160], name[PSD_MESH_NAME_MAX];
	bool is_of_this;

	if (handshake->greeting.head.kind == PSD_WIRE_FAILED)
		return take_failed(joining, handshake, err);
	if (find_strangeness(joining, &hello, text))
		return refuse(joining, handshake, text);
	PSD_TRY(compare_attempts(joining, &hello, psd_joining_name(joining, hello.host, name), &is_of_this, err));
	if (is_of_this)
		return take_host(joining, handshake, err);
	if (hello.connection == 0)
		greet_in_vain(joining, handshake);
	else
		psd_handshake_end(joining, handshake);
	return PSD_OK;
}

/* The failure is not a refusal of this host, which has no hash, and its run has another one. */
static bool is_of_another_run(const struct psd_joining *joining, const struct psd_handshake *handshake)
{
	const uint64_t hash = handshake->greeting.failed.hosts_hash;

	return hash != 0 && hash != psd_joining_hash(joining);
}

static enum psd_status take_answer(struct psd_joining *joining, struct psd_handshake *handshake, struct psd_error *err)
{
	const struct psd_wire_hello *hello = &handshake->greeting.hello;
	bool is_of_this;

	if (handshake->greeting.head.kind == PSD_WIRE_FAILED && will_come_again(joining, &handshake->greeting.head))
		return lose(joining, handshake, 0, err);
	if (handshake->greeting.head.kind == PSD_WIRE_FAILED && is_of_another_run(joining, handshake)) {
		psd_joining_remark(joining, "another run ends at", handshake->name, handshake->greeting.failed.words);
		return lose(joining, handshake, 0, err);
	}
	if (handshake->greeting.head.kind == PSD_WIRE_FAILED)
		return psd_error_set(err, psd_wire_status(&handshake->greeting.head), PSD_NOWHERE, "%s",
				     handshake->greeting.failed.words);
	if (hello->host == joining->options->self) /* by chance TCP has connected this port to itself */
		return lose(joining, handshake, 0, err);
	if (hello->host != handshake->host || hello->connection != handshake->connection ||
	    hello->n_hosts != joining->n_hosts)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
				     "%s says that it is host %" PRIu32 " of %" PRIu32 ", connection %" PRIu32
				     ", must be host %u of %u, connection %u",
				     handshake->name, hello->host, hello->n_hosts, hello->connection, handshake->host,
				     joining->n_hosts, handshake->connection);
	PSD_TRY(compare_attempts(joining, hello, handshake->name, &is_of_this, err));
	if (!is_of_this)
		return lose(joining, handshake, 0, err);
	if (handshake->connection == 0 &&
	    psd_joining_find_difference(joining, handshake->host, handshake->greeting.terms, err))
		return PSD_ERUN;
	return settle(joining, handshake, handshake->host, handshake->connection);
}

static enum psd_status tell_failure(struct psd_joining *joining, struct psd_handshake *handshake, uint32_t host)
{
	psd_joining_say_failed(joining, handshake->fd, PSD_ERUN, joining->failure);
	if (host < joining->n_hosts)
		joining->states[host].is_told = true;
	psd_handshake_end(joining, handshake);
	return PSD_OK;
}

/* Ends the proof of the secret on a connection that this host opened. */
static enum psd_status finish_proving(struct psd_joining *joining, struct psd_handshake *handshake,
				      struct psd_error *err)
{
	const int error = psd_secret_prove(joining->options->secret, handshake->fd);

	if (error == EAGAIN)
		return PSD_OK;
	if (error)
		return lose(joining, handshake, error, err);
	handshake->is_proving = false;
	if (joining->failure)
		return tell_failure(joining, handshake, handshake->host);
	return psd_joining_greet(joining, handshake->fd, handshake->connection) ? PSD_OK
										: lose(joining, handshake, 0, err);
}

static enum psd_status finish_connecting(struct psd_joining *joining, struct psd_handshake *handshake,
					 struct psd_error *err)
{
	const int error = psd_socket_error(handshake->fd);

	if (error)
		return lose(joining, handshake, error, err);
	handshake->is_connecting = false;
	handshake->until_sec = INFINITY;
	if (!psd_secret_begin(joining->options->secret, handshake->fd, joining->options->self, true, handshake->host))
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a connection");
	handshake->is_proving = true;
	return finish_proving(joining, handshake, err);
}

enum psd_status psd_handshake_continue(struct psd_joining *joining, struct psd_handshake *handshake,
				       struct psd_error *err)
{
	struct psd_error cause;

	if (handshake->is_connecting)
		return finish_connecting(joining, handshake, err);
	if (handshake->is_proving)
		return finish_proving(joining, handshake, err);
	while (!psd_greeting_is_complete(&handshake->greeting)) {
		const struct iovec room = psd_greeting_room(&handshake->greeting);
		const ssize_t n_read =
			psd_secret_receive(joining->options->secret, handshake->fd, room.iov_base, room.iov_len);

		if (n_read < 0 && (errno == EAGAIN || errno == EINTR))
			return PSD_OK;
		if (n_read <= 0)
			return lose(joining, handshake, n_read < 0 ? errno : 0, err);
		if (!psd_greeting_take(&handshake->greeting, (size_t)n_read, &cause))
			continue;
		if (handshake->is_ours)
			return psd_error_set(err, cause.status, PSD_NOWHERE, "%s %s", handshake->name, cause.text);
		return refuse(joining, handshake, cause.text);
	}
	if (joining->failure) /* a peer that greets, or gives up as well, has been told */
		return tell_failure(joining, handshake,
				    handshake->greeting.head.kind == PSD_WIRE_FAILED ? handshake->greeting.failed.host
										     : handshake->greeting.hello.host);
	return handshake->is_ours ? take_answer(joining, handshake, err) : take_stranger(joining, handshake, err);
}

enum psd_status psd_handshakes_read_joined(struct psd_joining *joining, unsigned host, struct psd_error *err)
{
	uint8_t bytes[PSD_WIRE_HEAD_BYTES + PSD_WIRE_FAILED_BYTES];
	const ssize_t n_read = psd_secret_peek(joining->options->secret, *psd_joining_first_connection(joining, host),
					       bytes, sizeof(bytes));
	char name[PSD_MESH_NAME_MAX];
	struct psd_wire_head head;
	struct psd_error cause;

	if (n_read < 0 && (errno == EAGAIN || errno == EINTR))
		return PSD_OK;
	if (n_read <= 0)
		return psd_error_set(err, PSD_ELOST, PSD_NOWHERE, "%s closed the connection while hosts were joining",
				     psd_joining_name(joining, host, name));
	if (n_read < PSD_WIRE_HEAD_BYTES)
		return PSD_OK;
	joining->states[host].has_more = psd_wire_decode(bytes, &head, &cause) || head.kind != PSD_WIRE_FAILED;
	if (joining->states[host].has_more || n_read < (ssize_t)sizeof(bytes))
		return PSD_OK;
	return psd_error_set(err, psd_wire_status(&head), PSD_NOWHERE, "%s",
			     psd_wire_decode_payload(PSD_WIRE_FAILED, bytes + PSD_WIRE_HEAD_BYTES).failed.words);
}

void psd_handshakes_drop_silent(struct psd_joining *joining)
{
	const double now_sec = psd_socket_now_sec();

	for (unsigned t = joining->n_handshakes; t-- > 0;) {
		struct psd_handshake *handshake = &joining->handshakes[t];

		if (now_sec < handshake->until_sec)
			continue;
		if (!handshake->is_ours) {
			(void)refuse(joining, handshake, "has not greeted in time");
			continue;
		}
		/* the kernel would go on for minutes; the host may have another address */
		try_again_later(joining, handshake->host, ETIMEDOUT);
		psd_handshake_end(joining, handshake);
	}
}
