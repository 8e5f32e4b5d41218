/* State of psd_mesh_open() while hosts join, and the functions that its files share. Private to mesh.c, joining.c,
 * handshakes.c and clocks.c. */
#ifndef PSD_REAL_JOINING_H
#define PSD_REAL_JOINING_H

#include <netdb.h>
#include <poll.h>
#include <stdbool.h>

#include "real/net/greeting.h"
#include "real/net/mesh.h"
#include "real/net/socket.h"

enum { PSD_MOST_STRANGERS = 1024, PSD_MOST_MISSING = 4 };

#define PSD_MISSING_MAX (PSD_MOST_MISSING * (PSD_MESH_NAME_MAX + 64) + 32)
#define PSD_JOINED_MAX	(PSD_MOST_MISSING * 24 + 32)
/* Pause after the first failed attempt to connect to a host, seconds. It is short because all workers start at nearly
 * the same time. */
#define PSD_FIRST_PAUSE_SEC 1e-3

/* A new connection on which the two hosts have not yet greeted each other. */
struct psd_handshake {
	int fd;
	bool is_ours; /* this host has opened the connection; false: the peer has */
	bool is_connecting;
	bool is_proving; /* only if is_ours: this host waits for the peer's proof that it knows the secret */
	/* The peer's terms differ from this host's terms, and the peer was told so. This host waits until the peer
	 * closes the connection. */
	bool is_refused;
	unsigned host;	     /* only if is_ours: number of the peer */
	unsigned connection; /* only if is_ours: number of this connection among those to the peer */
	double until_sec;
	struct psd_greeting greeting;
	char name[PSD_MESH_NAME_MAX];
};

struct psd_joining_host {
	/* Addresses of the host; NULL for hosts with higher numbers than this one, since those connect to this host. */
	struct addrinfo *found;
	struct addrinfo *next; /* entry of `found` that the next attempt to connect uses */
	double again_sec, pause_sec;
	/* errno of the last failed attempt to connect to the host; 0: no attempt has failed. Only for hosts with lower
	 * numbers. */
	int error;
	bool is_talking; /* an attempt to connect to the host is in progress; only for hosts with lower numbers */
	/* The host has joined and has sent a message of a phase after joining. The message must stay unread for now. */
	bool has_more;
	bool is_told; /* this host gives up, and has sent the reason to that host */
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
	/* Descriptors for poll(): those of the handshakes, of the first connection to each host, and of the
	 * listener. */
	struct pollfd *polls;
	unsigned n_remarks;
	const char *failure; /* reason why this host gives up; NULL: it does not */
	unsigned refused;    /* number of the host whose terms were last found to differ; n_hosts: none so far */
	struct psd_error difference;
	bool is_behind; /* another host has begun a later attempt to join, so this attempt has failed */
	/* Another host must start at an earlier iteration than first_iteration of this attempt, so this attempt has
	 * failed. */
	bool is_too_late;
};

/* ---- joining.c ----. */

char *psd_joining_name(const struct psd_joining *joining, unsigned host, char text[PSD_MESH_NAME_MAX]);
int *psd_joining_first_connection(const struct psd_joining *joining, unsigned host);
/* Returns the number of the first connection to the host that does not exist yet; n_connections: all exist. */
unsigned psd_joining_next_connection(const struct psd_joining *joining, unsigned host);
/* True if all connections to the host exist. If this host gives up: true if it has sent the reason to that host. */
bool psd_joining_is_settled(const struct psd_joining *joining, unsigned host);
/* Passes the line "WHAT NAME: WORDS" to the callback remark(). After ten lines no further lines are passed. */
void psd_joining_remark(struct psd_joining *joining, const char *what, const char *name, const char *words);
void psd_joining_write_missing(const struct psd_joining *joining, char text[PSD_MISSING_MAX]);
/* Makes the error for hosts that have not joined in time. Its text names the missing hosts, this host and the hosts
 * that have joined. Returns PSD_EABSENT. */
enum psd_status psd_joining_give_up(const struct psd_joining *joining, struct psd_error *err);
/* Returns the hash of the hosts' addresses and ports and of psd_mesh_options.run_hash; never 0. */
uint64_t psd_joining_hash(const struct psd_joining *joining);
/* Sends to a peer the status and the words with which this host gives up. If there is a secret, it sends only to a peer
 * that has proved to know the secret. Errors are ignored: the peer will see that the connection is closed. */
void psd_joining_say_failed(const struct psd_joining *joining, int fd, enum psd_status status, const char *words);
/* Sends to a peer the reason why its new connection is refused. secret NULL: unencrypted, since the peer may not know
 * the secret. */
void psd_joining_say_refused(struct psd_secret *secret, int fd, const char *words);
bool psd_joining_greet(const struct psd_joining *joining, int fd, unsigned connection);
bool psd_joining_find_difference(const struct psd_joining *joining, unsigned host, const char *terms,
				 struct psd_error *err);

/* ---- handshakes.c. In all functions a status other than PSD_OK means that this attempt to join has failed. ---- */

/* Begins to connect to each host with a lower number for which the pause since the last attempt is over. */
enum psd_status psd_handshakes_begin(struct psd_joining *joining, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_handshakes_accept(struct psd_joining *joining, struct psd_error *err) PSD_MUST_CHECK;
/* Continues a handshake whose descriptor is readable or writable. When the handshake ends, its entry in
 * joining->handshakes is overwritten by the last entry of that array. */
enum psd_status psd_handshake_continue(struct psd_joining *joining, struct psd_handshake *handshake,
				       struct psd_error *err) PSD_MUST_CHECK;
/* Handles bytes from a host that has already joined. If the host closes the connection or gives up, that is an error. A
 * message of a later phase is left unread. */
enum psd_status psd_handshakes_read_joined(struct psd_joining *joining, unsigned host,
					   struct psd_error *err) PSD_MUST_CHECK;
void psd_handshakes_drop_silent(struct psd_joining *joining);
void psd_handshake_end(struct psd_joining *joining, struct psd_handshake *handshake);

/* ---- clocks.c ----. */

/* Measures the difference between this host's clock and host 0's clock into *clock. All hosts call it at the same time.
 * fds: the connections of psd_mesh_open(). PSD_ELOST: a host has not answered by until_sec (psd_socket_now_sec());
 * other statuses as psd_frame_read(). */
enum psd_status psd_clocks_compare(const struct psd_mesh_options *options, const int fds[], double until_sec,
				   struct psd_mesh_clock *clock, struct psd_error *err) PSD_MUST_CHECK;

#endif
