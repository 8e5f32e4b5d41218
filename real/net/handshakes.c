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
#define STRANGE	      "does not know this run's secret: '--secret' must name the same bytes on all hosts, or on none"

static const struct psd_socket_options socket_options = {.has_buffers = false};

/* ---- beginning and end ---- */

void psd_talk_end(struct psd_joining *joining, struct psd_talk *talk)
{
	psd_secret_end(joining->options->secret, talk->fd);
	if (talk->fd >= 0)
		close(talk->fd);
	if (talk->is_ours)
		joining->seats[talk->host].is_talking = false;
	psd_greeting_release(&talk->greeting);
	*talk = joining->talks[--joining->n_talks];
}

static void try_again_later(struct psd_joining *joining, unsigned host, int error)
{
	struct psd_seat *seat = &joining->seats[host];

	seat->error = error;
	seat->again_sec = psd_socket_now_sec() + seat->pause_sec;
	seat->pause_sec = fmin(2 * seat->pause_sec, MAX_PAUSE_SEC);
}

/* words: the reason, which the other end is told. */
static void refuse(struct psd_joining *joining, struct psd_talk *talk, const char *words)
{
	char name[PSD_MESH_NAME_MAX];
	struct psd_error line;

	if (!talk->is_refused)
		psd_joining_remark(joining, "refused", talk->name, words);
	psd_error_set(&line, PSD_ERUN, PSD_NOWHERE, "%s refused %s: %s",
		      psd_joining_name(joining, joining->options->self, name), talk->name, words);
	psd_joining_say_failed(joining, talk->fd, PSD_ERUN, line.text);
	psd_talk_end(joining, talk);
}

/* Refuses a stranger, which is told nothing else. */
static void refuse_strange(struct psd_joining *joining, struct psd_talk *talk)
{
	char name[PSD_MESH_NAME_MAX];
	struct psd_error line;

	psd_joining_remark(joining, "refused", talk->name, STRANGE);
	psd_error_set(&line, PSD_ERUN, PSD_NOWHERE, "%s refused %s: it " STRANGE,
		      psd_joining_name(joining, joining->options->self, name), talk->name);
	psd_joining_say_refused(talk->fd, line.text);
	psd_talk_end(joining, talk);
}

/* Returns false if there is none. words: the reason. */
static bool drop_oldest_stranger(struct psd_joining *joining, const char *words)
{
	struct psd_talk *oldest = NULL;

	for (unsigned t = 0; t < joining->n_talks; t++)
		if (!joining->talks[t].is_ours && (!oldest || joining->talks[t].until_sec < oldest->until_sec))
			oldest = &joining->talks[t];
	if (oldest)
		refuse(joining, oldest, words);
	return oldest;
}

/* Tries to free a descriptor after an error; true: there is one. */
static bool make_room(struct psd_joining *joining, int error)
{
	return (error == EMFILE || error == ENFILE) &&
	       drop_oldest_stranger(joining, "says nothing, and this host can open no more files (ulimit -n)");
}

static struct psd_talk *add_talk(struct psd_joining *joining, int fd)
{
	struct psd_talk *talk;

	if (joining->n_talks == joining->most_talks)
		/* this host has opened fewer */
		(void)drop_oldest_stranger(joining, "says nothing, and too many others come");
	talk = &joining->talks[joining->n_talks++];
	*talk = (struct psd_talk){.fd = fd};
	return talk;
}

/* error: 0 if the peer closed it; EACCES if it does not know the secret. */
static enum psd_status lose(struct psd_joining *joining, struct psd_talk *talk, int error, struct psd_error *err)
{
	const char *how = error ? strerror(error) : "closed the connection before greeting";

	if (error == EACCES && joining->options->secret && !talk->is_connecting) {
		if (!talk->is_ours) {
			refuse_strange(joining, talk);
			return PSD_OK;
		}
		if (joining->excuse) {
			joining->seats[talk->host].is_told = true; /* as far as possible */
			psd_talk_end(joining, talk);
			return PSD_OK;
		}
		if (!psd_socket_is_to_itself(talk->fd))
			return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "%s " STRANGE, talk->name);
	}
	if (!talk->is_ours && !talk->is_refused)
		psd_joining_remark(joining, "dropped", talk->name, how);
	if (talk->is_ours && error && !psd_socket_may_pass(error) && !joining->excuse)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot connect to %s: %s", talk->name, how);
	if (talk->is_ours)
		try_again_later(joining, talk->host, error);
	psd_talk_end(joining, talk);
	return PSD_OK;
}

