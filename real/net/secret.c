/* TLS sessions of connections that are not yet with a transport, found by descriptor. */
#define _GNU_SOURCE
#include "real/net/secret.h"

#include <errno.h>
#include <sys/socket.h>

#include "engine/base/file.h"
#include "real/net/socket.h"

#ifdef PSD_HAS_TLS
#include <inttypes.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { IDENTITY_MAX = 64, KEY_BYTES = 32 };

/* A connection that is not yet with a transport. */
struct session {
	SSL *ssl;
	const struct psd_secret *secret;
	unsigned self;
	char identity[IDENTITY_MAX]; /* the connecting host's, in plain text on the wire */
};

struct psd_secret {
	SSL_CTX *context;
	uint8_t bytes[PSD_SECRET_MOST_BYTES + 1]; /* one more byte detects a file that is too long */
	size_t n_bytes;
	uint64_t renew_bytes;
	struct session **sessions; /* by descriptor; NULL: none */
	size_t n_sessions;
};

/* ---- keys ---- */

static void write_identity(unsigned from, unsigned to, char identity[IDENTITY_MAX])
{
	snprintf(identity, IDENTITY_MAX, "psd-run host %u to host %u", from, to);
}

/* Key of one direction between two hosts: HKDF with SHA-256 (RFC 5869). */
static bool derive_key(const struct psd_secret *secret, const char *identity, uint8_t key[KEY_BYTES])
{
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
	EVP_KDF_CTX *context = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string("digest", (char[]){"SHA256"}, 0),
		OSSL_PARAM_construct_octet_string("key", (uint8_t *)secret->bytes, secret->n_bytes), /* read only */
		OSSL_PARAM_construct_octet_string("info", (char *)identity, strlen(identity)),
		OSSL_PARAM_construct_end(),
	};
	const bool is_derived = context && EVP_KDF_derive(context, key, KEY_BYTES, params) > 0;

	EVP_KDF_CTX_free(context);
	EVP_KDF_free(kdf);
	return is_derived;
}

/* Pre-shared key as TLS expects it. Returns NULL when memory runs out. */
static SSL_SESSION *make_key(SSL *ssl, const struct psd_secret *secret, const char *identity)
{
	static const uint8_t aes_128_gcm_sha256[] = {0x13, 0x01};
	SSL_SESSION *made = SSL_SESSION_new();
	uint8_t key[KEY_BYTES];
	const bool is_made = made && derive_key(secret, identity, key) &&
			     SSL_SESSION_set1_master_key(made, key, sizeof(key)) &&
			     SSL_SESSION_set_cipher(made, SSL_CIPHER_find(ssl, aes_128_gcm_sha256)) &&
			     SSL_SESSION_set_protocol_version(made, TLS1_3_VERSION);

	OPENSSL_cleanse(key, sizeof(key));
	if (is_made)
		return made;
	SSL_SESSION_free(made);
	return NULL;
}

/* Callback of the connecting end. */
static int use_key(SSL *ssl, const EVP_MD *digest, const unsigned char **identity, size_t *n_identity_bytes,
		   SSL_SESSION **key)
{
	const struct session *session = SSL_get_app_data(ssl);

	(void)digest; /* fixed */
	*identity = (const unsigned char *)session->identity;
	*n_identity_bytes = strlen(session->identity);
	*key = make_key(ssl, session->secret, session->identity);
	return *key ? 1 : 0;
}

/* Callback of the accepting end. The identity comes from a stranger: no key unless it names a host that connects to
 * this one. */
static int find_key(SSL *ssl, const unsigned char *identity, size_t n_identity_bytes, SSL_SESSION **key)
{
	const struct session *session = SSL_get_app_data(ssl);
	char text[IDENTITY_MAX] = "", expected[IDENTITY_MAX];
	unsigned from;

	*key = NULL;
	if (n_identity_bytes >= sizeof(text))
		return 1;
	memcpy(text, identity, n_identity_bytes);
	if (sscanf(text, "psd-run host %9u", &from) != 1 || from == session->self)
		return 1;
	write_identity(from, session->self, expected);
	if (strlen(expected) != n_identity_bytes || memcmp(expected, text, n_identity_bytes) != 0)
		return 1;
	*key = make_key(ssl, session->secret, expected);
	return *key ? 1 : 0;
}

