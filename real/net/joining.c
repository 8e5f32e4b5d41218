/* State of the joining, and its messages. */
#define _POSIX_C_SOURCE 200809L
#include "real/net/joining.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/hash.h"
#include "engine/scenario/scenario_agree.h"
#include "real/net/frame.h"
#include "real/net/secret.h"

enum { MOST_REMARKS = 10 };

char *psd_mesh_name(const struct psd_layout *layout, const struct psd_mesh_host hosts[], unsigned host,
		    char text[PSD_MESH_NAME_MAX])
{
	const bool is_worker = psd_layout_is_worker(layout, host);

	snprintf(text, PSD_MESH_NAME_MAX, "%s %u at %s:%u", is_worker ? "worker" : "server",
		 is_worker ? host : host - layout->workers, hosts[host].address, hosts[host].port);
	return text;
}

char *psd_joining_name(const struct psd_joining *joining, unsigned host, char text[PSD_MESH_NAME_MAX])
{
	return psd_mesh_name(joining->options->layout, joining->options->hosts, host, text);
}

int *psd_joining_first_connection(const struct psd_joining *joining, unsigned host)
{
	return &joining->fds[host * joining->options->n_connections];
}

unsigned psd_joining_next_connection(const struct psd_joining *joining, unsigned host)
{
	unsigned connection = 0;

	while (connection < joining->options->n_connections &&
	       psd_joining_first_connection(joining, host)[connection] >= 0)
		connection++;
	return connection;
}

bool psd_joining_is_settled(const struct psd_joining *joining, unsigned host)
{
	return host == joining->options->self ||
	       (joining->failure ? joining->states[host].is_told
				 : psd_joining_next_connection(joining, host) == joining->options->n_connections);
}

/* ---- messages ---- */

void psd_joining_remark(struct psd_joining *joining, const char *what, const char *name, const char *words)
{
	struct psd_error line;

	if (!joining->options->remark || joining->failure || joining->n_remarks++ >= MOST_REMARKS)
		return;
	psd_error_set(&line, PSD_ERUN, PSD_NOWHERE, "%s %s: %s%s", what, name, words,
		      joining->n_remarks == MOST_REMARKS ? " (no more are shown)" : "");
	joining->options->remark(joining->options->context, line.text);
}

void psd_joining_write_missing(const struct psd_joining *joining, char text[PSD_MISSING_MAX])
{
	unsigned n_missing = 0;
	size_t length = 0;

	text[0] = '\0';
	for (unsigned h = 0; h < joining->n_hosts; h++) {
		const int error = joining->states[h].error;
		char name[PSD_MESH_NAME_MAX], how[48] = "";

		if (psd_joining_is_settled(joining, h) || n_missing++ >= PSD_MOST_MISSING)
			continue;
		if (error)
			snprintf(how, sizeof(how), " (%s)", strerror(error));
		length += (size_t)snprintf(text + length, PSD_MISSING_MAX - length, "%s%s%s", n_missing > 1 ? ", " : "",
					   psd_joining_name(joining, h, name), how);
	}
	if (n_missing > PSD_MOST_MISSING)
		snprintf(text + length, PSD_MISSING_MAX - length, " and %u more", n_missing - PSD_MOST_MISSING);
}

/* "worker 0 and worker 3", without addresses, of the hosts that have joined this one; empty: none have. */
static void write_joined(const struct psd_joining *joining, char text[PSD_JOINED_MAX])
{
	const struct psd_layout *layout = joining->options->layout;
	unsigned n_joined = 0;
	size_t length = 0;

	text[0] = '\0';
	for (unsigned h = 0; h < joining->n_hosts; h++) {
		const bool is_worker = psd_layout_is_worker(layout, h);

		if (h == joining->options->self || !psd_joining_is_settled(joining, h) ||
		    n_joined++ >= PSD_MOST_MISSING)
			continue;
		length += (size_t)snprintf(text + length, PSD_JOINED_MAX - length, "%s%s %u", n_joined > 1 ? ", " : "",
					   is_worker ? "worker" : "server", is_worker ? h : h - layout->workers);
	}
	if (n_joined > PSD_MOST_MISSING)
		snprintf(text + length, PSD_JOINED_MAX - length, " and %u more", n_joined - PSD_MOST_MISSING);
}