static enum psd_status begin_talk(struct psd_joining *joining, unsigned host, struct psd_error *err)
{
	struct psd_seat *seat = &joining->seats[host];
	const struct psd_mesh_host *place = &joining->options->hosts[host];
	enum psd_status status = PSD_OK;
	struct psd_talk *talk;
	int fd = -1, error;

	if (!seat->found)
		status = psd_socket_look_up(place->address, place->port, &seat->found, err);
	if (status)
		return status;
	seat->next = seat->next ? seat->next : seat->found;
	error = psd_socket_connect(seat->next, &socket_options, &fd);
	if (make_room(joining, error))
		error = EAGAIN;
	seat->next = seat->next->ai_next;
	talk = add_talk(joining, fd);
	talk->is_ours = talk->is_connecting = seat->is_talking = true;
	talk->host = host;
	talk->line = joining->excuse ? 0 : psd_joining_next_line(joining, host);
	talk->until_sec = psd_socket_now_sec() + joining->options->greeting_sec;
	psd_joining_name(joining, host, talk->name);
	return error ? lose(joining, talk, error, err) : PSD_OK;
}

enum psd_status psd_handshakes_begin(struct psd_joining *joining, struct psd_error *err)
{
	enum psd_status status = PSD_OK;

	for (unsigned h = 0; h < joining->options->self && !status; h++)
		if (!psd_joining_is_settled(joining, h) && !joining->seats[h].is_talking &&
		    psd_socket_now_sec() >= joining->seats[h].again_sec)
			status = begin_talk(joining, h, err);
	return status;
}

enum psd_status psd_handshakes_accept(struct psd_joining *joining, struct psd_error *err)
{
	for (unsigned i = 0; i < PSD_MOST_STRANGERS; i++) {
		char from[PSD_SOCKET_PLACE_MAX];
		struct psd_talk *talk;
		int fd;
		const int error = psd_socket_accept(joining->listener, &socket_options, &fd, from);

		if (make_room(joining, error))
			continue;
		if (error == EMFILE || error == ENFILE || error == EBADF || error == ENOMEM)
			return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot accept connections: %s",
					     strerror(error));
		if (error) /* nobody listens, or the peer has gone again */
			break;
		talk = add_talk(joining, fd);
		talk->until_sec = psd_socket_now_sec() + joining->options->greeting_sec;
		snprintf(talk->name, sizeof(talk->name), "a connection from %s", from);
		if (!psd_secret_begin(joining->options->secret, fd, joining->options->self, false, 0))
			return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a connection");
	}
	return PSD_OK;
}

/* ---- messages ---- */

