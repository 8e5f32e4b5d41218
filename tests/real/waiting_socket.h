/* Sockets that wait until the peer is there, for tests and benchmarks that play a host. They return -1 if no peer came.
 * Needs _GNU_SOURCE in the file that includes this. */
#ifndef PSD_TESTS_REAL_WAITING_SOCKET_H
#define PSD_TESTS_REAL_WAITING_SOCKET_H

#include <netdb.h>
#include <poll.h>
#include <unistd.h>

#include "real/net/socket.h"

static inline int connect_once(const struct addrinfo *address, const struct psd_socket_options *options)
{
	struct pollfd polled = {.events = POLLOUT};

	if (psd_socket_connect(address, options, &polled.fd))
		return -1;
	if (poll(&polled, 1, 1000) == 1 && !psd_socket_error(polled.fd))
		return polled.fd;
	close(polled.fd);
	return -1;
}

static inline int connect_within(const char *host, uint16_t port, double within_sec,
				 const struct psd_socket_options *options)
{
	const double until_sec = psd_socket_now_sec() + within_sec;
	struct addrinfo *found;
	struct psd_error err;
	int fd;

	if (psd_socket_look_up(host, port, &found, &err))
		return -1;
	while ((fd = connect_once(found, options)) < 0 && psd_socket_now_sec() < until_sec)
		(void)poll(NULL, 0, 1);
	freeaddrinfo(found);
	return fd;
}

static inline int accept_within(int listener, double within_sec)
{
	static const struct psd_socket_options options = {.has_buffers = false};
	struct pollfd polled = {.fd = listener, .events = POLLIN};
	char from[PSD_SOCKET_PLACE_MAX];
	int fd;

	if (poll(&polled, 1, (int)(1e3 * within_sec)) != 1 || psd_socket_accept(listener, &options, &fd, from))
		return -1;
	return fd;
}

#endif