/* ---- the secret ---- */

static enum psd_status read_file(struct psd_secret *secret, const char *path, bool *is_exposed, struct psd_error *err)
{
	const struct psd_place at = {.path = path};
	struct stat file = {.st_mode = 0};
	int fd;

	PSD_TRY(psd_file_open(&fd, path, PSD_FILE_STREAM, err));
	enum psd_status status =
		psd_file_take(fd, false, secret->bytes, sizeof(secret->bytes), &secret->n_bytes, path, err);
	if (!status && fstat(fd, &file) < 0)
		status = psd_error_set(err, PSD_EFILE, at, "cannot be read: %s", strerror(errno));
	close(fd);
	if (status)
		return status;
	*is_exposed = file.st_mode & (S_IRGRP | S_IROTH);
	if (secret->n_bytes > PSD_SECRET_MOST_BYTES)
		return psd_error_set(err, PSD_EINVAL, at, "has more than the %d bytes that a secret may have",
				     PSD_SECRET_MOST_BYTES);
	if (secret->n_bytes < PSD_SECRET_LEAST_BYTES)
		return psd_error_set(err, PSD_EINVAL, at, "is a secret of %zu bytes, must have %d or more",
				     secret->n_bytes, PSD_SECRET_LEAST_BYTES);
	return PSD_OK;
}

/* Without certificates a peer without the key is refused. A closed connection is an end, as without TLS. */
static SSL_CTX *make_context(void)
{
	SSL_CTX *context = SSL_CTX_new(TLS_method());

	if (!context)
		return NULL;
	SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS); /* for many silent strangers */
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_psk_use_session_callback(context, use_key);
	SSL_CTX_set_psk_find_session_callback(context, find_key);
	SSL_CTX_set_quiet_shutdown(context, 1);
	if (SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) && SSL_CTX_set_num_tickets(context, 0) &&
	    SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") && SSL_CTX_set1_groups_list(context, "X25519"))
		return context;
	SSL_CTX_free(context);
	return NULL;
}

enum psd_status psd_secret_load(const char *path, struct psd_secret **secret, bool *is_exposed, struct psd_error *err)
{
	struct psd_secret *loaded = calloc(1, sizeof(*loaded));
	enum psd_status status =
		loaded ? PSD_OK : psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a secret");

	if (!status)
		status = read_file(loaded, path, is_exposed, err);
	if (!status) {
		loaded->renew_bytes = PSD_SECRET_RENEW_BYTES;
		loaded->context = make_context();
		if (!loaded->context)
			status = psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "OpenSSL has no TLS 1.3 for --secret");
	}
	if (status)
		psd_secret_free(loaded);
	else
		*secret = loaded;
	return status;
}

static void free_session(struct session *session)
{
	if (session)
		SSL_free(session->ssl);
	free(session);
}

void psd_secret_free(struct psd_secret *secret)
{
	if (!secret)
		return;
	for (size_t fd = 0; fd < secret->n_sessions; fd++)
		free_session(secret->sessions[fd]);
	free(secret->sessions);
	SSL_CTX_free(secret->context);
	OPENSSL_cleanse(secret->bytes, sizeof(secret->bytes));
	free(secret);
}

void psd_secret_renew_after(struct psd_secret *secret, uint64_t bytes)
{
	secret->renew_bytes = bytes;
}

uint64_t psd_secret_renews_after(const struct psd_secret *secret)
{
	return secret->renew_bytes;
}

/* ---- sessions ---- */

