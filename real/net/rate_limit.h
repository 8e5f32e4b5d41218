/* Rate limit of a node, which the hosts of the node share by need: a token bucket for sending and one for receiving, in
 * memory that all of them use. Each host adds its share of the rates; a host that is idle leaves its share to the
 * others. Any thread and process. */
#ifndef PSD_REAL_RATE_LIMIT_H
#define PSD_REAL_RATE_LIMIT_H

#include <pthread.h>

#include "real/net/link_model.h"
#include "real/net/transport.h"

/* Fields are private. */
struct psd_rate_limit {
	pthread_mutex_t mutex;	      /* robust: a host may be killed while it has it */
	unsigned n_hosts;	      /* hosts that have added a share */
	size_t grant_bytes;	      /* most bytes moved at a time */
	struct psd_bucket buckets[2]; /* [0] receiving, [1] sending */
};

/* Initialises a limit of rate 0, to which hosts add their shares. */
void psd_rate_limit_init(struct psd_rate_limit *limit);
/* Adds a host's share to the rates, in bits per second. now_sec: as in psd_bucket. */
void psd_rate_limit_add(struct psd_rate_limit *limit, double send_bps, double receive_bps, double now_sec);
/* Grants at most wanted_bytes. Returns the granted bytes; 0: none before *ready_sec, when to ask again. */
uint64_t psd_rate_limit_take(struct psd_rate_limit *limit, bool sends, uint64_t wanted_bytes, double now_sec,
			     double *ready_sec);
/* Puts bytes back that were granted and not moved. */
void psd_rate_limit_give_back(struct psd_rate_limit *limit, bool sends, uint64_t unmoved_bytes);

/* Shares one limit, of rate 0, among the hosts of this host's node, all of which call this function at the same place
 * between the other functions of joining. *limit: to be released by psd_rate_limit_unshare(); NULL: this host shares
 * none, because it is alone on its node, or for a reason that a remark said. Statuses as psd_transport.join(). */
enum psd_status psd_rate_limit_share(const struct psd_transport_join *join, struct psd_rate_limit **limit,
				     struct psd_error *err) PSD_MUST_CHECK;
void psd_rate_limit_unshare(struct psd_rate_limit *limit); /* NULL is allowed */

#endif
