/* Stream sockets between hosts: listen, connect and accept. Every socket is non-blocking and close-on-exec, has
 * TCP_NODELAY, and uses the congestion control `cubic`, because BBR halves the rate of loopback and veth pairs. Callers
 * that write to a socket must pass MSG_NOSIGNAL. Any thread. */
#ifndef PSD_REAL_SOCKET_H
#define PSD_REAL_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"

struct addrinfo;

struct psd_socket_options {
	/* True: send_buffer_bytes and receive_buffer_bytes are used. False: the kernel adapts the sizes
	 * (net.ipv4.tcp_rmem, net.ipv4.tcp_wmem). */
	bool has_buffers;
	uint32_t send_buffer_bytes;    /* size of the socket's send buffer, limited by net.core.wmem_max */
	uint32_t receive_buffer_bytes; /* size of the socket's receive buffer, limited by net.core.rmem_max */
};

/* Makes a socket *fd that listens on the port of `host`, which is an address or a host name; the caller closes it. host
 * NULL: all IPv4 interfaces. port 0: the kernel chooses a free port. *bound_port: number of the port that is used.
 * PSD_EINVAL: the host name is unknown; PSD_ERUN: the port is in use, or the address is not one of this machine. */
enum psd_status psd_socket_listen(const char *host, uint16_t port, const struct psd_socket_options *options, int *fd,
				  uint16_t *bound_port, struct psd_error *err) PSD_MUST_CHECK;

/* Resolves a host name or address into *found, which the caller frees by freeaddrinfo(). PSD_EINVAL: the name cannot be
 * resolved, "no host 'node7': ..."; PSD_ENOMEM. */
enum psd_status psd_socket_look_up(const char *host, uint16_t port, struct addrinfo **found,
				   struct psd_error *err) PSD_MUST_CHECK;

/* Begins to connect to an address; the caller closes *fd. When *fd is writable, psd_socket_error(*fd) returns the
 * result: 0 if the connection is made, otherwise an errno. psd_socket_connect() and psd_socket_accept() also return 0
 * or an errno. */
int psd_socket_connect(const struct addrinfo *address, const struct psd_socket_options *options, int *fd);
int psd_socket_error(int fd);
#define PSD_SOCKET_PLACE_MAX 96
/* Accepts a waiting connection into *fd. Returns EAGAIN if no connection is waiting. from: receives the peer's address
 * as text, such as "10.0.0.4 port 4711". */
int psd_socket_accept(int listener, const struct psd_socket_options *options, int *fd, char from[PSD_SOCKET_PLACE_MAX]);
/* True if a later attempt to connect may succeed although this one failed with errno `error`, for example because the
 * other host has not started yet. */
bool psd_socket_may_pass(int error);

/* Returns the time of CLOCK_MONOTONIC in seconds, which all processes of a machine share. All deadlines are times of
 * this clock. */
double psd_socket_now_sec(void);

/* Waits until fd is readable or its connection has ended, and returns true. Returns false at time until_sec
 * (psd_socket_now_sec()). */
bool psd_socket_await(int fd, double until_sec);
/* True if both ends of the connection are the same socket. That can happen by chance when a process connects to a port
 * of its own machine on which nothing listens. */
bool psd_socket_is_to_itself(int fd);
/* Sends a few bytes on a connection whose send buffer is empty. Does not wait. Returns false if the socket did not
 * accept all bytes. */
bool psd_socket_send_small(int fd, const uint8_t *bytes, size_t n_bytes);

#define PSD_SOCKET_CONGESTION_MAX 16
/* Writes the name of the congestion control that the socket uses into text, or "unknown", and returns text. */
char *psd_socket_congestion(int fd, char text[PSD_SOCKET_CONGESTION_MAX]);

/* Raises this process's limit of open descriptors to the largest value that the system allows, since each host has
 * connections to all others. */
void psd_socket_allow_many(void);

#endif
