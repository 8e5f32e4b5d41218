/* First message on a connection, read piece by piece: a greeting with its terms, or the reason why a host gives up.
 * Accepts any bytes, never more than the message has. Knows no sockets. */
#ifndef PSD_REAL_GREETING_H
#define PSD_REAL_GREETING_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "real/net/wire.h"

#define PSD_GREETING_TERMS_MAX 65536

/* A greeting, read so far. All zeros: nothing was read. head.kind says which of the two payloads is valid. */
struct psd_greeting {
	uint8_t frame[PSD_WIRE_HEAD_BYTES + PSD_WIRE_SMALL_BYTES];
	size_t n_bytes; /* bytes of the greeting and its terms read so far */
	struct psd_wire_head head;
	struct psd_wire_hello hello;
	struct psd_wire_failed failed;
	char *terms; /* terms of the sender, zero-terminated; NULL: none */
};

void psd_greeting_release(struct psd_greeting *greeting);
/* Memory for the next bytes of the greeting; empty only when it is complete. */
struct iovec psd_greeting_room(struct psd_greeting *greeting);
/* Accounts for n_bytes read into that memory. PSD_ERUN: not a greeting; the text has no subject. PSD_ENOMEM. */
enum psd_status psd_greeting_take(struct psd_greeting *greeting, size_t n_bytes, struct psd_error *err) PSD_MUST_CHECK;
bool psd_greeting_is_complete(const struct psd_greeting *greeting);

#endif
