/* Connections between every two hosts of a run; the host with the higher number opens them. Both hosts check that
 * protocol version, terms (scenario keys and file contents) and host numbers fit, then compare their clocks. A process
 * that connects but is not a host of this run is dropped, with a line to remark(). Sends nothing else. */
#ifndef PSD_REAL_MESH_H
#define PSD_REAL_MESH_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/collectives/layout.h"

#define PSD_MESH_ADDRESS_MAX  254  /* longest host name with its final zero; a resolver takes up to 253 characters */
#define PSD_MESH_GREETING_SEC 10.0 /* time in which a process that has connected must greet, seconds */
#define PSD_MESH_REMIND_SEC   10.0

struct psd_secret;

struct psd_mesh_host {
	char address[PSD_MESH_ADDRESS_MAX];
	uint16_t port;
};

/* One attempt of all hosts to join again after a host was lost. Attempts have numbers. A host that greets with an
 * earlier number than this one is late, or was restarted; it takes over this host's number. If it has a later number,
 * this attempt is over. All hosts must start at the same iteration: if a host can only start at an earlier one, the
 * others lower first_iteration and try again. */
struct psd_mesh_attempt {
	uint32_t number;      /* number of this attempt; raised when another host has a later one */
	uint32_t next_number; /* output: number to use for the attempt after this one */
	/* Iteration at which this host starts; on PSD_ELOST lowered if another host starts at an earlier one. */
	uint32_t first_iteration;
};

struct psd_mesh_options {
	const struct psd_layout *layout;
	const struct psd_mesh_host *hosts; /* names and ports of all hosts; shape (psd_layout_hosts(layout)) */
	unsigned self;
	unsigned n_connections;	   /* number of connections between two hosts, >= 1 */
	struct psd_secret *secret; /* pre-shared secret of all hosts, see real/net/secret.h; NULL: none */
	/* Listening descriptor, which psd_mesh_open() closes; -1: it listens on this host's own address. */
	int listener;
	/* Hash of the run and of its earlier attempts to join. A message that a host gives up counts only if its sender
	 * has an equal hash. */
	uint64_t run_hash;
	/* Text of the terms, which must be equal on all hosts, see psd_scenario_add_agreed(). At most
	 * PSD_GREETING_TERMS_MAX bytes. */
	const char *terms;
	/* Attempt to join again; NULL: hosts join once. With an attempt, psd_mesh_open() waits for a host that leaves
	 * while hosts join. It does not if is_addition: these are further connections between hosts that have joined
	 * already. */
	struct psd_mesh_attempt *attempt;
	bool is_addition;
	double within_sec;
	double greeting_sec; /* time in which a connection must be made and the peer must greet, seconds */
	double remind_sec;   /* seconds between two lines about missing hosts */
	/* Receives lines about missing hosts and about processes that are not hosts of this run. May be NULL. */
	void (*remark)(void *context, const char *line);
	void *context;
};

struct psd_mesh_clock {
	/* Host 0's clock minus this host's clock, seconds; 0 if the difference is too small to measure. */
	double ahead_sec;
	/* Shortest round trip to host 0, seconds; on host 0: to any host; 0: there is no other host. */
	double rtt_sec;
};

/* Opens n_connections to each other host, and compares clocks. Blocks until all connections exist. fds: n_connections
 * descriptors for each host, -1 for this host itself; the caller closes them. PSD_EABSENT: a host did not come in time,
 * here or at a host that has given up for that; PSD_ERUN: a host does not fit or gives up; PSD_ELOST: a host has closed
 * its connection. If terms differ, both hosts name the first difference: the host that connects gives up; the other one
 * waits for its message, or for the deadline. A host that gives up tells all hosts that have joined. */
enum psd_status psd_mesh_open(const struct psd_mesh_options *options, int fds[], struct psd_mesh_clock *clock,
			      struct psd_error *err) PSD_MUST_CHECK;
/* Makes a descriptor that listens on the address and port of *self, for psd_mesh_options.listener. The caller closes
 * *listener. PSD_ERUN: the port is taken, or the address is not this machine's; PSD_EINVAL, PSD_ENOMEM as
 * psd_socket_listen(). */
enum psd_status psd_mesh_listen(const struct psd_mesh_host *self, int *listener, struct psd_error *err) PSD_MUST_CHECK;
/* Connects to the hosts that wait for host `self`, this one, and tells them that it has failed. Takes a second at most.
 * run_hash, secret: as in psd_mesh_options; words: the reason. */
void psd_mesh_report_failure(const struct psd_mesh_host hosts[], unsigned n_hosts, unsigned self, uint64_t run_hash,
			     struct psd_secret *secret, const char *words);

#define PSD_MESH_NAME_MAX 320
/* Writes the name of a host into text, "worker 2 at 10.0.0.3:7411" or "server 0 at 10.0.0.9:7411", and returns text. */
char *psd_mesh_name(const struct psd_layout *layout, const struct psd_mesh_host hosts[], unsigned host,
		    char text[PSD_MESH_NAME_MAX]);

#endif
