/* A port on loopback for programs that a test starts, or for none: from its choice to the end of the test no other
 * program gets it, neither to listen at nor to connect from. */
#ifndef PSD_TESTS_REAL_KEPT_PORT_H
#define PSD_TESTS_REAL_KEPT_PORT_H

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

/* The port is bound until the process ends, and never listened at. So a program that names it can listen, with
 * SO_REUSEADDR as in psd_socket_listen(). */
static inline uint16_t keep_port(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t address_bytes = sizeof(address);
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), is_on = 1;

	cr_assert_geq(fd, 0);
	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &is_on, sizeof(is_on)), 0);
	cr_assert_eq(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&address, &address_bytes), 0);
	return ntohs(address.sin_port);
}

#endif