static enum psd_status settle(struct psd_joining *joining, struct psd_talk *talk, unsigned host, unsigned line)
{
	psd_joining_first_line(joining, host)[line] = talk->fd;
	talk->fd = -1;
	joining->seats[host].pause_sec = PSD_FIRST_PAUSE_SEC;
	psd_talk_end(joining, talk);
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
		       (hello->line > 0 || hello->first_iteration == attempt->first_iteration));
	if (*is_of_this || hello->attempt < attempt->number)
		return PSD_OK;
	if (hello->attempt > attempt->number) {
		attempt->next_number = hello->attempt;
		joining->is_behind = true;
		return psd_error_set(err, PSD_ELOST, PSD_NOWHERE, "%s has begun to join again", name);
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
static enum psd_status take_failed(struct psd_joining *joining, struct psd_talk *talk, struct psd_error *err)
{
	const struct psd_wire_failed *failed = &talk->greeting.failed;
	char words[160];

	if (will_come_again(joining, &talk->greeting.head)) {
		psd_talk_end(joining, talk);
		return PSD_OK;
	}
	if (failed->n_hosts == joining->n_hosts && failed->host < failed->n_hosts &&
	    !psd_joining_is_settled(joining, failed->host) && failed->hosts_hash == psd_joining_hash(joining)) {
		if (failed->host == joining->refused)
			*err = joining->difference;
		else
			psd_error_set(err, psd_wire_status(&talk->greeting.head), PSD_NOWHERE, "%s", failed->words);
		return err->status;
	}
	snprintf(words, sizeof(words),
		 "says that host %" PRIu32 " of %" PRIu32 " gives up, which this run does not wait for", failed->host,
		 failed->n_hosts);
	refuse(joining, talk, words);
	return PSD_OK;
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
	if (psd_joining_next_line(joining, hello->host) == joining->options->n_connections)
		snprintf(text, 160, "says that it is host %" PRIu32 ", which is here already", hello->host);
	else if (hello->line != psd_joining_next_line(joining, hello->host))
		snprintf(text, 160, "opens connection %" PRIu32 " of host %" PRIu32 ", the next is %u", hello->line,
			 hello->host, psd_joining_next_line(joining, hello->host));
	else
		return NULL;
	return text;
}

/* Remarks that a host greeted in vain; it will give up or come again. */
static void greet_in_vain(struct psd_joining *joining, struct psd_talk *talk)
{
	(void)psd_joining_greet(joining, talk->fd, talk->greeting.hello.line);
	talk->is_refused = true;
	psd_greeting_release(&talk->greeting);
}

/* Accepts a greeting of a host of this run. */
static enum psd_status take_host(struct psd_joining *joining, struct psd_talk *talk, struct psd_error *err)
{
	const struct psd_wire_hello hello = talk->greeting.hello;
	char text[160], name[PSD_MESH_NAME_MAX];

	if (hello.line == 0 && joining->options->attempt && *psd_joining_first_line(joining, hello.host) >= 0)
		return psd_error_set(err, PSD_ELOST, PSD_NOWHERE, "%s has been started anew",
				     psd_joining_name(joining, hello.host, name));
	if (find_mistake(joining, &hello, text)) {
		refuse(joining, talk, text);
		return PSD_OK;
	}
	if (hello.line == 0 &&
	    psd_joining_find_difference(joining, hello.host, talk->greeting.terms, &joining->difference)) {
		psd_joining_remark(joining, "refused", talk->name, joining->difference.text);
		joining->refused = hello.host;
		greet_in_vain(joining, talk);
		return PSD_OK;
	}
	return psd_joining_greet(joining, talk->fd, hello.line) ? settle(joining, talk, hello.host, hello.line)
								: lose(joining, talk, 0, err);
}

static enum psd_status take_stranger(struct psd_joining *joining, struct psd_talk *talk, struct psd_error *err)
{
	const struct psd_wire_hello hello = talk->greeting.hello;
	char text[160], name[PSD_MESH_NAME_MAX];
	bool is_of_this;
	enum psd_status status;

	if (talk->greeting.head.kind == PSD_WIRE_FAILED)
		return take_failed(joining, talk, err);
	if (find_strangeness(joining, &hello, text)) {
		refuse(joining, talk, text);
		return PSD_OK;
	}
	status = compare_attempts(joining, &hello, psd_joining_name(joining, hello.host, name), &is_of_this, err);
	if (status)
		return status;
	if (is_of_this)
		return take_host(joining, talk, err);
	if (hello.line == 0)
		greet_in_vain(joining, talk);
	else
		psd_talk_end(joining, talk);
	return PSD_OK;
}

static enum psd_status take_answer(struct psd_joining *joining, struct psd_talk *talk, struct psd_error *err)
{
	const struct psd_wire_hello *hello = &talk->greeting.hello;
	bool is_of_this;
	enum psd_status status;

	if (talk->greeting.head.kind == PSD_WIRE_FAILED && will_come_again(joining, &talk->greeting.head))
		return lose(joining, talk, 0, err);
	if (talk->greeting.head.kind == PSD_WIRE_FAILED)
		return psd_error_set(err, psd_wire_status(&talk->greeting.head), PSD_NOWHERE, "%s",
				     talk->greeting.failed.words);
	if (hello->host == joining->options->self) /* by chance TCP has connected this port to itself */
		return lose(joining, talk, 0, err);
	if (hello->host != talk->host || hello->line != talk->line || hello->n_hosts != joining->n_hosts)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
				     "%s says that it is host %" PRIu32 " of %" PRIu32 ", connection %" PRIu32,
				     talk->name, hello->host, hello->n_hosts, hello->line);
	status = compare_attempts(joining, hello, talk->name, &is_of_this, err);
	if (status)
		return status;
	if (!is_of_this)
		return lose(joining, talk, 0, err);
	if (talk->line == 0 && psd_joining_find_difference(joining, talk->host, talk->greeting.terms, err))
		return PSD_ERUN;
	return settle(joining, talk, talk->host, talk->line);
}

/* Reads while this host gives up: a peer that greets, or gives up as well, has been told. */
static enum psd_status take_while_excusing(struct psd_joining *joining, struct psd_talk *talk)
{
	const bool has_failed = talk->greeting.head.kind == PSD_WIRE_FAILED;
	const uint32_t host = has_failed ? talk->greeting.failed.host : talk->greeting.hello.host;

