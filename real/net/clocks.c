/* Questions and answers over connections that carry nothing else yet. */
#include "real/net/clocks.h"

#include <math.h>

#include "real/net/frame.h"
#include "real/net/socket.h"

enum { CLOCK_ROUNDS = 8 };

static enum psd_status send_clock(const char *peer, int fd, struct psd_secret *secret,
				  const struct psd_wire_clock *clock, struct psd_error *err)
{
	uint8_t bytes[PSD_WIRE_CLOCK_BYTES];

	psd_wire_encode_clock(clock, bytes);
	return psd_frame_send(peer, fd, secret, PSD_WIRE_CLOCK, bytes, sizeof(bytes), err);
}

static enum psd_status read_clock(const char *peer, int fd, struct psd_secret *secret, double until_sec,
				  struct psd_wire_clock *clock, struct psd_error *err)
{
	uint8_t bytes[PSD_WIRE_SMALL_BYTES];
	const enum psd_status status = psd_frame_read(peer, fd, secret, PSD_WIRE_CLOCK, bytes, until_sec, err);

	if (!status)
		*clock = psd_wire_decode_clock(bytes);
	return status;
}

/* On host 0. The peer's clock counts as read half-way between question and answer; the quickest round counts (Cristian
 * 1989). */
static enum psd_status compare_clock(const char *peer, int fd, struct psd_secret *secret, double until_sec,
				     double *rtt_sec, struct psd_error *err)
{
	struct psd_wire_clock told = {.rtt_sec = INFINITY, .is_last = 1};
	enum psd_status status = PSD_OK;

	for (unsigned round = 0; round < CLOCK_ROUNDS && !status; round++) {
		const struct psd_wire_clock question = {.sec = psd_socket_now_sec()};
		struct psd_wire_clock answer;
		double now_sec;

		status = send_clock(peer, fd, secret, &question, err);
		if (!status)
			status = read_clock(peer, fd, secret, until_sec, &answer, err);
		now_sec = psd_socket_now_sec();
		if (status || now_sec - question.sec >= told.rtt_sec)
			continue;
		told.rtt_sec = now_sec - question.sec;
		told.sec = answer.sec - (question.sec + now_sec) / 2;
	}
	if (status)
		return status;
	if (fabs(told.sec) <= told.rtt_sec / 2)
		told.sec = 0.0;
	if (told.rtt_sec < *rtt_sec)
		*rtt_sec = told.rtt_sec;
	return send_clock(peer, fd, secret, &told, err);
}

static enum psd_status answer_clock(const char *peer, int fd, struct psd_secret *secret, double until_sec,
				    struct psd_mesh_clock *clock, struct psd_error *err)
{
	for (;;) {
		struct psd_wire_clock told, answer = {.sec = 0.0};
		enum psd_status status = read_clock(peer, fd, secret, until_sec, &told, err);

		if (status)
			return status;
		if (told.is_last) {
			*clock = (struct psd_mesh_clock){told.sec, told.rtt_sec};
			return PSD_OK;
		}
		answer.sec = psd_socket_now_sec();
		status = send_clock(peer, fd, secret, &answer, err);
		if (status)
			return status;
	}
}

enum psd_status psd_clocks_compare(const struct psd_mesh_options *options, const int fds[], double until_sec,
				   struct psd_mesh_clock *clock, struct psd_error *err)
{
	const unsigned n_hosts = psd_layout_hosts(options->layout);
	struct psd_mesh_clock compared = {0.0, n_hosts > 1 ? INFINITY : 0.0};
	char name[PSD_MESH_NAME_MAX];
	enum psd_status status = PSD_OK;

	if (options->self > 0)
		return answer_clock(psd_mesh_name(options->layout, options->hosts, 0, name), fds[0], options->secret,
				    until_sec, clock, err);
	for (unsigned h = 1; h < n_hosts && !status; h++)
		status = compare_clock(psd_mesh_name(options->layout, options->hosts, h, name),
				       fds[h * options->n_connections], options->secret, until_sec, &compared.rtt_sec,
				       err);
	if (!status)
		*clock = compared;
	return status;
}
