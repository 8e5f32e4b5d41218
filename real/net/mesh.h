/* Connections between every two hosts of a run; the host with the higher number opens them. Both hosts check that they
 * use the same protocol version and terms (scenario keys and file contents), and that their host numbers are correct.
 * Then they compare their clocks. If a process connects that is not a host of this run, its connection is closed and
 * remark() gets a line. No other messages are sent. */
#ifndef PSD_REAL_MESH_H
#define PSD_REAL_MESH_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/collectives/layout.h"

#define PSD_MESH_ADDRESS_MAX 254 /* longest host name with its final zero; a resolver takes up to 253 characters */
/* Time within which a process that has connected must send its greeting, seconds. */
#define PSD_MESH_GREETING_SEC 10.0
#define PSD_MESH_REMIND_SEC   10.0

struct psd_secret;

struct psd_mesh_host {
	char address[PSD_MESH_ADDRESS_MAX];
	uint16_t port;
};

/* One attempt of all hosts to join again after a host was lost. Attempts are numbered. If another host greets with an
 * earlier number, it is late or was restarted, and it changes to this host's number. If another host has a later
 * number, this attempt has failed. All hosts must start at the same iteration. If one host can only start at an earlier
 * iteration, the others lower first_iteration and try again. */
struct psd_mesh_attempt {
	uint32_t number;      /* number of this attempt; raised if another host has a later number */
	uint32_t next_number; /* output: number for the attempt after this one */
	/* Iteration at which this host starts. psd_mesh_open() lowers it and returns PSD_ELOST if another host starts
	 * at an earlier one. */
	uint32_t first_iteration;
};

struct psd_mesh_options {
	const struct psd_layout *layout;
	const struct psd_mesh_host *hosts; /* names and ports of all hosts; shape (psd_layout_hosts(layout)) */
	unsigned self;
	unsigned n_connections;	   /* number of connections between two hosts, >= 1 */
	struct psd_secret *secret; /* pre-shared secret of all hosts, see real/net/secret.h; NULL: none */
	/* Listening socket, which psd_mesh_open() closes. -1: psd_mesh_open() makes one for this host's own address. */
	int listener;
	/* Hash of the run and of the number of times that hosts joined before. If another host sends PSD_WIRE_FAILED,
	 * the message counts only if it contains an equal hash. */
	uint64_t run_hash;
	/* Text of the terms, which must be equal on all hosts, see psd_scenario_add_agreed(). At most
	 * PSD_GREETING_TERMS_MAX bytes. */
	const char *terms;
	/* Attempt to join again; NULL: hosts join only once. With an attempt, psd_mesh_open() keeps waiting for a host
	 * that leaves while hosts join. It does not if is_addition, which means that these are further connections
	 * between hosts that have joined already. */
	struct psd_mesh_attempt *attempt;
	bool is_addition;
	double within_sec;
	double greeting_sec; /* time limit for making a connection and for the peer's greeting, seconds */
	double remind_sec;   /* seconds between two lines about missing hosts */
	/* Callback that receives each line about missing hosts and about processes that are not hosts of this run.
	 * NULL: no lines. */
	void (*remark)(void *context, const char *line);
	void *context;
};

struct psd_mesh_clock {
	/* Host 0's clock minus this host's clock, seconds; 0 if the difference is too small to measure. */
	double ahead_sec;
	/* Shortest measured round trip to host 0, seconds. On host 0: shortest round trip to any other host; 0: there
	 * is no other host. */
	double rtt_sec;
};

/* Opens n_connections connections to each other host, and compares clocks. Blocks until all connections exist. fds:
 * n_connections descriptors for each host, -1 for this host itself; the caller closes them. PSD_EABSENT: a host did not
 * join in time, or another host gave up because of that; PSD_ERUN: a host does not belong to this run or gives up;
 * PSD_ELOST: a host has closed its connection. If terms differ, both hosts name the first difference. The host that
 * connects gives up; the other one waits for the message that says so, or for the deadline. A host that gives up tells
 * all hosts that have joined. */
enum psd_status psd_mesh_open(const struct psd_mesh_options *options, int fds[], struct psd_mesh_clock *clock,
			      struct psd_error *err) PSD_MUST_CHECK;
/* Makes a socket that listens on the address and port of *self, for psd_mesh_options.listener. The caller closes
 * *listener. PSD_ERUN: the port is in use, or the address is not one of this machine; PSD_EINVAL, PSD_ENOMEM as
 * psd_socket_listen(). */
enum psd_status psd_mesh_listen(const struct psd_mesh_host *self, int *listener, struct psd_error *err) PSD_MUST_CHECK;
/* Tells other hosts that this one, host `self`, has failed: connects to each host that is still waiting for it and
 * sends `words`, the reason. Waits one second at most. run_hash, secret: as in psd_mesh_options. */
void psd_mesh_report_failure(const struct psd_mesh_host hosts[], unsigned n_hosts, unsigned self, uint64_t run_hash,
			     struct psd_secret *secret, const char *words);

#define PSD_MESH_NAME_MAX 320
/* Writes the name of a host into text, "worker 2 at 10.0.0.3:7411" or "server 0 at 10.0.0.9:7411", and returns text. */
char *psd_mesh_name(const struct psd_layout *layout, const struct psd_mesh_host hosts[], unsigned host,
		    char text[PSD_MESH_NAME_MAX]);

#endif
