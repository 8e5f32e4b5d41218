#include "real/net/pace.h"

#include <math.h>

double psd_pace_send(struct psd_pace *pace, uint64_t bytes, double now_sec)
{
	pace->sent_until_sec = fmax(pace->sent_until_sec, now_sec) + 8.0 * (double)bytes / pace->send_bps;
	return pace->sent_until_sec;
}

double psd_pace_receive(struct psd_pace *pace, uint64_t bytes, double off_sec, double latency_sec)
{
	const double first_sec = off_sec - 8.0 * (double)bytes / pace->send_bps + latency_sec;

	if (first_sec > pace->in_since_sec + pace->in_sec) {
		pace->in_since_sec = first_sec;
		pace->in_sec = 0.0;
	}
	pace->in_since_sec = fmin(pace->in_since_sec, first_sec);
	pace->in_sec += 8.0 * (double)bytes / pace->receive_bps;
	return fmax(off_sec + latency_sec, pace->in_since_sec + pace->in_sec);
}
