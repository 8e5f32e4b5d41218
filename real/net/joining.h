/* State of psd_mesh_open() while hosts join, and functions that its files call of each other. Private to mesh.c,
 * joining.c, handshakes.c and clocks.c. */
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
/* Pause after the first failed attempt to connect, seconds; short, since workers start at nearly the same time. */
#define PSD_FIRST_PAUSE_SEC 1e-3

/* A new connection on which the two hosts have not yet greeted each other. */
struct psd_handshake {
	int fd;
	bool is_ours; /* this host has opened the connection; false: the peer has */
	bool is_connecting;
	bool is_proving; /* only if is_ours: this host waits for the peer's proof that it knows the secret */
	/* The peer's terms differ from this host's: this host waits until the peer closes the connection. */
	bool is_refused;
	unsigned host;	     /* only if is_ours: number of the peer */
	unsigned connection; /* only if is_ours: number of this connection among those to the peer */
	double until_sec;
	struct psd_greeting greeting;
	char name[PSD_MESH_NAME_MAX];
};

struct psd_joining_host {
	struct addrinfo
		*found; /* addresses of the host; only for hosts with lower numbers, which this host connects to */
	struct addrinfo *next; /* entry of `found` to try next */
	double again_sec, pause_sec;
	/* errno of the last attempt to connect to the host; 0: none. Only for hosts with lower numbers. */
	int error;
	bool is_talking; /* an attempt to connect to the host is under way. Only for hosts with lower numbers */
	/* The host has joined and sent a message that belongs to a phase after joining: not to be read yet. */
	bool has_more;
	bool is_told; /* this host gives up, and has sent the reason to the host */
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
	/* Descriptors to poll: those of handshakes, the first connection to each host, the listener. */
	struct pollfd *polls;
	unsigned n_remarks;
	const char *failure; /* reason why this host gives up; NULL: it does not give up */
	unsigned refused;    /* number of the last host whose terms differ; n_hosts: no host */
	struct psd_error difference;
	bool is_behind;	  /* another host is in a later attempt to join, so this attempt is over */
	bool is_too_late; /* another host starts at an earlier iteration than this one can start at */
};

/* ---- joining.c ----. */

char *psd_joining_name(const struct psd_joining *joining, unsigned host, char text[PSD_MESH_NAME_MAX]);
int *psd_joining_first_connection(const struct psd_joining *joining, unsigned host);
/* Returns the number of the first connection to the host that does not exist yet; n_connections: all exist. */
unsigned psd_joining_next_connection(const struct psd_joining *joining, unsigned host);
/* True if all connections to the host exist. If this host gives up: true if the host was told so. */
bool psd_joining_is_settled(const struct psd_joining *joining, unsigned host);
/* Passes a line "WHAT NAME: WORDS" to the caller's remark(). After ten lines no more are passed. */
void psd_joining_remark(struct psd_joining *joining, const char *what, const char *name, const char *words);
void psd_joining_write_missing(const struct psd_joining *joining, char text[PSD_MISSING_MAX]);
/* Makes the error for hosts that have not joined in time. Its text names the missing hosts, this host and the hosts
 * that have joined. Returns PSD_EABSENT. */
enum psd_status psd_joining_give_up(const struct psd_joining *joining, struct psd_error *err);
/* Returns the hash of the hosts' addresses and ports and of psd_mesh_options.run_hash; never 0. */
uint64_t psd_joining_hash(const struct psd_joining *joining);
/* Sends the reason why this host gives up. With a secret it is sent only to a peer that has proved to know the secret.
 * Errors are ignored: the peer will see that the connection is closed. */
void psd_joining_say_failed(const struct psd_joining *joining, int fd, enum psd_status status, const char *words);
/* Sends the reason why a new connection is refused. secret NULL: in plain text, for a peer that may not know the
 * secret. */
void psd_joining_say_refused(struct psd_secret *secret, int fd, const char *words);
bool psd_joining_greet(const struct psd_joining *joining, int fd, unsigned connection);
bool psd_joining_find_difference(const struct psd_joining *joining, unsigned host, const char *terms,
				 struct psd_error *err);

/* ---- handshakes.c; every status but PSD_OK means that this attempt to join has failed ----. */

/* Begins to connect to hosts with lower numbers, as far as the pause since the last attempt is over. */
enum psd_status psd_handshakes_begin(struct psd_joining *joining, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_handshakes_accept(struct psd_joining *joining, struct psd_error *err) PSD_MUST_CHECK;
/* Continues a handshake whose descriptor is readable or writable. When the handshake ends, the last entry of
 * joining->handshakes is moved to its position. */
enum psd_status psd_handshake_continue(struct psd_joining *joining, struct psd_handshake *handshake,
				       struct psd_error *err) PSD_MUST_CHECK;
/* Handles bytes from a host that has already joined. The host closes the connection, gives up (both are errors), or has
 * sent a message of a later phase, which is left unread. */
enum psd_status psd_handshakes_read_joined(struct psd_joining *joining, unsigned host,
					   struct psd_error *err) PSD_MUST_CHECK;
void psd_handshakes_drop_silent(struct psd_joining *joining);
void psd_handshake_end(struct psd_joining *joining, struct psd_handshake *handshake);

/* ---- clocks.c ----. */

/* Measures the difference between this host's clock and host 0's into *clock. All hosts call it at once, with the
 * connections of psd_mesh_open(). PSD_ELOST: a host has not answered until until_sec; other statuses as
 * psd_frame_read(). */
enum psd_status psd_clocks_compare(const struct psd_mesh_options *options, const int fds[], double until_sec,
				   struct psd_mesh_clock *clock, struct psd_error *err) PSD_MUST_CHECK;

#endif
