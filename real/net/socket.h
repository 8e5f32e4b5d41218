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
	bool has_buffers; /* false: the kernel adapts them, up to net.ipv4.tcp_rmem and tcp_wmem */
	uint32_t send_buffer_bytes, receive_buffer_bytes; /* limited by net.core.wmem_max and rmem_max */
};

/* Listens on an address or host name (NULL: every interface, IPv4) and port (0: chosen by the kernel). The caller
 * closes *fd; *bound_port: the port. PSD_EINVAL: unknown host; PSD_ERUN: the port is taken, or the address is not this
 * machine's. */
enum psd_status psd_socket_listen(const char *host, uint16_t port, const struct psd_socket_options *options, int *fd,
				  uint16_t *bound_port, struct psd_error *err) PSD_MUST_CHECK;

/* Resolves a host name or address; freeaddrinfo() frees *found. PSD_EINVAL: "no host 'node7': Name or service not
 * known"; PSD_ENOMEM. */
enum psd_status psd_socket_look_up(const char *host, uint16_t port, struct addrinfo **found,
				   struct psd_error *err) PSD_MUST_CHECK;

/* Begins to connect; when *fd is writable, psd_socket_error() tells the result. The caller closes *fd. These three
 * return 0 or an errno. */
int psd_socket_connect(const struct addrinfo *address, const struct psd_socket_options *options, int *fd);
int psd_socket_error(int fd);
#define PSD_SOCKET_PLACE_MAX 96
/* Accepts a waiting connection; EAGAIN: none waits. from: its origin, "10.0.0.4 port 4711". */
int psd_socket_accept(int listener, const struct psd_socket_options *options, int *fd, char from[PSD_SOCKET_PLACE_MAX]);
/* True if an error of connecting may disappear while hosts start. */
bool psd_socket_may_pass(int error);

/* Seconds of CLOCK_MONOTONIC, the clock of all deadlines, shared by all processes of a machine. */
double psd_socket_now_sec(void);

/* Waits until fd is readable or has ended. False: until_sec has come. */
bool psd_socket_await(int fd, double until_sec);
/* True if by chance TCP has connected a port to itself. */
bool psd_socket_is_to_itself(int fd);
/* Sends a few bytes on a connection with an empty buffer. False: it does not take them at once. */
bool psd_socket_send_small(int fd, const uint8_t *bytes, size_t n_bytes);

#define PSD_SOCKET_CONGESTION_MAX 16
/* Writes the name of the congestion control in use, or "unknown"; returns text. */
char *psd_socket_congestion(int fd, char text[PSD_SOCKET_CONGESTION_MAX]);

/* Raises the limit of open descriptors to the system's: each host has connections to all others. */
void psd_socket_allow_many(void);

#endif
