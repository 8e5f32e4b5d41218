/* A worker among hosts that misbehave: every frame that the program does not expect ends the run with a message that
 * names the frame and its sender. The test is host 0; the worker is host 1, in a thread. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/collectives/collective.h"
#include "real/net/frame.h"
#include "real/net/wire.h"
#include "real/session/worker.h"
#include "tests/loaded_helper.h"
#include "tests/real/waiting_socket.h"

enum { HOSTS = 2, N_ITERATIONS = 20, BATCH = 2 };

#define WITHIN_SEC 20.0

struct meeting {
	struct loaded loaded;
	struct psd_case made;
	struct psd_mesh_host places[HOSTS];
	struct psd_worker_options options;
	int listener, fd; /* ours */
	enum psd_status status;
	struct psd_error err;
	pthread_t thread;
};

static void make_case(struct meeting *meeting, const char *sync)
{
	loaded_print(
		&meeting->loaded,
		"title: t\nmodel: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: %d}\n"
		"compute: {device: cpu}\n"
		"cluster: {stack: none, nodes: %d, workers_per_node: 1, network: {bandwidth: 1Gbps, latency: 50us}}\n"
		"systems:\n  - {name: s, schedule: wait-free, sync: %s}\n"
		"train: {iterations: %d, streams: 1, learning_rate: {policy: fixed, base: 0.001}}\n",
		BATCH, HOSTS, sync, N_ITERATIONS);
	loaded_case(&meeting->made, &meeting->loaded, 0, 0);
}

static void *work(void *context)
{
	struct meeting *meeting = context;
	struct psd_worker_result result;

	meeting->status = psd_worker_run(&meeting->options, &result, &meeting->err);
	return NULL;
}

static void send_frame(struct meeting *meeting, const struct psd_wire_head *head, const uint8_t *payload,
		       size_t n_bytes)
{
	uint8_t bytes[PSD_WIRE_HEAD_BYTES + PSD_WIRE_SMALL_BYTES];

	psd_wire_encode(head, bytes);
	if (n_bytes > 0)
		memcpy(bytes + PSD_WIRE_HEAD_BYTES, payload, n_bytes);
	cr_assert_eq(send(meeting->fd, bytes, PSD_WIRE_HEAD_BYTES + n_bytes, MSG_NOSIGNAL),
		     (ssize_t)(PSD_WIRE_HEAD_BYTES + n_bytes));
}

/* Greets as host 0 would, with the terms that the worker itself has named, and compares clocks. */
static void greet(struct meeting *meeting)
{
	const struct psd_wire_head hello_head = {.kind = PSD_WIRE_HELLO, .length_bytes = PSD_WIRE_HELLO_BYTES};
	const struct psd_wire_head clock_head = {.kind = PSD_WIRE_CLOCK, .length_bytes = PSD_WIRE_CLOCK_BYTES};
	const struct psd_wire_clock clock = {.rtt_sec = 1e-4, .is_last = 1};
	uint8_t bytes[PSD_WIRE_HEAD_BYTES + PSD_WIRE_HELLO_BYTES], payload[PSD_WIRE_SMALL_BYTES];
	struct psd_wire_hello hello;
	uint8_t terms[4096];
	struct psd_error err;

	cr_assert_eq(psd_frame_read_all("the worker", meeting->fd, NULL, bytes, sizeof(bytes),
					psd_socket_now_sec() + WITHIN_SEC, &err),
		     PSD_OK, "%s", err.text);
	hello = psd_wire_decode_payload(PSD_WIRE_HELLO, bytes + PSD_WIRE_HEAD_BYTES).hello;
	cr_assert_eq(hello.host, 1);
	cr_assert_eq(hello.n_hosts, HOSTS);
	cr_assert_lt(hello.terms_bytes, sizeof(terms));
	cr_assert_eq(psd_frame_read_all("the worker", meeting->fd, NULL, terms, hello.terms_bytes,
					psd_socket_now_sec() + WITHIN_SEC, &err),
		     PSD_OK, "%s", err.text);
	hello.host = 0;
	psd_wire_encode_payload(PSD_WIRE_HELLO, &hello, payload);
	send_frame(meeting, &hello_head, payload, PSD_WIRE_HELLO_BYTES);
	cr_assert_eq(send(meeting->fd, terms, hello.terms_bytes, MSG_NOSIGNAL), (ssize_t)hello.terms_bytes);
	psd_wire_encode_payload(PSD_WIRE_CLOCK, &clock, payload);
	send_frame(meeting, &clock_head, payload, PSD_WIRE_CLOCK_BYTES);
}

