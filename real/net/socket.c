#define _GNU_SOURCE
#include "real/net/socket.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BACKLOG 1024

/* Name of an address in errors: "10.0.0.4:4711", "[fe80::1]:4711", "node17:4711". */
struct endpoint {
	char text[300];
};

static struct endpoint endpoint_of(const char *host, unsigned port)
{
	struct endpoint endpoint;

	snprintf(endpoint.text, sizeof(endpoint.text), strchr(host, ':') ? "[%.255s]:%u" : "%.255s:%u", host, port);
	return endpoint;
}

double psd_socket_now_sec(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

char *psd_socket_congestion(int fd, char text[PSD_SOCKET_CONGESTION_MAX])
{
	char name[PSD_SOCKET_CONGESTION_MAX] = "";
	socklen_t name_bytes = sizeof(name) - 1;

	if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &name_bytes) < 0 || !*name)
		snprintf(name, sizeof(name), "unknown");
	memcpy(text, name, sizeof(name));
	return text;
}

/* Prefers cubic, if the machine allows it; Reno always exists, and is as good on short paths. */
static void choose_congestion(int fd)
{
	char name[PSD_SOCKET_CONGESTION_MAX];

	if (strcmp(psd_socket_congestion(fd, name), "cubic") == 0)
		return;
	if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5) < 0)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}

/* Call before connect or listen: the window scale follows from the buffer. Returns 0 or an errno. */
static int set_options(int fd, const struct psd_socket_options *options)
{
	const int is_on = 1, send_bytes = (int)options->send_buffer_bytes,
		  receive_bytes = (int)options->receive_buffer_bytes;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &is_on, sizeof(is_on)) < 0)
		return errno;
	choose_congestion(fd);
	if (!options->has_buffers)
		return 0;
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof(send_bytes)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes)) < 0)
		return errno;
	return 0;
}

static enum psd_status find(const char *host, uint16_t port, bool is_passive, struct addrinfo **found,
			    struct psd_error *err)
{
	const struct addrinfo hints = {.ai_family = host ? AF_UNSPEC : AF_INET,
				       .ai_socktype = SOCK_STREAM,
				       .ai_flags = AI_NUMERICSERV | (is_passive ? AI_PASSIVE : 0)};
	char service[8];

	snprintf(service, sizeof(service), "%u", port);
	const int failure = getaddrinfo(host, service, &hints, found);
	if (failure == EAI_MEMORY)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
	if (failure)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "no host '%s': %s", host ? host : "",
				     gai_strerror(failure));
	return PSD_OK;
}

enum psd_status psd_socket_look_up(const char *host, uint16_t port, struct addrinfo **found, struct psd_error *err)
{
	return find(host, port, false, found, err);
}

static int open_for(const struct addrinfo *address, const struct psd_socket_options *options, int *fd)
{
	const int opened = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (opened < 0)
		return errno;
	const int error = set_options(opened, options);
	if (error)
		close(opened);
	else
		*fd = opened;
	return error;
}

/* ---- listening ---- */

static uint16_t port_of(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} address = {0};
	socklen_t address_bytes = sizeof(address);

	if (getsockname(fd, &address.any, &address_bytes) < 0)
		return 0;
	return ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
}

/* Returns 0 or an errno. */
static int listen_on(const struct addrinfo *address, const struct psd_socket_options *options, int *fd)
{
	const int is_on = 1;
	int opened = -1, error = open_for(address, options, &opened);

	if (error)
		return error;
	if (setsockopt(opened, SOL_SOCKET, SO_REUSEADDR, &is_on, sizeof(is_on)) < 0 ||
	    bind(opened, address->ai_addr, address->ai_addrlen) < 0 || listen(opened, BACKLOG) < 0) {
		error = errno;
		close(opened);
		return error;
	}
	*fd = opened;
	return 0;
}

