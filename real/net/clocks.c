/* Questions and answers over connections on which nothing else travels yet; each waits for the other. */
#include "real/net/clocks.h"

#include <math.h>

#include "real/net/socket.h"
#include "real/net/wire.h"

enum { CLOCK_BYTES = PSD_WIRE_HEAD_BYTES + PSD_WIRE_CLOCK_BYTES, CLOCK_ROUNDS = 8 };

static enum psd_status send_clock(const char *peer, int fd, const struct psd_wire_clock *clock, struct psd_error *err)
{
	const struct psd_wire_head head = {.kind = PSD_WIRE_CLOCK, .length_bytes = PSD_WIRE_CLOCK_BYTES};
	uint8_t bytes[CLOCK_BYTES];

	psd_wire_encode(&head, bytes);
	psd_wire_encode_clock(clock, bytes + PSD_WIRE_HEAD_BYTES);
	return psd_socket_send_small(fd, bytes, sizeof(bytes))
		       ? PSD_OK
		       : psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "%s is gone before its clock is known", peer);
}

static enum psd_status read_clock(const char *peer, int fd, double until_sec, struct psd_wire_clock *clock,
				  struct psd_error *err)
{
	uint8_t bytes[PSD_WIRE_HEAD_BYTES + PSD_WIRE_SMALL_BYTES];
	struct psd_wire_head head;
	struct psd_error cause;
	enum psd_status status = psd_socket_read_all(peer, fd, bytes, PSD_WIRE_HEAD_BYTES, until_sec, err);

	if (!status && psd_wire_decode(bytes, &head, &cause))
		status = psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "%s %s", peer, cause.text);
	if (!status && head.kind != PSD_WIRE_CLOCK && head.kind != PSD_WIRE_FAILED)
		status = psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "%s sent something else than its clock", peer);
	if (!status)
		status = psd_socket_read_all(peer, fd, bytes, (size_t)head.length_bytes, until_sec, err);
	if (status)
		return status;
	if (head.kind == PSD_WIRE_FAILED)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "%s", psd_wire_decode_failed(bytes).words);
	*clock = psd_wire_decode_clock(bytes);
	return PSD_OK;
}

/* On host 0: the peer's clock is read half way between asking and hearing, best when that was quick (Cristian 1989). */
static enum psd_status compare_clock(const char *peer, int fd, double until_sec, double *rtt_sec, struct psd_error *err)
{
	struct psd_wire_clock told = {.rtt_sec = INFINITY, .is_last = 1};
	enum psd_status status = PSD_OK;

	for (unsigned round = 0; round < CLOCK_ROUNDS && !status; round++) {
		const struct psd_wire_clock question = {.sec = psd_socket_now_sec()};
		struct psd_wire_clock answer;
		double now_sec;

		status = send_clock(peer, fd, &question, err);
		if (!status)
			status = read_clock(peer, fd, until_sec, &answer, err);
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
	return send_clock(peer, fd, &told, err);
}

static enum psd_status answer_clock(const char *peer, int fd, double until_sec, struct psd_mesh_clock *clock,
				    struct psd_error *err)
{
	for (;;) {
		struct psd_wire_clock told, answer = {.sec = 0.0};
		enum psd_status status = read_clock(peer, fd, until_sec, &told, err);

		if (status)
			return status;
		if (told.is_last) {
			*clock = (struct psd_mesh_clock){told.sec, told.rtt_sec};
			return PSD_OK;
		}
		answer.sec = psd_socket_now_sec();
		status = send_clock(peer, fd, &answer, err);
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
		return answer_clock(psd_mesh_name(options->layout, options->hosts, 0, name), fds[0], until_sec, clock,
				    err);
	for (unsigned h = 1; h < n_hosts && !status; h++)
		status = compare_clock(psd_mesh_name(options->layout, options->hosts, h, name),
				       fds[h * options->n_lines], until_sec, &compared.rtt_sec, err);
	if (!status)
		*clock = compared;
	return status;
}
