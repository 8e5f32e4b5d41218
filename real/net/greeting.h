/* What comes first on a connection, read piece by piece: a greeting with its terms, or why a host gives up. Takes any
 * bytes, and never more of them than the frame has. Knows no sockets. */
#ifndef PSD_REAL_GREETING_H
#define PSD_REAL_GREETING_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "real/net/wire.h"

#define PSD_GREETING_TERMS_MAX 65536

/* All zero is one of which nothing is there. Of the two payloads that counts which head.kind names. */
struct psd_greeting {
	uint8_t frame[PSD_WIRE_HEAD_BYTES + PSD_WIRE_SMALL_BYTES];
	size_t n_bytes; /* that are there, terms included */
	struct psd_wire_head head;
	struct psd_wire_hello hello;
	struct psd_wire_failed failed;
	char *terms; /* zero-terminated; NULL: none */
};

void psd_greeting_release(struct psd_greeting *greeting);
/* Where the next bytes go, at least one unless it is complete. */
struct iovec psd_greeting_room(struct psd_greeting *greeting);
/* So many of them are there. PSD_ERUN: it is no greeting, in words without a subject; PSD_ENOMEM. */
enum psd_status psd_greeting_take(struct psd_greeting *greeting, size_t n_bytes, struct psd_error *err) PSD_MUST_CHECK;
bool psd_greeting_is_complete(const struct psd_greeting *greeting);

#endif