enum psd_status psd_socket_listen(const char *host, uint16_t port, const struct psd_socket_options *options, int *fd,
				  uint16_t *bound_port, struct psd_error *err)
{
	struct addrinfo *found;
	int error = ENOENT;
	const enum psd_status status = find(host, port, true, &found, err);

	if (status != PSD_OK)
		return status;
	for (const struct addrinfo *each = found; each && error; each = each->ai_next)
		error = listen_on(each, options, fd);
	freeaddrinfo(found);
	if (error)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot listen on %s: %s",
				     endpoint_of(host ? host : "any address of this machine", port).text,
				     error == EADDRNOTAVAIL ? "this machine has no such address" : strerror(error));
	*bound_port = port_of(*fd);
	return PSD_OK;
}

/* ---- connecting ---- */

int psd_socket_connect(const struct addrinfo *address, const struct psd_socket_options *options, int *fd)
{
	int opened = -1, error = open_for(address, options, &opened);

	if (error)
		return error;
	if (connect(opened, address->ai_addr, address->ai_addrlen) < 0 && errno != EINPROGRESS && errno != EINTR) {
		error = errno;
		close(opened);
		return error;
	}
	*fd = opened;
	return 0;
}

int psd_socket_error(int fd)
{
	int error = 0;
	socklen_t error_bytes = sizeof(error);

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_bytes) < 0 ? errno : error;
}

/* Nobody listens yet, or the interface is not up yet. */
bool psd_socket_may_pass(int error)
{
	return error == ECONNREFUSED || error == ECONNRESET || error == ECONNABORTED || error == EHOSTUNREACH ||
	       error == ENETUNREACH || error == ETIMEDOUT || error == EAGAIN;
}

/* ---- accepting ---- */

int psd_socket_accept(int listener, const struct psd_socket_options *options, int *fd, char from[PSD_SOCKET_PLACE_MAX])
{
	union {
		struct sockaddr any;
		struct sockaddr_storage room;
	} address;
	socklen_t address_bytes = sizeof(address);
	char host[NI_MAXHOST], service[NI_MAXSERV];
	const int accepted = accept4(listener, &address.any, &address_bytes, SOCK_NONBLOCK | SOCK_CLOEXEC);
	const int error = accepted < 0 ? errno : set_options(accepted, options);

	if (error) {
		if (accepted >= 0)
			close(accepted);
		return error;
	}
	*fd = accepted;
	if (getnameinfo(&address.any, address_bytes, host, sizeof(host), service, sizeof(service),
			NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(from, PSD_SOCKET_PLACE_MAX, "somewhere");
	else
		snprintf(from, PSD_SOCKET_PLACE_MAX, "%.80s port %.8s", host, service);
	return 0;
}

/* ---- messages of a few bytes ---- */

bool psd_socket_await(int fd, double until_sec)
{
	struct pollfd polled = {.fd = fd, .events = POLLIN};

	for (;;) {
		const double left_ms = 1000 * (until_sec - psd_socket_now_sec());
		const int n_ready = poll(&polled, 1, left_ms <= 0 ? 0 : left_ms < 1e9 ? (int)left_ms + 1 : 1000000000);

		if (n_ready >= 0 || errno != EINTR) /* rounds up, so as not to spin */
			return n_ready != 0;
	}
}

bool psd_socket_is_to_itself(int fd)
{
	struct sockaddr_storage own = {.ss_family = AF_UNSPEC}, other = {.ss_family = AF_UNSPEC};
	socklen_t own_bytes = sizeof(own), other_bytes = sizeof(other);

	return getsockname(fd, (struct sockaddr *)&own, &own_bytes) == 0 &&
	       getpeername(fd, (struct sockaddr *)&other, &other_bytes) == 0 && own_bytes == other_bytes &&
	       memcmp(&own, &other, own_bytes) == 0;
}

bool psd_socket_send_small(int fd, const uint8_t *bytes, size_t n_bytes)
{
	return send(fd, bytes, n_bytes, MSG_NOSIGNAL) == (ssize_t)n_bytes;
}

void psd_socket_allow_many(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}
