/* Stream sockets between workers: listen, connect and accept. Every socket is non-blocking, close-on-exec, TCP_NODELAY,
 * and uses cubic: BBR halves the rate of loopback and veth pairs. Callers that write pass MSG_NOSIGNAL. Any thread. */
#ifndef PSD_REAL_SOCKET_H
#define PSD_REAL_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"

struct addrinfo;

struct psd_socket_options {
	bool has_buffers; /* the sizes below are set; false: the kernel adapts them (net.ipv4.tcp_rmem, tcp_wmem) */
	uint32_t send_buffer_bytes,
		receive_buffer_bytes; /* sizes of the socket's buffers, limited by net.core.wmem_max and rmem_max */
};

/* Listens on an address or host name (NULL: every interface, IPv4) and port (0: chosen by the kernel). The caller
 * closes *fd; *bound_port: the port. PSD_EINVAL: unknown host; PSD_ERUN: the port is taken, or the address is not this
 * machine's. */
enum psd_status psd_socket_listen(const char *host, uint16_t port, const struct psd_socket_options *options, int *fd,
				  uint16_t *bound_port, struct psd_error *err) PSD_MUST_CHECK;

/* Resolves a host name or address; freeaddrinfo() frees *found. PSD_EINVAL: the name cannot be resolved, "no host
 * 'node7': ..."; PSD_ENOMEM. */
enum psd_status psd_socket_look_up(const char *host, uint16_t port, struct addrinfo **found,
				   struct psd_error *err) PSD_MUST_CHECK;

/* Begins to connect; when *fd is writable, psd_socket_error() returns the result. The caller closes *fd. This function
 * and the next two return 0 or an errno. */
int psd_socket_connect(const struct addrinfo *address, const struct psd_socket_options *options, int *fd);
int psd_socket_error(int fd);
#define PSD_SOCKET_PLACE_MAX 96
/* Accepts a waiting connection; EAGAIN: none waits. from: address of the peer, "10.0.0.4 port 4711". */
int psd_socket_accept(int listener, const struct psd_socket_options *options, int *fd, char from[PSD_SOCKET_PLACE_MAX]);
/* True if this error of connecting may disappear while hosts start. */
bool psd_socket_may_pass(int error);

/* Seconds of CLOCK_MONOTONIC, the clock of all deadlines, shared by all processes of a machine. */
double psd_socket_now_sec(void);

/* Waits until fd is readable or has ended. False: until_sec has come. */
bool psd_socket_await(int fd, double until_sec);
/* True if TCP has connected a port to itself, which happens by chance. */
bool psd_socket_is_to_itself(int fd);
/* Sends a few bytes on a connection whose send buffer is empty. False: not all of them were accepted at once. */
bool psd_socket_send_small(int fd, const uint8_t *bytes, size_t n_bytes);

#define PSD_SOCKET_CONGESTION_MAX 16
/* Writes the name of the socket's congestion control, or "unknown"; returns text. */
char *psd_socket_congestion(int fd, char text[PSD_SOCKET_CONGESTION_MAX]);

/* Raises the process's limit of open descriptors to the system's: each host has connections to all others. */
void psd_socket_allow_many(void);

#endif
