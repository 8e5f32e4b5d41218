/* Pre-shared secret of a run's hosts, and the TLS 1.3 sessions that use it. A connection has a session from its first
 * byte; later a transport takes the session over. So the greeting, the terms and failures are encrypted as well. Both
 * hosts prove that they know the secret before either sends anything else, so a process without the secret learns
 * nothing. The key of a connection is derived from the secret, the host that opens the connection and the host that
 * accepts it. So recorded bytes cannot be sent back to their sender or to a third host. Each connection also gets new
 * random keys, so recorded traffic stays safe if the secret leaks later. Supports no certificates and no other TLS
 * version. One thread at a time. */
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

/* Number of bytes after which a connection changes its keys. AES-GCM is safe for 2^24.5 records of 16 KiB (RFC 8446,
 * section 5.5). */
#define PSD_SECRET_RENEW_BYTES (UINT64_C(1) << 36)

struct psd_secret;
struct ssl_st;

/* Reads the secret from a file; all bytes of the file are the secret. *is_exposed: users other than the file's owner
 * can read the file. The caller frees *secret by psd_secret_free(). PSD_EFILE: the file cannot be read; PSD_EINVAL: the
 * file is shorter than PSD_SECRET_LEAST_BYTES or longer than PSD_SECRET_MOST_BYTES, or psd-run was built without
 * OpenSSL; PSD_ENOMEM. */
enum psd_status psd_secret_load(const char *path, struct psd_secret **secret, bool *is_exposed,
				struct psd_error *err) PSD_MUST_CHECK;
/* Overwrites the secret and frees it. NULL is allowed. */
void psd_secret_free(struct psd_secret *secret);
/* Sets the number of bytes after which a connection changes its keys. It holds for connections whose session a
 * transport takes over later. For tests. */
void psd_secret_renew_after(struct psd_secret *secret, uint64_t bytes);
uint64_t psd_secret_renews_after(const struct psd_secret *secret);

/* ---- one connection, over the socket fd. If `secret` is NULL, bytes are sent and received unencrypted. ---- */

/* Begins a TLS session on a connection over which nothing was sent. self: number of this host; is_ours: this host has
 * opened the connection; peer: number of the other host, used only if is_ours. Returns false if memory runs out. Call
 * psd_secret_end() before closing the descriptor. */
bool psd_secret_begin(struct psd_secret *secret, int fd, unsigned self, bool is_ours, unsigned peer);
/* Continues the TLS handshake on a connection that this host has opened. Returns 0 if the peer has proved that it knows
 * the secret; EAGAIN if the call must be repeated when fd is readable; EACCES if the peer does not know the secret;
 * otherwise another errno. */
int psd_secret_prove(struct psd_secret *secret, int fd);
/* Receives bytes as recv() does. Returns -1 with errno EACCES: the peer does not know the secret; EBADMSG: bytes were
 * modified on the way. */
ssize_t psd_secret_receive(struct psd_secret *secret, int fd, void *bytes, size_t n_bytes);
/* Receives as psd_secret_receive() does, but the next call receives these bytes once more. */
ssize_t psd_secret_peek(struct psd_secret *secret, int fd, void *bytes, size_t n_bytes);
/* Sends a few bytes as psd_socket_send_small() does. Returns false also if the peer has not proved that it knows the
 * secret. */
bool psd_secret_send(struct psd_secret *secret, int fd, const uint8_t *bytes, size_t n_bytes);
void psd_secret_end(struct psd_secret *secret, int fd);
/* Removes the TLS session of the descriptor from *secret and returns it; the caller frees it. Bytes that the session
 * writes go to a memory buffer, which is empty at first. Returns NULL if the descriptor has no session. */
struct ssl_st *psd_secret_take(struct psd_secret *secret, int fd);

#endif