static bool make_room(struct psd_secret *secret, size_t n_sessions)
{
	struct session **grown;

	if (n_sessions <= secret->n_sessions)
		return true;
	grown = realloc(secret->sessions, n_sessions * sizeof(*grown));
	if (!grown)
		return false;
	while (secret->n_sessions < n_sessions)
		grown[secret->n_sessions++] = NULL;
	secret->sessions = grown;
	return true;
}

/* Reads from the socket and writes to memory, from where it is sent without SIGPIPE. */
static bool open_session(struct session *session, int fd, bool is_ours)
{
	BIO *from = BIO_new_socket(fd, BIO_NOCLOSE), *to = BIO_new(BIO_s_mem());

	session->ssl = SSL_new(session->secret->context);
	if (!session->ssl || !from || !to) {
		BIO_free(from);
		BIO_free(to);
		return false;
	}
	SSL_set_bio(session->ssl, from, to);
	if (!is_ours) {
		SSL_set_accept_state(session->ssl);
	} else {
		SSL_set_connect_state(session->ssl);
		SSL_set_verify(session->ssl, SSL_VERIFY_PEER, NULL); /* accepts no certificate */
	}
	return SSL_set_app_data(session->ssl, session);
}

bool psd_secret_begin(struct psd_secret *secret, int fd, unsigned self, bool is_ours, unsigned peer)
{
	struct session *session;

	if (!secret)
		return true;
	session = make_room(secret, (size_t)fd + 1) ? calloc(1, sizeof(*session)) : NULL;
	if (!session)
		return false;
	*session = (struct session){.secret = secret, .self = self};
	if (is_ours)
		write_identity(self, peer, session->identity);
	free_session(secret->sessions[fd]);
	secret->sessions[fd] = session;
	if (open_session(session, fd, is_ours))
		return true;
	psd_secret_end(secret, fd);
	return false;
}

static struct session *find_session(const struct psd_secret *secret, int fd)
{
	return fd >= 0 && (size_t)fd < secret->n_sessions ? secret->sessions[fd] : NULL;
}

/* Sends TLS output except alerts, since failures are told otherwise. Returns false if the socket does not take it at
 * once. */
static bool flush(SSL *ssl, int fd)
{
	char *bytes;
	const long n_bytes = BIO_get_mem_data(SSL_get_wbio(ssl), &bytes);
	const bool is_sent = n_bytes <= 0 || psd_socket_send_small(fd, (const uint8_t *)bytes, (size_t)n_bytes);

	(void)BIO_reset(SSL_get_wbio(ssl));
	return is_sent;
}

/* Errno of a call that returned `result` <= 0. 0: the peer has closed. */
static int error_of(SSL *ssl, int fd, int result)
{
	const int error = errno;

	switch (SSL_get_error(ssl, result)) {
	case SSL_ERROR_WANT_READ: return flush(ssl, fd) ? EAGAIN : ECONNRESET;
	case SSL_ERROR_ZERO_RETURN: return 0;
	case SSL_ERROR_SYSCALL: return error;
	default: return SSL_is_init_finished(ssl) ? EBADMSG : EACCES;
	}
}

/* True if the shared key was used, not a certificate. */
static bool is_proved(const SSL *ssl)
{
	return SSL_is_init_finished(ssl) && SSL_session_reused(ssl);
}

int psd_secret_prove(struct psd_secret *secret, int fd)
{
	struct session *session = secret ? find_session(secret, fd) : NULL;

	if (!secret)
		return 0;
	if (!session)
		return EBADF;
	ERR_clear_error();
	errno = 0;
	const int result = SSL_do_handshake(session->ssl);
	if (result <= 0) {
		const int error = error_of(session->ssl, fd, result);

		return error ? error : ECONNRESET;
	}
	if (!is_proved(session->ssl))
		return EACCES;
	return flush(session->ssl, fd) ? 0 : ECONNRESET;
}

