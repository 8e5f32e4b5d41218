/* Stream sockets between workers: listening, connecting and accepting. Every socket is non-blocking, close-on-exec,
 * TCP_NODELAY, and uses cubic: a default of BBR halves what loopback and veth pairs carry. A caller that writes passes
 * MSG_NOSIGNAL. Refuses to know what travels. Any thread. */
#ifndef PSD_REAL_SOCKET_H
#define PSD_REAL_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"

struct addrinfo;

struct psd_socket_options {
	bool has_buffers; /* false: the kernel adapts them, up to net.ipv4.tcp_rmem and tcp_wmem */
	uint32_t send_buffer_bytes, receive_buffer_bytes; /* cut by the kernel to net.core.wmem_max and rmem_max */
};

/* Listens on an address or host name (NULL: every interface, IPv4) and port (0: the kernel chooses). *fd: the caller
 * closes it; *bound_port: where it listens. PSD_EINVAL: no such host; PSD_ERUN: the port is taken, or the address is
 * not this machine's. */
enum psd_status psd_socket_listen(const char *host, uint16_t port, const struct psd_socket_options *options, int *fd,
				  uint16_t *bound_port, struct psd_error *err) PSD_MUST_CHECK;

/* Whether a host's name or address is known here, and where it is: *found, which freeaddrinfo() frees. PSD_EINVAL: "no
 * host 'node7': Name or service not known"; PSD_ENOMEM. */
enum psd_status psd_socket_look_up(const char *host, uint16_t port, struct addrinfo **found,
				   struct psd_error *err) PSD_MUST_CHECK;

/* Begins to connect; when *fd can be written to, psd_socket_error() says how it went. *fd: the caller closes it. These
 * three return 0 or an errno. */
int psd_socket_connect(const struct addrinfo *address, const struct psd_socket_options *options, int *fd);
int psd_socket_error(int fd);
#define PSD_SOCKET_PLACE_MAX 96
/* Takes a connection that waits; EAGAIN: none does. from: where it comes from, "10.0.0.4 port 4711". */
int psd_socket_accept(int listener, const struct psd_socket_options *options, int *fd, char from[PSD_SOCKET_PLACE_MAX]);
/* Whether what kept hosts from connecting may pass while they start. */
bool psd_socket_may_pass(int error);

/* The clock of all deadlines here: CLOCK_MONOTONIC, which all processes of a machine share. */
double psd_socket_now_sec(void);

/* Until something can be read, or has ended. False: until_sec has come. */
bool psd_socket_await(int fd, double until_sec);
/* By chance TCP has given this end the port that it looks for. */
bool psd_socket_is_to_itself(int fd);
/* Sends some bytes on a connection whose buffer is empty, and so takes them at once. False: it does not. */
bool psd_socket_send_small(int fd, const uint8_t *bytes, size_t n_bytes);

#define PSD_SOCKET_CONGESTION_MAX 16
/* The congestion control that a connected socket really uses, in text; "unknown" if the kernel does not say. Returns
 * text. */
char *psd_socket_congestion(int fd, char text[PSD_SOCKET_CONGESTION_MAX]);

/* Lets this process have as many descriptors as the system allows: each host has connections to all others. */
void psd_socket_allow_many(void);

#endif