static void meet(struct meeting *meeting, const char *sync)
{
	static const struct psd_socket_options socket_options = {.has_buffers = false};
	struct psd_error err;

	memset(meeting, 0, sizeof(*meeting));
	make_case(meeting, sync);
	for (unsigned h = 0; h < HOSTS; h++)
		snprintf(meeting->places[h].address, sizeof(meeting->places[h].address), "127.0.0.1");
	cr_assert_eq(
		psd_socket_listen("127.0.0.1", 0, &socket_options, &meeting->listener, &meeting->places[0].port, &err),
		PSD_OK, "%s", err.text);
	meeting->options = (struct psd_worker_options){
		.made = &meeting->made,
		.train = &meeting->loaded.scenario.train,
		.n_iterations = N_ITERATIONS,
		.self = 1,
		.hosts = meeting->places,
		.listener = -1,
		.connect_sec = WITHIN_SEC,
		.stall_sec = WITHIN_SEC,
	};
	cr_assert_eq(pthread_create(&meeting->thread, NULL, work, meeting), 0);
	meeting->fd = accept_within(meeting->listener, WITHIN_SEC);
	cr_assert_geq(meeting->fd, 0);
	greet(meeting);
}

static void part(struct meeting *meeting)
{
	pthread_join(meeting->thread, NULL);
	close(meeting->fd);
	close(meeting->listener);
	psd_case_release(&meeting->made);
	loaded_close(&meeting->loaded);
}

static void check_words(const struct meeting *meeting, enum psd_status status, const char *words)
{
	cr_assert_eq(meeting->status, status);
	cr_assert(strstr(meeting->err.text, words), "'%s' is not in '%s'", words, meeting->err.text);
	cr_assert(strstr(meeting->err.text, "worker 0 at 127.0.0.1:"), "%s", meeting->err.text);
}

/* The first operation of a kind, as every host's program has it. */
static uint32_t find_op(const struct meeting *meeting, enum psd_op_kind kind)
{
	uint32_t op = 0;

	while (op < meeting->made.program.n_ops && meeting->made.program.ops[op].kind != kind)
		op++;
	cr_assert_lt(op, meeting->made.program.n_ops);
	return op;
}

static void check_frame(const char *sync, enum psd_op_kind op_kind, struct psd_wire_head head, const char *words)
{
	static const uint8_t zeros[PSD_WIRE_SMALL_BYTES];
	const bool is_small = head.kind == PSD_WIRE_REPORT || head.kind == PSD_WIRE_HELLO;
	struct meeting meeting;

	meet(&meeting, sync);
	head.op = find_op(&meeting, op_kind);
	send_frame(&meeting, &head, zeros, is_small ? head.length_bytes : 0);
	part(&meeting);
	check_words(&meeting, PSD_ERUN, words);
}

Test(worker, refuses_messages_that_the_program_does_not_have)
{
	check_frame("ps", PSD_OP_FORWARD, (struct psd_wire_head){.kind = PSD_WIRE_DATA, .length_bytes = 4},
		    "sent a message that no operation expects");
	check_frame("ps", PSD_OP_SEND, (struct psd_wire_head){.kind = PSD_WIRE_DATA, .length_bytes = UINT64_C(1) << 62},
		    "sent a message that no operation expects");
	check_frame("ring", PSD_OP_COLLECTIVE,
		    (struct psd_wire_head){.kind = PSD_WIRE_DATA, .part = 2, .length_bytes = 4},
		    "sent a step that no operation expects");
}

Test(worker, refuses_messages_out_of_turn)
{
	struct psd_wire_head head = {.kind = PSD_WIRE_DATA, .iteration = 1};

	check_frame("ring", PSD_OP_COLLECTIVE, head, "sent a step of another length");
	head.iteration = 0;
	head.length_bytes = 8;
	check_frame("ring", PSD_OP_COLLECTIVE, head, "sent a step of another length");
}

/* On a single connection the first step would wait there for the collective to begin, with everything behind it. */
Test(worker, refuses_a_step_that_overtakes_the_first)
{
	struct meeting meeting;
	struct psd_wire_head head = {.kind = PSD_WIRE_DATA, .part = 1};

	meet(&meeting, "ring");
	head.op = find_op(&meeting, PSD_OP_COLLECTIVE);
	head.length_bytes =
		psd_payload_step(&meeting.made.program.ops[head.op].payload, &meeting.made.plan.layout, 0, 1)
			.sent.elements *
		sizeof(float);
	send_frame(&meeting, &head, NULL, 0);
	part(&meeting);
	check_words(&meeting, PSD_ERUN, "sent a step out of order");
}

