/* Transport between hosts that share a secret (real/net/secret.h): TLS records in place of plain bytes. A finished
 * record cannot be withdrawn: bytes that the socket does not take wait here, and count as sent. TLS reads several
 * records at once, so data may be left when the socket is empty. A lock lets one thread send while another receives,
 * since a session is for one thread at a time. */
#define _GNU_SOURCE
#include "real/net/secret.h"
#include "real/net/transport.h"

#ifdef PSD_HAS_TLS
#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "real/net/segments.h"

enum {
	RECORD_BYTES = SSL3_RT_MAX_PLAIN_LENGTH,
	SENT_AT_ONCE_BYTES = 4 * RECORD_BYTES, /* amortises the system call */
	READ_AT_ONCE_BYTES = 4 * SSL3_RT_MAX_PACKET_SIZE,
};

/* State of one carrier. */
struct tls {
	pthread_mutex_t mutex;
	SSL *ssl;
	size_t n_flushed;     /* bytes of its memory already sent */
	uint64_t renew_bytes; /* limit for one key */
	uint64_t sealed_bytes;
	bool is_drained;  /* the rest of a record waits for the socket */
	int error_number; /* error of receiving, behind valid bytes; 0: none */
	uint8_t record[RECORD_BYTES];
};

/* ---- TLS output ---- */

static size_t waiting_bytes(const struct tls *tls)
{
	char *bytes;

	return (size_t)BIO_get_mem_data(SSL_get_wbio(tls->ssl), &bytes) - tls->n_flushed;
}

/* Sends all that the socket takes. Returns 0 or an errno. */
static int flush(struct tls *tls, int fd, bool has_more)
{
	char *bytes;
	const size_t n_bytes = (size_t)BIO_get_mem_data(SSL_get_wbio(tls->ssl), &bytes);

	while (tls->n_flushed < n_bytes) {
		const ssize_t n_sent = send(fd, bytes + tls->n_flushed, n_bytes - tls->n_flushed,
					    MSG_NOSIGNAL | MSG_DONTWAIT | (has_more ? MSG_MORE : 0));

		if (n_sent < 0 && errno == EINTR)
			continue;
		if (n_sent < 0)
			return errno == EAGAIN ? 0 : errno;
		tls->n_flushed += (size_t)n_sent;
	}
	(void)BIO_reset(SSL_get_wbio(tls->ssl));
	tls->n_flushed = 0;
	return 0;
}

/* ---- sending ---- */

/* Next bytes of the segments, at most a record, contiguous: in place, or copied to the carrier's buffer. */
static size_t take_record(struct tls *tls, const struct iovec segments[], unsigned n_segments, unsigned *at,
			  size_t *offset, const uint8_t **record)
{
	size_t n_bytes = 0;

	while (*at < n_segments && n_bytes < RECORD_BYTES) {
		const uint8_t *from = (const uint8_t *)segments[*at].iov_base + *offset;
		const size_t left_bytes = segments[*at].iov_len - *offset, room_bytes = RECORD_BYTES - n_bytes;
		const size_t n_taken = left_bytes < room_bytes ? left_bytes : room_bytes;

		*offset += n_taken;
		if (*offset == segments[*at].iov_len) {
			++*at;
			*offset = 0;
		}
		if (n_taken == RECORD_BYTES) {
			*record = from;
			return n_taken;
		}
		if (n_taken > 0)
			memcpy(tls->record + n_bytes, from, n_taken);
		n_bytes += n_taken;
	}
	*record = tls->record;
	return n_bytes;
}

/* Both ends change to the next key here. */
static bool seal(struct tls *tls, const uint8_t *bytes, size_t n_bytes)
{
	size_t n_written;

	ERR_clear_error();
	tls->sealed_bytes += n_bytes;
	if (tls->sealed_bytes > tls->renew_bytes) {
		if (!SSL_key_update(tls->ssl, SSL_KEY_UPDATE_NOT_REQUESTED))
			return false;
		tls->sealed_bytes = n_bytes;
	}
	return SSL_write_ex(tls->ssl, bytes, n_bytes, &n_written) == 1 && n_written == n_bytes;
}