static ssize_t receive(struct psd_secret *secret, int fd, void *bytes, size_t n_bytes, bool peeks)
{
	struct session *session = secret ? find_session(secret, fd) : NULL;

	if (!secret)
		return recv(fd, bytes, n_bytes, MSG_DONTWAIT | (peeks ? MSG_PEEK : 0));
	if (!session) {
		errno = EBADF;
		return -1;
	}
	ERR_clear_error();
	errno = 0;
	const int result =
		peeks ? SSL_peek(session->ssl, bytes, (int)n_bytes) : SSL_read(session->ssl, bytes, (int)n_bytes);
	if (result > 0 && is_proved(session->ssl))
		return result;
	errno = result > 0 ? EACCES : error_of(session->ssl, fd, result);
	return errno ? -1 : 0;
}

ssize_t psd_secret_receive(struct psd_secret *secret, int fd, void *bytes, size_t n_bytes)
{
	return receive(secret, fd, bytes, n_bytes, false);
}

ssize_t psd_secret_peek(struct psd_secret *secret, int fd, void *bytes, size_t n_bytes)
{
	return receive(secret, fd, bytes, n_bytes, true);
}

bool psd_secret_send(struct psd_secret *secret, int fd, const uint8_t *bytes, size_t n_bytes)
{
	struct session *session = secret ? find_session(secret, fd) : NULL;

	if (!secret)
		return psd_socket_send_small(fd, bytes, n_bytes);
	if (!session || !is_proved(session->ssl))
		return false;
	ERR_clear_error();
	return n_bytes == 0 ||
	       (SSL_write(session->ssl, bytes, (int)n_bytes) == (int)n_bytes && flush(session->ssl, fd));
}

void psd_secret_end(struct psd_secret *secret, int fd)
{
	struct session *session = secret ? find_session(secret, fd) : NULL;

	if (!session)
		return;
	free_session(session);
	secret->sessions[fd] = NULL;
}

struct ssl_st *psd_secret_take(struct psd_secret *secret, int fd)
{
	struct session *session = find_session(secret, fd);
	SSL *ssl = session ? session->ssl : NULL;

	if (!session)
		return NULL;
	SSL_set_app_data(ssl, NULL);
	free(session);
	secret->sessions[fd] = NULL;
	return ssl;
}

#else /* without TLS no secret is ever loaded */

enum psd_status psd_secret_load(const char *path, struct psd_secret **secret, bool *is_exposed, struct psd_error *err)
{
	(void)secret, (void)is_exposed;
	return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = path},
			     "'--secret' needs a psd-run that was built with OpenSSL 3 (libssl-dev), this one was not");
}

void psd_secret_free(struct psd_secret *secret)
{
	(void)secret;
}

void psd_secret_renew_after(struct psd_secret *secret, uint64_t bytes)
{
	(void)secret, (void)bytes;
}

uint64_t psd_secret_renews_after(const struct psd_secret *secret)
{
	(void)secret;
	return 0;
}

bool psd_secret_begin(struct psd_secret *secret, int fd, unsigned self, bool is_ours, unsigned peer)
{
	(void)secret, (void)fd, (void)self, (void)is_ours, (void)peer;
	return true;
}

int psd_secret_prove(struct psd_secret *secret, int fd)
{
	(void)secret, (void)fd;
	return 0;
}

ssize_t psd_secret_receive(struct psd_secret *secret, int fd, void *bytes, size_t n_bytes)
{
	(void)secret;
	return recv(fd, bytes, n_bytes, MSG_DONTWAIT);
}

ssize_t psd_secret_peek(struct psd_secret *secret, int fd, void *bytes, size_t n_bytes)
{
	(void)secret;
	return recv(fd, bytes, n_bytes, MSG_DONTWAIT | MSG_PEEK);
}

bool psd_secret_send(struct psd_secret *secret, int fd, const uint8_t *bytes, size_t n_bytes)
{
	(void)secret;
	return psd_socket_send_small(fd, bytes, n_bytes);
}

void psd_secret_end(struct psd_secret *secret, int fd)
{
	(void)secret, (void)fd;
}

struct ssl_st *psd_secret_take(struct psd_secret *secret, int fd)
{
	(void)secret, (void)fd;
	return NULL;
}

#endif
