/* The connections ("lines", one or more) between every two hosts of a run, each opened by the higher number, both ends
 * sure of each other: the same version, the same terms, the number that was expected; and their clocks compared.
 * Whoever else connects is dropped with a remark. Refuses to carry anything else. */
#ifndef PSD_REAL_MESH_H
#define PSD_REAL_MESH_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/collectives/layout.h"

#define PSD_MESH_ADDRESS_MAX  254  /* the longest name that a resolver takes has 253 */
#define PSD_MESH_GREETING_SEC 10.0 /* for whoever has connected */
#define PSD_MESH_REMIND_SEC   10.0

struct psd_secret;

struct psd_mesh_host {
	char address[PSD_MESH_ADDRESS_MAX];
	uint16_t port;
};

/* Hosts that join again when one of them is lost. Connections are of one attempt: who greets with an earlier number is
 * late, or has been started anew and takes over the other's; who greets with a later one tells that the attempt is
 * over. All begin with the same iteration: where one cannot begin with as late a one as others, these come again. */
struct psd_mesh_attempt {
	uint32_t number;	  /* is raised where another host has a later one */
	uint32_t next_number;	  /* filled in: of the attempt after this one */
	uint32_t first_iteration; /* that this host begins with; on PSD_ELOST less, if another one begins with that */
};

struct psd_mesh_options {
	const struct psd_layout *layout;
	const struct psd_mesh_host *hosts; /* psd_layout_hosts() of them */
	unsigned self;
	unsigned n_connections;	   /* between two hosts, >= 1 */
	struct psd_secret *secret; /* that all hosts have, see real/net/secret.h; NULL: none */
	int listener;		   /* -1: listen on the own address; otherwise it is closed here */
	unsigned n_joined; /* how often these hosts have joined before: who gives up counts if it has as often */
	const char *terms; /* what all must have in common, see psd_scenario_add_agreed(); up to PSD_GREETING_TERMS_MAX
			      bytes */
	/* NULL: hosts join once. Who leaves is waited for again, unless these connections are added to others of the
	 * same attempt. */
	struct psd_mesh_attempt *attempt;
	bool is_addition;
	double within_sec;
	double greeting_sec; /* that a connection may take to be made, or to greet where somebody else has begun it */
	double remind_sec;   /* how often it is said who is missing */
	void (*remark)(void *context, const char *line); /* may be NULL */
	void *context;
};

struct psd_mesh_clock {
	double ahead_sec; /* of host 0's clock; 0 where the difference is within what can be measured, as on one machine
			   */
	double rtt_sec;	  /* the shortest round trip to host 0; on host 0 to any other; 0: alone */
};

/* fds: n_connections for each host, host after host, -1 for the own; the caller closes them. Blocks until all are there.
 * PSD_ERUN: who is missing, does not fit or gives up; PSD_ELOST: who has left. Where terms differ each of the two names
 * the first key that does: the one that connects gives up, the other goes on until that says so or the time is over.
 * Who gives up tells all who have joined. */
enum psd_status psd_mesh_open(const struct psd_mesh_options *options, int fds[], struct psd_mesh_clock *clock,
			      struct psd_error *err) PSD_MUST_CHECK;
/* Listens where the others look for hosts[self], for psd_mesh_options: the caller closes *listener. PSD_ERUN: it
 * cannot; PSD_EINVAL, PSD_ENOMEM as psd_socket_listen(). */
enum psd_status psd_mesh_listen(const struct psd_mesh_host *self, int *listener, struct psd_error *err) PSD_MUST_CHECK;
/* For a host that has failed: tells those of the others that wait for it, for a second at most. n_joined: as in
 * psd_mesh_options; words: what for; secret: NULL, or
 * that of all hosts. */
void psd_mesh_excuse(const struct psd_mesh_host hosts[], unsigned n_hosts, unsigned self, unsigned n_joined,
		     struct psd_secret *secret, const char *words);

#define PSD_MESH_NAME_MAX 320
/* "worker 2 at 10.0.0.3:7411", or "server 0 at ..."; returns text. */
char *psd_mesh_name(const struct psd_layout *layout, const struct psd_mesh_host hosts[], unsigned host,
		    char text[PSD_MESH_NAME_MAX]);

#endif