/* Sends until the socket takes no more. Returns the bytes, or -1 with errno. */
static ssize_t send_records(struct tls *tls, const struct psd_carrier *carrier, const struct iovec segments[],
			    unsigned n_segments)
{
	const size_t all_bytes = psd_segments_bytes(segments, n_segments);
	int error = flush(tls, carrier->fd, carrier->has_more);
	const uint8_t *record;
	unsigned at = 0;
	size_t offset = 0, n_bytes;
	ssize_t n_sent = 0;

	while (!error && waiting_bytes(tls) == 0 &&
	       (n_bytes = take_record(tls, segments, n_segments, &at, &offset, &record)) > 0) {
		do {
			n_sent += (ssize_t)n_bytes;
			if (!seal(tls, record, n_bytes))
				error = EPROTO;
		} while (!error && waiting_bytes(tls) < SENT_AT_ONCE_BYTES &&
			 (n_bytes = take_record(tls, segments, n_segments, &at, &offset, &record)) > 0);
		if (!error)
			error = flush(tls, carrier->fd, carrier->has_more || (size_t)n_sent < all_bytes);
	}
	errno = error ? error : EAGAIN;
	return error || n_sent == 0 ? -1 : n_sent;
}

static ssize_t send_pieces(struct psd_carrier *carrier, const struct iovec segments[], unsigned n_segments)
{
	struct tls *tls = carrier->own;

	pthread_mutex_lock(&tls->mutex);
	const ssize_t n_sent = send_records(tls, carrier, segments, n_segments);
	pthread_mutex_unlock(&tls->mutex);
	return n_sent;
}

/* ---- receiving ---- */

/* 0: no error. A peer that closes without a TLS alert has closed as well. */
static int error_of(const struct tls *tls, int result)
{
	const int error = errno;

	switch (SSL_get_error(tls->ssl, result)) {
	case SSL_ERROR_WANT_READ: return EAGAIN;
	case SSL_ERROR_ZERO_RETURN: return EPIPE;
	case SSL_ERROR_SYSCALL: return error ? error : EPIPE;
	default: return EBADMSG;
	}
}

static int fill_piece(struct tls *tls, const struct iovec *piece, ssize_t *n_read)
{
	for (size_t at = 0; at < piece->iov_len;) {
		size_t n_bytes;
		int result;

		ERR_clear_error();
		errno = 0;
		result = SSL_read_ex(tls->ssl, (uint8_t *)piece->iov_base + at, piece->iov_len - at, &n_bytes);
		if (result <= 0)
			return error_of(tls, result);
		at += n_bytes;
		*n_read += (ssize_t)n_bytes;
	}
	return 0;
}

static ssize_t receive_records(struct tls *tls, const struct iovec segments[], unsigned n_segments)
{
	ssize_t n_read = 0;
	int error = tls->error_number;

	for (unsigned i = 0; i < n_segments && !error; i++)
		error = fill_piece(tls, &segments[i], &n_read);
	tls->is_drained = error == EAGAIN;
	if (error && error != EAGAIN)
		tls->error_number = error;
	if (n_read > 0 || !error || error == EPIPE)
		return n_read;
	errno = error;
	return -1;
}

static ssize_t receive_pieces(struct psd_carrier *carrier, const struct iovec segments[], unsigned n_segments)
{
	struct tls *tls = carrier->own;

	pthread_mutex_lock(&tls->mutex);
	const ssize_t n_read = receive_records(tls, segments, n_segments);
	const int error = errno;
	(void)flush(tls, carrier->fd, false); /* a new key of the peer may require one of ours */
	pthread_mutex_unlock(&tls->mutex);
	errno = error;
	return n_read;
}

/* ---- waiting ---- */

static bool holds(const struct psd_carrier *carrier)
{
	struct tls *tls = carrier->own;

	pthread_mutex_lock(&tls->mutex);
	const bool is_waiting = waiting_bytes(tls) > 0;
	pthread_mutex_unlock(&tls->mutex);
	return is_waiting;
}

