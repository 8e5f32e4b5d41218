/* Stream sockets between hosts: listen, connect and accept. Every socket is non-blocking and close-on-exec, has
 * TCP_NODELAY, and uses the congestion control cubic, because BBR halves the rate of loopback and veth pairs. Callers
 * that write to a socket must pass MSG_NOSIGNAL. Any thread. */
#ifndef PSD_REAL_SOCKET_H
#define PSD_REAL_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"

struct addrinfo;

struct psd_socket_options {
	/* The two sizes below are set; false: the kernel adapts them (net.ipv4.tcp_rmem, net.ipv4.tcp_wmem). */
	bool has_buffers;
	uint32_t send_buffer_bytes;    /* size of the socket's send buffer, limited by net.core.wmem_max */
	uint32_t receive_buffer_bytes; /* size of the socket's receive buffer, limited by net.core.rmem_max */
};

/* Makes a socket *fd that listens on an address or host name and a port; the caller closes it. host NULL: all
 * interfaces, IPv4. port 0: the kernel chooses a free port. *bound_port: number of the port. PSD_EINVAL: the host name
 * is unknown; PSD_ERUN: the port is taken, or the address is not this machine's. */
enum psd_status psd_socket_listen(const char *host, uint16_t port, const struct psd_socket_options *options, int *fd,
				  uint16_t *bound_port, struct psd_error *err) PSD_MUST_CHECK;

/* Resolves a host name or address into *found, which the caller frees by freeaddrinfo(). PSD_EINVAL: the name cannot be
 * resolved, "no host 'node7': ..."; PSD_ENOMEM. */
enum psd_status psd_socket_look_up(const char *host, uint16_t port, struct addrinfo **found,
				   struct psd_error *err) PSD_MUST_CHECK;

/* Begins to connect to an address; the caller closes *fd. When *fd is writable, psd_socket_error(*fd) returns the
 * result of connecting. psd_socket_connect(), _error() and _accept() return 0 or an errno. */
int psd_socket_connect(const struct addrinfo *address, const struct psd_socket_options *options, int *fd);
int psd_socket_error(int fd);
#define PSD_SOCKET_PLACE_MAX 96
/* Accepts a waiting connection into *fd. EAGAIN: no connection waits. from: receives the peer's address as text,
 * "10.0.0.4 port 4711". */
int psd_socket_accept(int listener, const struct psd_socket_options *options, int *fd, char from[PSD_SOCKET_PLACE_MAX]);
/* True if connecting may succeed later in spite of this errno, as while other hosts are starting. */
bool psd_socket_may_pass(int error);

/* Returns the seconds of CLOCK_MONOTONIC, which all processes of a machine share. All deadlines are times of this
 * clock. */
double psd_socket_now_sec(void);

/* Waits until fd is readable or its connection has ended. Returns false if until_sec has come before. */
bool psd_socket_await(int fd, double until_sec);
/* True if the connection's two ends are the same socket: TCP may connect a port to itself by chance. */
bool psd_socket_is_to_itself(int fd);
/* Sends a few bytes on a connection whose send buffer is empty. Returns false if the socket did not take all of them at
 * once. */
bool psd_socket_send_small(int fd, const uint8_t *bytes, size_t n_bytes);

#define PSD_SOCKET_CONGESTION_MAX 16
/* Writes the name of the congestion control that the socket uses into text, or "unknown", and returns text. */
char *psd_socket_congestion(int fd, char text[PSD_SOCKET_CONGESTION_MAX]);

/* Raises the process's limit of open descriptors to the most that the system allows, since each host has connections to
 * all others. */
void psd_socket_allow_many(void);

#endif