Test(worker, refuses_signals_that_nobody_expects)
{
	/* worker 0 decides the order and does not report that it is ready; a collective that it begins in iteration 2
	 * is not ready in iteration 0 */
	check_frame("ring, priority: forward", PSD_OP_COLLECTIVE, (struct psd_wire_head){.kind = PSD_WIRE_READY},
		    "sent an unexpected signal");
	check_frame("ring", PSD_OP_FORWARD, (struct psd_wire_head){.kind = PSD_WIRE_BEGIN},
		    "sent an unexpected signal");
	check_frame("ring, priority: forward", PSD_OP_COLLECTIVE,
		    (struct psd_wire_head){.kind = PSD_WIRE_BEGIN, .iteration = 2}, "sent an unexpected signal");
	/* in the order of generation no worker reports anything */
	check_frame("ring", PSD_OP_COLLECTIVE, (struct psd_wire_head){.kind = PSD_WIRE_BEGIN},
		    "sent an unexpected signal");
	check_frame("ps", PSD_OP_FORWARD,
		    (struct psd_wire_head){.kind = PSD_WIRE_REPORT, .length_bytes = PSD_WIRE_REPORT_BYTES},
		    "sent an unexpected report");
	check_frame("ps", PSD_OP_FORWARD,
		    (struct psd_wire_head){.kind = PSD_WIRE_HELLO, .length_bytes = PSD_WIRE_HELLO_BYTES},
		    "sent a second greeting");
}

/* Window 0 has the steps of the system, 5; those of window 1 are for worker 0 to say, which is us. */
Test(worker, refuses_steps_that_nobody_expects)
{
	static const char follows[] = "ring, local_sgd: {steps: 5, window: 16}",
			  stays[] = "ring, local_sgd: {steps: 5}";
	static const char words[] = "sent unexpected local steps";

	check_frame(follows, PSD_OP_STEP, (struct psd_wire_head){.kind = PSD_WIRE_STEPS, .iteration = 0, .part = 5},
		    words);
	check_frame(follows, PSD_OP_STEP, (struct psd_wire_head){.kind = PSD_WIRE_STEPS, .iteration = 2, .part = 5},
		    words);
	check_frame(follows, PSD_OP_STEP, (struct psd_wire_head){.kind = PSD_WIRE_STEPS, .iteration = 1, .part = 0},
		    words);
	check_frame(follows, PSD_OP_STEP, (struct psd_wire_head){.kind = PSD_WIRE_STEPS, .iteration = 1, .part = 6},
		    words);
	check_frame(stays, PSD_OP_STEP, (struct psd_wire_head){.kind = PSD_WIRE_STEPS, .iteration = 1, .part = 5},
		    words);
	check_frame("ring", PSD_OP_COLLECTIVE,
		    (struct psd_wire_head){.kind = PSD_WIRE_STEPS, .iteration = 1, .part = 1}, words);
}

Test(worker, refuses_steps_that_it_has_been_told)
{
	struct psd_wire_head head = {.kind = PSD_WIRE_STEPS, .iteration = 1, .part = 5};
	struct meeting meeting;

	meet(&meeting, "ring, local_sgd: {steps: 5, window: 16}");
	send_frame(&meeting, &head, NULL, 0);
	head.part = 4;
	send_frame(&meeting, &head, NULL, 0);
	part(&meeting);
	check_words(&meeting, PSD_ERUN, "sent unexpected local steps");
}

/* Iteration 4 is the first that exchanges. */
Test(worker, refuses_messages_of_iterations_that_do_not_exchange)
{
	static const char *const syncs[] = {"ring, local_sgd: {steps: 5}", "ps, local_sgd: {steps: 5}"};
	static const enum psd_op_kind kinds[] = {PSD_OP_COLLECTIVE, PSD_OP_SEND};

	for (unsigned s = 0; s < 2; s++) {
		struct psd_wire_head head = {.kind = PSD_WIRE_DATA, .iteration = 0};
		struct meeting meeting;

		meet(&meeting, syncs[s]);
		head.op = find_op(&meeting, kinds[s]);
		const struct psd_payload *payload = &meeting.made.program.ops[head.op].payload;
		const struct psd_layout *layout = &meeting.made.plan.layout;
		head.length_bytes = s == 0 ? psd_payload_step(payload, layout, 0, 0).sent.elements * sizeof(float)
					   : psd_payload_bytes_between(payload, layout, 0, 1);
		send_frame(&meeting, &head, NULL, 0);
		part(&meeting);
		check_words(&meeting, PSD_ERUN, "sent a message of an unexpected iteration");
	}
}

/* A report of iteration 0 belongs to one that does not exchange; 4 is not ready there. */
Test(worker, refuses_signals_of_iterations_that_do_not_exchange)
{
	static const char sync[] = "ring, priority: forward, local_sgd: {steps: 5}";

	check_frame(sync, PSD_OP_COLLECTIVE, (struct psd_wire_head){.kind = PSD_WIRE_BEGIN, .iteration = 0},
		    "sent an unexpected signal");
	check_frame(sync, PSD_OP_COLLECTIVE, (struct psd_wire_head){.kind = PSD_WIRE_BEGIN, .iteration = 4},
		    "sent a start of an operation that is not ready");
}

Test(worker, names_the_worker_it_waited_for)
{
	struct meeting meeting;

	meet(&meeting, "ps");
	cr_assert_eq(shutdown(meeting.fd, SHUT_WR), 0);
	part(&meeting);
	check_words(&meeting, PSD_ELOST, "closed the connection in iteration 0 while worker 1 waits for its 'push ");
}