	psd_joining_say_failed(joining, talk->fd, PSD_ERUN, joining->excuse);
	if (host < joining->n_hosts)
		joining->seats[host].is_told = true;
	psd_talk_end(joining, talk);
	return PSD_OK;
}

/* Ends the proof of the secret on a connection that this host opened. */
static enum psd_status finish_proving(struct psd_joining *joining, struct psd_talk *talk, struct psd_error *err)
{
	const int error = psd_secret_prove(joining->options->secret, talk->fd);

	if (error == EAGAIN)
		return PSD_OK;
	if (error)
		return lose(joining, talk, error, err);
	talk->is_proving = false;
	if (joining->excuse) {
		psd_joining_say_failed(joining, talk->fd, PSD_ERUN, joining->excuse);
		joining->seats[talk->host].is_told = true;
		psd_talk_end(joining, talk);
		return PSD_OK;
	}
	return psd_joining_greet(joining, talk->fd, talk->line) ? PSD_OK : lose(joining, talk, 0, err);
}

static enum psd_status finish_connecting(struct psd_joining *joining, struct psd_talk *talk, struct psd_error *err)
{
	const int error = psd_socket_error(talk->fd);

	if (error)
		return lose(joining, talk, error, err);
	talk->is_connecting = false;
	talk->until_sec = INFINITY;
	if (!psd_secret_begin(joining->options->secret, talk->fd, joining->options->self, true, talk->host))
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a connection");
	talk->is_proving = true;
	return finish_proving(joining, talk, err);
}

enum psd_status psd_talk_hear(struct psd_joining *joining, struct psd_talk *talk, struct psd_error *err)
{
	struct psd_error cause;

	if (talk->is_connecting)
		return finish_connecting(joining, talk, err);
	if (talk->is_proving)
		return finish_proving(joining, talk, err);
	while (!psd_greeting_is_complete(&talk->greeting)) {
		const struct iovec room = psd_greeting_room(&talk->greeting);
		const ssize_t n_read =
			psd_secret_receive(joining->options->secret, talk->fd, room.iov_base, room.iov_len);

		if (n_read < 0 && (errno == EAGAIN || errno == EINTR))
			return PSD_OK;
		if (n_read <= 0)
			return lose(joining, talk, n_read < 0 ? errno : 0, err);
		if (!psd_greeting_take(&talk->greeting, (size_t)n_read, &cause))
			continue;
		if (talk->is_ours)
			return psd_error_set(err, cause.status, PSD_NOWHERE, "%s %s", talk->name, cause.text);
		refuse(joining, talk, cause.text);
		return PSD_OK;
	}
	return joining->excuse ? take_while_excusing(joining, talk)
	       : talk->is_ours ? take_answer(joining, talk, err)
			       : take_stranger(joining, talk, err);
}

enum psd_status psd_handshakes_hear_joined(struct psd_joining *joining, unsigned host, struct psd_error *err)
{
	uint8_t bytes[PSD_WIRE_HEAD_BYTES + PSD_WIRE_FAILED_BYTES];
	const ssize_t n_read =
		psd_secret_peek(joining->options->secret, *psd_joining_first_line(joining, host), bytes, sizeof(bytes));
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
	joining->seats[host].has_more = psd_wire_decode(bytes, &head, &cause) || head.kind != PSD_WIRE_FAILED;
	if (joining->seats[host].has_more || n_read < (ssize_t)sizeof(bytes))
		return PSD_OK;
	return psd_error_set(err, psd_wire_status(&head), PSD_NOWHERE, "%s",
			     psd_wire_decode_failed(bytes + PSD_WIRE_HEAD_BYTES).words);
}

/* Gives an attempt up before the kernel does, after minutes; the host may have another address. */
static void give_up_connecting(struct psd_joining *joining, struct psd_talk *talk)
{
	try_again_later(joining, talk->host, ETIMEDOUT);
	psd_talk_end(joining, talk);
}

void psd_handshakes_drop_silent(struct psd_joining *joining)
{
	const double now_sec = psd_socket_now_sec();

	for (unsigned t = joining->n_talks; t-- > 0;) {
		struct psd_talk *talk = &joining->talks[t];

		if (now_sec < talk->until_sec)
			continue;
		if (talk->is_ours)
			give_up_connecting(joining, talk);
		else
			refuse(joining, talk, "has not greeted in time");
	}
}
