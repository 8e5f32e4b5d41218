/* Connections between every two hosts of a run. The host with the higher number opens them. Both ends check protocol
 * version, terms and host number, then compare clocks. Any other process that connects is dropped with a remark.
 * Carries nothing else. */
#ifndef PSD_REAL_MESH_H
#define PSD_REAL_MESH_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/collectives/layout.h"

#define PSD_MESH_ADDRESS_MAX  254  /* longest host name with its final zero; a resolver takes up to 253 characters */
#define PSD_MESH_GREETING_SEC 10.0 /* limit to wait for the greeting of a process that has connected, seconds */
#define PSD_MESH_REMIND_SEC   10.0

struct psd_secret;

struct psd_mesh_host {
	char address[PSD_MESH_ADDRESS_MAX];
	uint16_t port;
};

/* Attempt of hosts that join again after one was lost. A host that greets with an earlier number is late, or was
 * restarted and takes over the other's number; one with a later number says that this attempt is over. All hosts start
 * at the same iteration: if one can only start earlier, the others try again. */
struct psd_mesh_attempt {
	uint32_t number;	  /* number of this attempt to join; raised when another host has a later one */
	uint32_t next_number;	  /* output: number for the next attempt to join */
	uint32_t first_iteration; /* iteration at which this host starts; on PSD_ELOST lowered to another host's */
	bool is_overdue;	  /* output: hosts did not join in time */
};

struct psd_mesh_options {
	const struct psd_layout *layout;
	const struct psd_mesh_host *hosts; /* names and ports of all hosts, psd_layout_hosts() entries */
	unsigned self;
	unsigned n_connections;	   /* number of connections between two hosts, >= 1 */
	struct psd_secret *secret; /* pre-shared secret of all hosts, see real/net/secret.h; NULL: none */
	int listener;		   /* listening descriptor, taken over; -1: listen on this host's address */
	/* Hash of the run and of its earlier joinings; a failure counts only from hosts with the same one. */
	uint64_t run_hash;
	const char *
		/* text that must be the same on all hosts, see psd_scenario_add_agreed(); at most
		 * PSD_GREETING_TERMS_MAX bytes */
		terms;
	/* NULL: hosts join once. Otherwise a host that leaves is waited for, unless these connections are more of the
	 * same attempt. */
	struct psd_mesh_attempt *attempt;
	bool is_addition;
	double within_sec;
	double greeting_sec; /* limit to connect, and to wait for the greeting of a process that has connected */
	double remind_sec;   /* interval of reminders about missing hosts */
	void (*remark)(void *context,
		       const char *line); /* receives lines about missing hosts and strangers; may be NULL */
	void *context;
};

struct psd_mesh_clock {
	double ahead_sec; /* host 0's clock minus this host's; 0 if too small to measure */
	double rtt_sec;	  /* shortest round trip to host 0 (on host 0: to any host); 0: there is no other host */
};

/* Opens n_connections to each host; blocks until all are there. fds: n_connections per host, -1 for itself; the caller
 * closes them. PSD_EABSENT: a host did not come in time; PSD_ERUN: one does not fit or gives up; PSD_ELOST: one has
 * left. Where terms differ both name the first difference: the host that connects gives up, the other waits for its
 * message or the deadline. A host that gives up tells all that have joined. */
enum psd_status psd_mesh_open(const struct psd_mesh_options *options, int fds[], struct psd_mesh_clock *clock,
			      struct psd_error *err) PSD_MUST_CHECK;
/* Listens on the address of hosts[self], for psd_mesh_options; the caller closes *listener. PSD_ERUN: it cannot;
 * PSD_EINVAL, PSD_ENOMEM as psd_socket_listen(). */
enum psd_status psd_mesh_listen(const struct psd_mesh_host *self, int *listener, struct psd_error *err) PSD_MUST_CHECK;
/* Tells the hosts that wait for this one that it has failed; takes a second at most. run_hash, secret: as in
 * psd_mesh_options; words: the reason. */
void psd_mesh_report_failure(const struct psd_mesh_host hosts[], unsigned n_hosts, unsigned self, uint64_t run_hash,
			     struct psd_secret *secret, const char *words);

#define PSD_MESH_NAME_MAX 320
/* Writes "worker 2 at 10.0.0.3:7411" or "server 0 at ..."; returns text. */
char *psd_mesh_name(const struct psd_layout *layout, const struct psd_mesh_host hosts[], unsigned host,
		    char text[PSD_MESH_NAME_MAX]);

#endif
