/* Shared parts of psd_mesh_open(). Private to mesh.c, joining.c, handshakes.c and clocks.c. */
#ifndef PSD_REAL_JOINING_H
#define PSD_REAL_JOINING_H

#include <netdb.h>
#include <poll.h>
#include <stdbool.h>

#include "real/net/greeting.h"
#include "real/net/mesh.h"
#include "real/net/socket.h"

enum { PSD_MOST_STRANGERS = 1024, PSD_MOST_MISSING = 4 };

#define PSD_MISSING_MAX	    (PSD_MOST_MISSING * (PSD_MESH_NAME_MAX + 64) + 32)
#define PSD_JOINED_MAX	    (PSD_MOST_MISSING * 24 + 32)
#define PSD_FIRST_PAUSE_SEC 1e-3 /* first pause between two attempts; short, since workers start together */

/* A connection whose ends do not know each other yet. */
struct psd_handshake {
	int fd;
	bool is_ours; /* opened by this host, not by the peer */
	bool is_connecting;
	bool is_proving;	   /* only if is_ours: waits for the peer's proof that it knows the secret */
	bool is_refused;	   /* terms differ: this host waits until the peer gives up */
	unsigned host, connection; /* only if is_ours: number of the peer, and of the connection to it */
	double until_sec;
	struct psd_greeting greeting;
	char name[PSD_MESH_NAME_MAX];
};

struct psd_joining_host {
	struct addrinfo *found, *next; /* addresses of a host with a lower number, and the next one to try */
	double again_sec, pause_sec;
	int error;	 /* errno of the last attempt to connect to a lower host; 0: none */
	bool is_talking; /* an attempt to connect to this lower host is under way */
	bool has_more;	 /* the host's first connection holds a message of a later phase */
	bool is_told;	 /* the host has been told that this host gives up */
};

struct psd_joining {
	const struct psd_mesh_options *options;
	unsigned n_hosts;
	int *fds;
	int listener;
	double until_sec, remind_sec;
	struct psd_joining_host *states;
	struct psd_handshake *handshakes;
	unsigned n_handshakes, most_handshakes;
	struct pollfd *polls; /* descriptors to poll: handshakes, hosts' first connections, listener */
	unsigned n_remarks;
	const char *failure; /* reason why this host gives up; NULL: it joins */
	unsigned refused;    /* last host whose terms differ; n_hosts: none */
	struct psd_error difference;
	bool is_behind;	  /* another host is in a later attempt */
	bool is_too_late; /* another host starts at an earlier iteration */
};

/* ---- joining.c ---- */

char *psd_joining_name(const struct psd_joining *joining, unsigned host, char text[PSD_MESH_NAME_MAX]);
int *psd_joining_first_connection(const struct psd_joining *joining, unsigned host);
/* Number of the first connection to the host that is not complete; n_connections: all are. */
unsigned psd_joining_next_connection(const struct psd_joining *joining, unsigned host);
/* True if all connections to the host are complete, or it has been told that this host gives up. */
bool psd_joining_is_settled(const struct psd_joining *joining, unsigned host);
/* Passes an event to the caller's remark(), but only the first few. */
void psd_joining_remark(struct psd_joining *joining, const char *what, const char *name, const char *words);
void psd_joining_write_missing(const struct psd_joining *joining, char text[PSD_MISSING_MAX]);
/* The time to join is over: the hosts that are missing, this one, and those that have joined it. */
enum psd_status psd_joining_give_up(const struct psd_joining *joining, struct psd_error *err);
/* Hash of the list of hosts and of psd_mesh_options.run_hash; never 0. */
uint64_t psd_joining_hash(const struct psd_joining *joining);
/* Sends a failure to a peer that knows the secret, if the run has one. If that fails, the closed connection tells the
 * peer enough. */
void psd_joining_say_failed(const struct psd_joining *joining, int fd, enum psd_status status, const char *words);
/* Sends the reason why a connection is refused, in plain text without a secret: the peer may not know it. */
void psd_joining_say_refused(struct psd_secret *secret, int fd, const char *words);
bool psd_joining_greet(const struct psd_joining *joining, int fd, unsigned connection);
bool psd_joining_find_difference(const struct psd_joining *joining, unsigned host, const char *terms,
				 struct psd_error *err);

/* ---- handshakes.c; PSD_ERUN, PSD_ELOST, PSD_EINVAL, PSD_ENOMEM: the hosts cannot join ---- */

/* Starts the due attempts to connect to hosts with lower numbers. */
enum psd_status psd_handshakes_begin(struct psd_joining *joining, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_handshakes_accept(struct psd_joining *joining, struct psd_error *err) PSD_MUST_CHECK;
/* Continues a handshake whose descriptor is ready. When one ends, the last one moves to its position. */
enum psd_status psd_handshake_continue(struct psd_joining *joining, struct psd_handshake *handshake,
				       struct psd_error *err) PSD_MUST_CHECK;
/* Reads from a host that has already joined: it closes, gives up, or is in a later phase. */
enum psd_status psd_handshakes_read_joined(struct psd_joining *joining, unsigned host,
					   struct psd_error *err) PSD_MUST_CHECK;
void psd_handshakes_drop_silent(struct psd_joining *joining);
void psd_handshake_end(struct psd_joining *joining, struct psd_handshake *handshake);

/* ---- clocks.c ---- */

/* Measures this host's clock offset to host 0; all hosts call it at once, with the connections of psd_mesh_open().
 * PSD_ELOST: a host did not answer until until_sec; other statuses as psd_frame_read(). */
enum psd_status psd_clocks_compare(const struct psd_mesh_options *options, const int fds[], double until_sec,
				   struct psd_mesh_clock *clock, struct psd_error *err) PSD_MUST_CHECK;

#endif
