/* First message on a connection, read in parts as its bytes arrive. It is either a greeting with the sender's terms
 * (scenario keys and file contents that must be equal on all hosts) or the reason why the sender gives up. Accepts any
 * bytes, and never reads beyond the end of this message. Uses no sockets itself. */
#ifndef PSD_REAL_GREETING_H
#define PSD_REAL_GREETING_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "real/net/wire.h"

#define PSD_GREETING_TERMS_MAX 65536

/* The part of a greeting that was received so far. All zeros: nothing has been received. If head.kind is
 * PSD_WIRE_HELLO, `hello` is valid; if it is PSD_WIRE_FAILED, `failed` is valid. */
struct psd_greeting {
	uint8_t frame[PSD_WIRE_HEAD_BYTES + PSD_WIRE_SMALL_BYTES];
	size_t n_bytes; /* number of bytes received so far: of the greeting, then of the terms that follow it */
	struct psd_wire_head head;
	struct psd_wire_hello hello;
	struct psd_wire_failed failed;
	char *terms; /* terms of the sender, zero-terminated; NULL: not received */
};

void psd_greeting_release(struct psd_greeting *greeting);
/* Returns the memory into which the caller must receive the next bytes of the greeting. The memory has length 0 only
 * when the greeting is complete. */
struct iovec psd_greeting_room(struct psd_greeting *greeting);
/* Processes n_bytes that the caller has received into the memory of psd_greeting_room(). PSD_ERUN: the bytes are not a
 * greeting; the caller puts the peer's name before the text. PSD_ENOMEM. */
enum psd_status psd_greeting_take(struct psd_greeting *greeting, size_t n_bytes, struct psd_error *err) PSD_MUST_CHECK;
bool psd_greeting_is_complete(const struct psd_greeting *greeting);

#endif