/* This host connects to the lower ones: all that are missing are such, and refuse nothing but do not answer. */
static bool are_missing_out_of_reach(const struct psd_joining *joining)
{
	for (unsigned h = 0; h < joining->n_hosts; h++) {
		const int error = joining->states[h].error;

		if (!psd_joining_is_settled(joining, h) && (error == 0 || error == ECONNREFUSED))
			return false;
	}
	return true;
}

enum psd_status psd_joining_give_up(const struct psd_joining *joining, struct psd_error *err)
{
	const double within_sec = joining->options->within_sec;
	char missing[PSD_MISSING_MAX], joined[PSD_JOINED_MAX], self[PSD_MESH_NAME_MAX];

	psd_joining_write_missing(joining, missing);
	write_joined(joining, joined);
	psd_joining_name(joining, joining->options->self, self);
	if (are_missing_out_of_reach(joining))
		return psd_error_set(err, PSD_EABSENT, PSD_NOWHERE, "%s cannot reach %s within %g s%s%s", self, missing,
				     within_sec, joined[0] ? ", it reaches " : "", joined);
	if (joined[0])
		return psd_error_set(err, PSD_EABSENT, PSD_NOWHERE, "%s did not join %s within %g s, joined: %s",
				     missing, self, within_sec, joined);
	return psd_error_set(err, PSD_EABSENT, PSD_NOWHERE, "%s did not join within %g s", missing, within_sec);
}

uint64_t psd_joining_hash(const struct psd_joining *joining)
{
	const struct psd_mesh_host *hosts = joining->options->hosts;
	uint64_t hash = psd_hash_number(PSD_HASH_START, joining->options->run_hash);

	for (unsigned h = 0; h < joining->n_hosts; h++)
		hash = psd_hash_number(psd_hash_bytes(hash, hosts[h].address, strlen(hosts[h].address)), hosts[h].port);
	return hash ? hash : 1;
}

static void say(struct psd_secret *secret, int fd, enum psd_status status, struct psd_wire_failed failed,
		const char *words)
{
	const struct psd_wire_head head = {
		.kind = PSD_WIRE_FAILED, .part = (uint32_t)status, .length_bytes = PSD_WIRE_FAILED_BYTES};
	uint8_t bytes[PSD_WIRE_HEAD_BYTES + PSD_WIRE_FAILED_BYTES];

	snprintf(failed.words, sizeof(failed.words), "%s", words);
	psd_wire_encode(&head, bytes);
	psd_wire_encode_payload(PSD_WIRE_FAILED, &failed, bytes + PSD_WIRE_HEAD_BYTES);
	(void)psd_secret_send(secret, fd, bytes, sizeof(bytes));
}

void psd_joining_say_failed(const struct psd_joining *joining, int fd, enum psd_status status, const char *words)
{
	say(joining->options->secret, fd, status,
	    (struct psd_wire_failed){joining->options->self, joining->n_hosts, psd_joining_hash(joining), ""}, words);
}

void psd_joining_say_refused(struct psd_secret *secret, int fd, const char *words)
{
	say(secret, fd, PSD_ERUN, (struct psd_wire_failed){.words = ""}, words);
}

bool psd_joining_greet(const struct psd_joining *joining, int fd, unsigned connection)
{
	const char *terms = connection == 0 ? joining->options->terms : "";
	const struct psd_mesh_attempt *attempt = joining->options->attempt;
	const struct psd_wire_hello hello = {
		.host = joining->options->self,
		.n_hosts = joining->n_hosts,
		.connection = connection,
		.terms_bytes = strlen(terms),
		.attempt = attempt ? attempt->number : 0,
		.first_iteration = attempt ? attempt->first_iteration : PSD_WIRE_NO_ATTEMPT,
	};
	struct psd_error ignored;

	return !psd_frame_send("", fd, joining->options->secret, PSD_WIRE_HELLO, &hello, &ignored) &&
	       psd_secret_send(joining->options->secret, fd, (const uint8_t *)terms, strlen(terms));
}

bool psd_joining_find_difference(const struct psd_joining *joining, unsigned host, const char *terms,
				 struct psd_error *err)
{
	struct psd_text words = {.bytes = NULL};
	char name[PSD_MESH_NAME_MAX];

	if (!psd_agreed_find_difference(joining->options->terms, terms, &words))
		return false;
	psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "%s has another build, scenario or other options: %s",
		      psd_joining_name(joining, host, name), words.bytes ? words.bytes : "");
	psd_text_release(&words);
	return true;
}
