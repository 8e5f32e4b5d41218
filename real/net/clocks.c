/* Questions and answers over connections that carry nothing else yet. */
#include "real/net/joining.h"

#include <math.h>

#include "real/net/frame.h"
#include "real/net/socket.h"

enum { CLOCK_ROUNDS = 8 };

/* On host 0. The peer's clock counts as read half-way between question and answer; the quickest round counts (Cristian
 * 1989). */
static enum psd_status compare_clock(const char *peer, int fd, struct psd_secret *secret, double until_sec,
				     double *rtt_sec, struct psd_error *err)
{
	struct psd_wire_clock message = {.rtt_sec = INFINITY, .is_last = 1};

	for (unsigned round = 0; round < CLOCK_ROUNDS; round++) {
		const struct psd_wire_clock question = {.sec = psd_socket_now_sec()};
		union psd_wire_payload answer;
		double now_sec;

		PSD_TRY(psd_frame_send(peer, fd, secret, PSD_WIRE_CLOCK, &question, err));
		PSD_TRY(psd_frame_read(peer, fd, secret, PSD_WIRE_CLOCK, &answer, until_sec, err));
		now_sec = psd_socket_now_sec();
		if (now_sec - question.sec >= message.rtt_sec)
			continue;
		message.rtt_sec = now_sec - question.sec;
		message.sec = answer.clock.sec - (question.sec + now_sec) / 2;
	}
	if (fabs(message.sec) <= message.rtt_sec / 2)
		message.sec = 0.0;
	if (message.rtt_sec < *rtt_sec)
		*rtt_sec = message.rtt_sec;
	return psd_frame_send(peer, fd, secret, PSD_WIRE_CLOCK, &message, err);
}

static enum psd_status answer_clock(const char *peer, int fd, struct psd_secret *secret, double until_sec,
				    struct psd_mesh_clock *clock, struct psd_error *err)
{
	for (;;) {
		struct psd_wire_clock answer = {.sec = 0.0};
		union psd_wire_payload message;

		PSD_TRY(psd_frame_read(peer, fd, secret, PSD_WIRE_CLOCK, &message, until_sec, err));
		if (message.clock.is_last) {
			*clock = (struct psd_mesh_clock){message.clock.sec, message.clock.rtt_sec};
			return PSD_OK;
		}
		answer.sec = psd_socket_now_sec();
		PSD_TRY(psd_frame_send(peer, fd, secret, PSD_WIRE_CLOCK, &answer, err));
	}
}

enum psd_status psd_clocks_compare(const struct psd_mesh_options *options, const int fds[], double until_sec,
				   struct psd_mesh_clock *clock, struct psd_error *err)
{
	const unsigned n_hosts = psd_layout_hosts(options->layout);
	struct psd_mesh_clock compared = {0.0, n_hosts > 1 ? INFINITY : 0.0};
	char name[PSD_MESH_NAME_MAX];

	if (options->self > 0)
		return answer_clock(psd_mesh_name(options->layout, options->hosts, 0, name), fds[0], options->secret,
				    until_sec, clock, err);
	for (unsigned h = 1; h < n_hosts; h++)
		PSD_TRY(compare_clock(psd_mesh_name(options->layout, options->hosts, h, name),
				      fds[h * options->n_connections], options->secret, until_sec, &compared.rtt_sec,
				      err));
	*clock = compared;
	return PSD_OK;
}
