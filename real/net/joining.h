/* What the parts of psd_mesh_open() share. Private to mesh.c, joining.c and talks.c. */
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
#define PSD_FIRST_PAUSE_SEC                                                                                            \
	1e-3 /* between two attempts to connect; the first are closer, since workers start together */

/* A connection before both ends are sure of each other. */
struct psd_talk {
	int fd;
	bool is_ours; /* this host has begun it */
	bool is_connecting;
	bool is_proving;     /* ours: connected, until the other end has proved that it knows the secret */
	bool is_refused;     /* the other's terms are different: it is to say that it gives up */
	unsigned host, line; /* ours: with whom, and which connection */
	double until_sec;
	struct psd_greeting greeting;
	char name[PSD_MESH_NAME_MAX];
};

struct psd_seat {
	struct addrinfo *found, *next; /* of a lower host: where it may be, and where to try next */
	double again_sec, pause_sec;
	int error;	 /* of a lower host: why the last attempt failed; 0: it has not */
	bool is_talking; /* of a lower host: an attempt is under way */
	bool has_more;	 /* on its first line lies what is for later */
	bool is_told;	 /* that this host gives up */
};

struct psd_joining {
	const struct psd_mesh_options *options;
	unsigned n_hosts;
	int *fds;
	int listener;
	double until_sec, remind_sec;
	struct psd_seat *seats;
	struct psd_talk *talks;
	unsigned n_talks, most_talks;
	struct pollfd *polls; /* of the talks, the hosts' first lines, the listener */
	unsigned n_remarks;
	const char *excuse; /* this host gives up: the words for the others; NULL: it joins them */
	unsigned refused;   /* the last host with other terms; n_hosts: none */
	struct psd_error difference;
	bool is_behind;	  /* another host is in a later attempt */
	bool is_too_late; /* another host begins with an earlier iteration */
};

/* ---- joining.c ---- */

char *psd_joining_name(const struct psd_joining *joining, unsigned host, char text[PSD_MESH_NAME_MAX]);
int *psd_joining_first_line(const struct psd_joining *joining, unsigned host);
/* The next that is to be opened; n_connections: none. */
unsigned psd_joining_next_line(const struct psd_joining *joining, unsigned host);
/* Nothing more is to be done with this host. */
bool psd_joining_is_settled(const struct psd_joining *joining, unsigned host);
/* The first few. */
void psd_joining_remark(struct psd_joining *joining, const char *what, const char *name, const char *words);
void psd_joining_write_missing(const struct psd_joining *joining, char text[PSD_MISSING_MAX]);
/* Of the list of hosts, and how often they have joined. */
uint64_t psd_joining_hash(const struct psd_joining *joining);
/* To whoever knows the secret, where there is one. Who does not take it closes the connection, and that says enough. */
void psd_joining_say_failed(const struct psd_joining *joining, int fd, enum psd_status status, const char *words);
/* To whoever does not know the secret: no more than the words. */
void psd_joining_say_refused(int fd, const char *words);
bool psd_joining_greet(const struct psd_joining *joining, int fd, unsigned line);
bool psd_joining_find_difference(const struct psd_joining *joining, unsigned host, const char *terms,
				 struct psd_error *err);

/* ---- talks.c; PSD_ERUN, PSD_ELOST, PSD_EINVAL, PSD_ENOMEM: the hosts cannot join ---- */

/* Connects to lower hosts where it is time to. */
enum psd_status psd_handshakes_begin(struct psd_joining *joining, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_handshakes_accept(struct psd_joining *joining, struct psd_error *err) PSD_MUST_CHECK;
/* Its connection is ready for what it waits for. The last talk takes the place of one that ends. */
enum psd_status psd_talk_hear(struct psd_joining *joining, struct psd_talk *talk, struct psd_error *err) PSD_MUST_CHECK;
/* From a host that has joined: it goes, gives up, or is further than this one. */
enum psd_status psd_handshakes_hear_joined(struct psd_joining *joining, unsigned host,
					   struct psd_error *err) PSD_MUST_CHECK;
void psd_handshakes_drop_silent(struct psd_joining *joining);
void psd_talk_end(struct psd_joining *joining, struct psd_talk *talk);

#endif
