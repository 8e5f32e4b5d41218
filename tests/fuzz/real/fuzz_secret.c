/* Any bytes as a stranger's first words to a host with a secret, in pieces of any size: the host never believes it and
 * sends nothing that is not TLS's own. It stops waiting for the stranger once that has gone. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "real/net/secret.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct psd_secret *load(void)
{
	static const char bytes[] = "bytes that the fuzzer does not know";
	char path[] = "/tmp/psd-fuzz-XXXXXX";
	const int fd = mkstemp(path);
	struct psd_secret *secret = NULL;
	struct psd_error err;
	bool is_exposed;

	if (fd < 0 || write(fd, bytes, sizeof(bytes)) != (ssize_t)sizeof(bytes) ||
	    psd_secret_load(path, &secret, &is_exposed, &err))
		abort();
	close(fd);
	unlink(path);
	return secret;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct psd_secret *secret;
	const size_t most_bytes = size ? 1 + data[0] % 64u : 1;
	uint8_t heard[64];
	ssize_t n_read = -1;
	int fds[2];

	secret = secret ? secret : load();
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) < 0 ||
	    !psd_secret_begin(secret, fds[0], 0, size > 1 && data[1] % 2, 1))
		abort();
	errno = EAGAIN;
	for (size_t at = 2; at < size && n_read < 0 && errno == EAGAIN; at += most_bytes) {
		const size_t n_bytes = most_bytes < size - at ? most_bytes : size - at;

		if (send(fds[1], data + at, n_bytes, MSG_NOSIGNAL) != (ssize_t)n_bytes)
			abort();
		n_read = psd_secret_receive(secret, fds[0], heard, sizeof(heard));
	}
	close(fds[1]);
	if (n_read < 0 && errno == EAGAIN)
		n_read = psd_secret_receive(secret, fds[0], heard, sizeof(heard));
	if (n_read > 0 || (n_read < 0 && errno == EAGAIN))
		abort();
	if (psd_secret_send(secret, fds[0], data, size < 16 ? size : 16))
		abort();
	psd_secret_end(secret, fds[0]);
	close(fds[0]);
	return 0;
}
