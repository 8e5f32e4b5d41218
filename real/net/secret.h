/* Pre-shared secret of a run's hosts, and TLS 1.3 with it from the first byte of each connection until a transport
 * takes over. Greeting, terms and failures are thus encrypted, without a protocol of our own. Both ends prove that they
 * know the secret before either says anything else, so a stranger learns nothing. A key is derived from the secret and
 * the two host numbers in order: messages cannot be replayed to the sender or to a third host. Each connection also has
 * fresh keys, so recorded traffic stays safe if the secret leaks later.
 *
 * Supports no certificates and no other TLS version. One thread at a time. */
#ifndef PSD_REAL_SECRET_H
#define PSD_REAL_SECRET_H

#if !defined(PSD_STATIC) && __has_include(<openssl/opensslv.h>)
#include <openssl/opensslv.h>
#if OPENSSL_VERSION_MAJOR >= 3
#define PSD_HAS_TLS
#endif
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/base/error.h"

enum { PSD_SECRET_LEAST_BYTES = 16, PSD_SECRET_MOST_BYTES = 4096 };

/* Bytes after which a connection renews its key; AES-GCM is safe for 2^24.5 records of 16 KiB (RFC 8446, 5.5). */
#define PSD_SECRET_RENEW_BYTES (UINT64_C(1) << 36)

struct psd_secret;
struct ssl_st;

/* Reads a whole file as the secret. *is_exposed: users other than its owner can read it. The caller frees *secret.
 * PSD_EFILE: it cannot be read; PSD_EINVAL: it is too short or too long, or OpenSSL is missing; PSD_ENOMEM. */
enum psd_status psd_secret_load(const char *path, struct psd_secret **secret, bool *is_exposed,
				struct psd_error *err) PSD_MUST_CHECK;
/* Overwrites the secret and frees it. NULL is allowed. */
void psd_secret_free(struct psd_secret *secret);
/* Sets the bytes after which later carriers renew their keys; for tests. */
void psd_secret_renew_after(struct psd_secret *secret, uint64_t bytes);
uint64_t psd_secret_renews_after(const struct psd_secret *secret);

/* ---- one connection; with `secret` NULL these act on the plain socket ---- */

/* Begins a session, before any byte. self: this host; peer: the host it connects to, if is_ours. Returns false when
 * memory runs out. Call psd_secret_end() before closing the descriptor. */
bool psd_secret_begin(struct psd_secret *secret, int fd, unsigned self, bool is_ours, unsigned peer);
/* Continues the handshake of a connection that this host opened. 0: the peer has proved that it knows the secret;
 * EAGAIN: call again when readable; EACCES: it does not know it; or another errno. */
int psd_secret_prove(struct psd_secret *secret, int fd);
/* Receives like recv(). -1 with EACCES: the peer does not know the secret; EBADMSG: data was modified on the way. */
ssize_t psd_secret_receive(struct psd_secret *secret, int fd, void *bytes, size_t n_bytes);
/* Receives like psd_secret_receive(), but leaves the bytes to be received again. */
ssize_t psd_secret_peek(struct psd_secret *secret, int fd, void *bytes, size_t n_bytes);
/* Sends like psd_socket_send_small(). False also if the peer has not proved that it knows the secret. */
bool psd_secret_send(struct psd_secret *secret, int fd, const uint8_t *bytes, size_t n_bytes);
void psd_secret_end(struct psd_secret *secret, int fd);
/* Removes and returns the descriptor's TLS session, with empty output in memory; the caller frees it. NULL: none. */
struct ssl_st *psd_secret_take(struct psd_secret *secret, int fd);

#endif
