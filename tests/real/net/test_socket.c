#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/real/kept_port.h"
#include "tests/real/waiting_socket.h"

#define HERE	   "127.0.0.1"
#define WITHIN_SEC 30.0 /* generous: reached only by a failure */

static const struct psd_socket_options plain = {0};

static int listen_here(uint16_t *port)
{
	struct psd_error err;
	int fd = -1;

	cr_assert_eq(psd_socket_listen(HERE, 0, &plain, &fd, port, &err), PSD_OK, "%s", err.text);
	return fd;
}

static int connect_here(uint16_t port, const struct psd_socket_options *options)
{
	const int fd = connect_within(HERE, port, WITHIN_SEC, options);

	cr_assert_geq(fd, 0);
	return fd;
}

static int accept_here(int listener)
{
	const int fd = accept_within(listener, WITHIN_SEC);

	cr_assert_geq(fd, 0);
	return fd;
}

static char read_byte(int fd)
{
	struct pollfd polled = {.fd = fd, .events = POLLIN};
	char byte = 0;

	cr_assert_eq(poll(&polled, 1, (int)(1000 * WITHIN_SEC)), 1);
	cr_assert_eq(read(fd, &byte, 1), 1);
	return byte;
}

Test(socket, bytes_pass_both_ways)
{
	uint16_t port;
	const int listener = listen_here(&port), near = connect_here(port, &plain), far = accept_here(listener);

	cr_assert_eq(write(near, "a", 1), 1);
	cr_assert_eq(read_byte(far), 'a');
	cr_assert_eq(write(far, "b", 1), 1);
	cr_assert_eq(read_byte(near), 'b');
}

static int option_of(int fd, int level, int name)
{
	int value = -1;
	socklen_t value_bytes = sizeof(value);

	cr_assert_eq(getsockopt(fd, level, name, &value, &value_bytes), 0);
	return value;
}

Test(socket, every_end_is_set_up_alike)
{
	uint16_t port;
	const int listener = listen_here(&port), ends[] = {connect_here(port, &plain), accept_here(listener)};
	char congestion[PSD_SOCKET_CONGESTION_MAX];

	for (unsigned i = 0; i < 2; i++) {
		cr_assert(option_of(ends[i], IPPROTO_TCP, TCP_NODELAY));
		cr_assert(fcntl(ends[i], F_GETFL) & O_NONBLOCK);
		cr_assert(fcntl(ends[i], F_GETFD) & FD_CLOEXEC);
		psd_socket_congestion(ends[i], congestion);
		cr_assert(strcmp(congestion, "cubic") == 0 || strcmp(congestion, "reno") == 0, "%s", congestion);
	}
	cr_assert(option_of(listener, SOL_SOCKET, SO_REUSEADDR));
}

Test(socket, buffers_are_as_asked)
{
	const struct psd_socket_options options = {
		.has_buffers = true, .send_buffer_bytes = 50000, .receive_buffer_bytes = 60000};
	uint16_t port;
	const int fd = (listen_here(&port), connect_here(port, &options));

	/* the kernel doubles them for its own bookkeeping, socket(7) */
	cr_assert_eq(option_of(fd, SOL_SOCKET, SO_SNDBUF), 2 * 50000);
	cr_assert_eq(option_of(fd, SOL_SOCKET, SO_RCVBUF), 2 * 60000);
}

Test(socket, a_port_without_a_listener_may_get_one)
{
	cr_assert_lt(connect_within(HERE, keep_port(), 0.0, &plain), 0);
	cr_assert(psd_socket_may_pass(ECONNREFUSED));
	cr_assert_not(psd_socket_may_pass(EACCES));
}

Test(socket, a_host_that_is_none_is_the_users_mistake)
{
	struct addrinfo *found;
	struct psd_error err;

	cr_assert_eq(psd_socket_look_up("10.0.0.1.2", 4711, &found, &err), PSD_EINVAL);
	cr_assert_not_null(strstr(err.text, "'10.0.0.1.2'"), "%s", err.text);
}

Test(socket, where_a_connection_comes_from_is_said)
{
	struct sockaddr_in address;
	socklen_t address_bytes = sizeof(address);
	char expected[PSD_SOCKET_PLACE_MAX], from[PSD_SOCKET_PLACE_MAX];
	uint16_t port;
	const int listener = listen_here(&port);
	int near, far;

	cr_assert_eq(psd_socket_accept(listener, &plain, &far, from), EAGAIN);
	near = connect_here(port, &plain);
	cr_assert_eq(getsockname(near, (struct sockaddr *)&address, &address_bytes), 0);
	cr_assert_eq(poll(&(struct pollfd){.fd = listener, .events = POLLIN}, 1, (int)(1000 * WITHIN_SEC)), 1);
	cr_assert_eq(psd_socket_accept(listener, &plain, &far, from), 0);
	snprintf(expected, sizeof(expected), "127.0.0.1 port %u", ntohs(address.sin_port));
	cr_assert_str_eq(from, expected);
}

Test(socket, a_port_that_is_taken_is_named)
{
	char expected[128];
	struct psd_error err;
	uint16_t port, other;
	int fd;

	(void)listen_here(&port);
	cr_assert_eq(psd_socket_listen(HERE, port, &plain, &fd, &other, &err), PSD_ERUN);
	snprintf(expected, sizeof(expected), "cannot listen on 127.0.0.1:%u: Address already in use", port);
	cr_assert_str_eq(err.text, expected);
}

/* RFC 5737 keeps it for examples. */
Test(socket, an_address_of_another_machine_is_named)
{
	struct psd_error err;
	uint16_t port;
	int fd;

	cr_assert_eq(psd_socket_listen("192.0.2.7", 7411, &plain, &fd, &port, &err), PSD_ERUN);
	cr_assert_str_eq(err.text, "cannot listen on 192.0.2.7:7411: this machine has no such address");
}
