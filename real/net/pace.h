/* When a cluster's links would have carried messages that shaped links let pass sooner: shapers need bursts, so that
 * what follows a pause passes at once. The line out of a host carries its messages one behind the other; the line into
 * one carries, since it was last idle as far as complete messages tell, no more bytes than its rate allows, in the
 * order in which they are complete. So what came in a burst may count as a burst sooner or later than on lines that are
 * shared evenly; what really comes later is later. Refuses to read a clock; one thread. */
#ifndef PSD_REAL_PACE_H
#define PSD_REAL_PACE_H

#include <stdint.h>

/* Rates of payload; both 0: links are as they are, and nothing may be asked. The rest is private; zeros begin. */
struct psd_pace {
	double send_bps; /* of all hosts alike */
	double receive_bps;
	double sent_until_sec; /* the line out, with all that was sent so far */
	double in_since_sec;   /* the line in has been busy since then ... */
	double in_sec;	       /* ... and carried so much */
};

/* When the line out has carried one more message, which begins now at the earliest. */
double psd_pace_send(struct psd_pace *pace, uint64_t bytes, double now_sec);
/* When the line in has carried a message, which its sender's line had carried at off_sec, latency_sec before it could
 * be here. In order of completeness. */
double psd_pace_receive(struct psd_pace *pace, uint64_t bytes, double off_sec, double latency_sec);

#endif