static uint32_t events(const struct psd_carrier *carrier, bool reads, bool sends)
{
	return (reads ? (uint32_t)EPOLLIN : 0u) | (sends || holds(carrier) ? (uint32_t)EPOLLOUT : 0u);
}

/* The socket reports the rest of an incomplete record. */
static bool is_ready(struct psd_carrier *carrier, bool reads, bool sends)
{
	struct tls *tls = carrier->own;

	(void)sends;
	pthread_mutex_lock(&tls->mutex);
	const bool has_more = tls->error_number || (!tls->is_drained && SSL_has_pending(tls->ssl));
	pthread_mutex_unlock(&tls->mutex);
	return reads && has_more;
}

/* An error returns with the next send or receive. */
static void hear(struct psd_carrier *carrier)
{
	struct tls *tls = carrier->own;

	pthread_mutex_lock(&tls->mutex);
	(void)flush(tls, carrier->fd, false);
	pthread_mutex_unlock(&tls->mutex);
}

/* TLS may hold up to a record already, which the kernel does not count. */
static void set_low_water(struct psd_carrier *carrier, size_t bytes)
{
	psd_transport_tcp.set_low_water(carrier, bytes > SSL3_RT_MAX_PACKET_SIZE ? bytes - SSL3_RT_MAX_PACKET_SIZE : 1);
}

static void limit_unsent(struct psd_carrier *carrier, size_t bytes)
{
	psd_transport_tcp.limit_unsent(carrier, bytes);
}

/* ---- opening and closing ---- */

static void release(struct psd_carrier *carrier)
{
	struct tls *tls = carrier->own;

	SSL_free(tls->ssl);
	pthread_mutex_destroy(&tls->mutex);
	OPENSSL_cleanse(tls->record, sizeof(tls->record));
	free(tls);
	carrier->own = NULL;
}

/* Returns false when memory runs out. */
static bool take(struct psd_carrier *carrier, struct ssl_st *ssl, uint64_t renew_bytes)
{
	struct tls *tls = calloc(1, sizeof(*tls));

	if (!tls) {
		SSL_free(ssl);
		return false;
	}
	tls->ssl = ssl;
	tls->renew_bytes = renew_bytes;
	pthread_mutex_init(&tls->mutex, NULL);
	SSL_clear_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
	SSL_set_read_ahead(ssl, 1);
	SSL_set_default_read_buffer_len(ssl, READ_AT_ONCE_BYTES);
	carrier->own = tls;
	carrier->transport = &psd_transport_tls;
	return true;
}

/* Every carrier must have a session since it was connected. */
static enum psd_status take_all(const struct psd_transport_join *join, struct psd_carrier carriers[],
				struct psd_error *err)
{
	struct psd_secret *secret = join->mesh->secret;

	for (unsigned i = 0; secret && i < psd_layout_hosts(join->mesh->layout) * join->mesh->n_connections; i++) {
		struct ssl_st *ssl;

		if (carriers[i].transport || carriers[i].fd < 0)
			continue;
		ssl = psd_secret_take(secret, carriers[i].fd);
		if (!ssl)
			return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "a connection has no TLS session");
		if (!take(&carriers[i], ssl, psd_secret_renews_after(secret)))
			return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for connections");
	}
	return PSD_OK;
}

const struct psd_transport psd_transport_tls = {
	.name = "tls",
	.is_for_threads = true,
	.join = take_all,
	.send = send_pieces,
	.receive = receive_pieces,
	.events = events,
	.is_ready = is_ready,
	.holds = holds,
	.hear = hear,
	.set_low_water = set_low_water,
	.limit_unsent = limit_unsent,
	.release = release,
};

#else

/* Without TLS no secret is ever loaded. */
static enum psd_status take_none(const struct psd_transport_join *join, struct psd_carrier carriers[],
				 struct psd_error *err)
{
	(void)join, (void)carriers, (void)err;
	return PSD_OK;
}

const struct psd_transport psd_transport_tls = {.name = "tls", .join = take_none};

#endif
