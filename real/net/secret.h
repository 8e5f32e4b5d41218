/* A secret that the hosts of a run share, and what it does before a transport carries a connection's bytes. TLS 1.3
 * begins with the first byte of a connection, so that the greeting, the terms and why a host gives up are inside it.
 * That needs no protocol of our own. Both ends prove that they know the secret before either says anything else: the
 * one that accepts hears nothing from a stranger, and tells him nothing. A key is made of the secret and of who
 * connects to whom, so that what a host has said cannot be played back to itself or to a third. TLS draws numbers for
 * each connection and makes its keys of them, too: what was recorded earlier is of no use, nor is it to whoever comes
 * by the secret later.
 *
 * Refuses certificates and other versions of TLS. One thread at a time. */
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

/* Sent on one connection by one key; AES-GCM is for 2^24.5 records of 16 KiB (RFC 8446, 5.5). */
#define PSD_SECRET_RENEW_BYTES (UINT64_C(1) << 36)

struct psd_secret;
struct ssl_st;

/* All bytes of a file. *is_exposed: users of the machine who are not its owner can read it. The caller frees *secret.
 * PSD_EFILE: it cannot be read; PSD_EINVAL: too short, too long, or this program was built without OpenSSL;
 * PSD_ENOMEM. */
enum psd_status psd_secret_load(const char *path, struct psd_secret **secret, bool *is_exposed,
				struct psd_error *err) PSD_MUST_CHECK;
/* Wipes it. NULL: nothing happens. */
void psd_secret_free(struct psd_secret *secret);
/* Of carriers that join from now on; for tests. */
void psd_secret_renew_after(struct psd_secret *secret, uint64_t bytes);
uint64_t psd_secret_renews_after(const struct psd_secret *secret);

/* ---- of one connection; with `secret` NULL these are the plain socket's ---- */

/* Before anything is sent or received. self: this host; peer: to whom it connects, where the connection is its own.
 * False: out of memory. A connection that is closed without psd_secret_end() leaves something that goes with the next
 * of its descriptor. */
bool psd_secret_begin(struct psd_secret *secret, int fd, unsigned self, bool is_ours, unsigned peer);
/* Of one's own connection, until it returns 0: then the other end has proved that it knows the secret. EAGAIN: wait
 * until the descriptor can be read. EACCES: it does not know it; else another errno. */
int psd_secret_prove(struct psd_secret *secret, int fd);
/* As recv(). -1 with EACCES: the other end does not know the secret; EBADMSG: somebody has changed what was sent. */
ssize_t psd_secret_receive(struct psd_secret *secret, int fd, void *bytes, size_t n_bytes);
/* The same bytes come again. */
ssize_t psd_secret_peek(struct psd_secret *secret, int fd, void *bytes, size_t n_bytes);
/* As psd_socket_send_small(). False as well: the other end has not proved that it knows the secret. */
bool psd_secret_send(struct psd_secret *secret, int fd, const uint8_t *bytes, size_t n_bytes);
void psd_secret_end(struct psd_secret *secret, int fd);
/* The session, which the caller frees; NULL: there is none. Its own output is in memory, empty now. */
struct ssl_st *psd_secret_take(struct psd_secret *secret, int fd);

#endif
