/* Times at which links would have carried messages that a shaper let pass sooner: shapers allow bursts, links do not.
 * The outgoing link carries one message after another. The incoming link carries, since it was last idle, no more bytes
 * than its rate allows, in order of completion. A burst may so count earlier or later than on a fairly shared link; a
 * late message is never earlier. Reads no clock; one thread. */
#ifndef PSD_REAL_PACE_H
#define PSD_REAL_PACE_H

#include <stdint.h>

/* Rates of payload; both 0: no limit, call nothing. Other fields are private; zeros at first. */
struct psd_pace {
	double send_bps; /* equal on all hosts */
	double receive_bps;
	double sent_until_sec; /* end of the last message on the outgoing link */
	double in_since_sec;   /* start of the busy period of the incoming link ... */
	double in_sec;	       /* ... and its duration so far */
};

/* Time at which the outgoing link has carried one more message, which starts at now_sec or later. */
double psd_pace_send(struct psd_pace *pace, uint64_t bytes, double now_sec);
/* Time at which the incoming link has carried a message. off_sec: time at which the sender's link had carried it,
 * latency_sec before it can arrive. Call in order of completion. */
double psd_pace_receive(struct psd_pace *pace, uint64_t bytes, double off_sec, double latency_sec);

#endif
