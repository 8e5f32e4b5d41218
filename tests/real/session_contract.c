#include "tests/real/session_contract.h"

#include <criterion/criterion.h>
#include <stdlib.h>

enum { WORKERS = 3, ITERATIONS = 3 };

#define ORDER_TOLERANCE_SEC 1e-9 /* seconds since a machine was started, as doubles, and their differences */

static const char *const systems[] = {
	"schedule: sequential, sync: ps",
	"schedule: wait-free, sync: ps, pair: 1KiB, slice: 4KiB",
	"schedule: wait-free, sync: ps, compress: {by: one-bit, momentum: before}",
	"schedule: sequential, sync: ps, compress: {by: top-k}",
	"schedule: clocked, sync: ps, pair: 1KiB, slice: 4KiB",
	"schedule: wait-free, sync: sfb",
	"schedule: wait-free, sync: hybrid, barrier: layer",
	"schedule: wait-free, sync: adam, wire: bf16",
	"schedule: wait-free, sync: ring, priority: forward",
	"schedule: wait-free, sync: halving-doubling, fuse: 1MiB, pipeline: 2KiB, wire: fp16",
	"schedule: wait-free, sync: ring, low_rank: {rank: 2}",
	"schedule: sequential, sync: halving-doubling, fuse: 1KiB, low_rank: {rank: 1}",
	"schedule: wait-free, sync: ps, staleness: 1",
	"schedule: sequential, sync: hybrid, staleness: 2",
	"schedule: wait-free, sync: ring, barrier: layer, staleness: 1",
};
/* Not each iteration sends as many bytes, or parameters depend on when sums arrive. */
static const char *const ordered[] = {
	"schedule: wait-free, sync: zero-3, prefetch: 1, accumulate: 2",
	"schedule: wait-free, sync: sfb, peers: 1, local_sgd: {steps: 2}",
	"schedule: wait-free, sync: ring, local_sgd: {steps: 2, fragments: 2, outer: {rate: 0.7}}",
	"schedule: wait-free, sync: ps, staleness: 2, reads: stale",
	"schedule: wait-free, sync: ring, staleness: 1, reads: stale, managed: {clock: 2, early: 25%}",
};

/* spans: NULL, or made for that many workers. */
static struct training *run(const struct contract_device *device, const char *system, struct psd_spans *spans)
{
	const struct psd_replay replay = {
		.dilation_ratio = 1.0, .payload_ratio = 1.0, .real_workers = device->real_workers};
	struct training *training = training_make("../../tests/data/smooth.yaml", system, WORKERS, 1, 4, 1,
						  "iterations: 3, learning_rate: {policy: fixed, base: 0.05}");

	training_on(training, device->kind, device->kind && device->kind->has_own_memory);
	training->options.worker.replay = device->is_replay ? &replay : NULL;
	training->options.spans = spans;
	training_run(training);
	training->options.worker.replay = NULL; /* which ends here */
	cr_assert_eq(training->status, PSD_OK, "%s, %s: %s", device->name, system, training->err.text);
	return training;
}

/* ---- bytes ---- */

static void check_bytes(const struct contract_device *device, const char *system, const struct training *training)
{
	const uint64_t most_bytes = most_sent_bytes(&training->made);

	cr_expect_eq(training->result.sent_bytes_per_node, most_bytes, "%s, %s: %llu bytes, must be %llu", device->name,
		     system, (unsigned long long)training->result.sent_bytes_per_node, (unsigned long long)most_bytes);
}

/* ---- order ---- */

struct done {
	unsigned times;
	double start_sec, end_sec;
};

/* (workers, iterations, operations) */
struct account {
	const struct contract_device *device;
	const char *system;
	uint32_t n_ops;
	struct done *done;
};

static struct done *done_of(const struct account *account, unsigned worker, uint32_t iteration, uint32_t op)
{
	return &account->done[((size_t)worker * ITERATIONS + iteration) * account->n_ops + op];
}

static void note(void *context, const struct psd_program *program, const struct psd_span *span)
{
	struct account *account = context;
	struct done *done = done_of(account, span->host, span->task.iteration, span->task.op);

	(void)program;
	if (span->is_arrival)
		return;
	done->times++;
	done->start_sec = span->start_sec;
	done->end_sec = span->end_sec;
}

static void check_dependencies(const struct account *account, const struct psd_program *program, unsigned worker,
			       uint32_t iteration, uint32_t op)
{
	const struct done *done = done_of(account, worker, iteration, op);

	for (uint32_t e = 0; e < program->ops[op].n_dependencies && done->times > 0; e++) {
		const struct psd_edge *edge = &program->dependencies[program->ops[op].first_dependency + e];
		const struct done *before;

		if (edge->distance > iteration)
			continue;
		before = done_of(account, worker, iteration - edge->distance, edge->op);
		cr_expect(
			before->times == 0 || done->start_sec >= before->end_sec - ORDER_TOLERANCE_SEC,
			"%s, %s: worker %u begins operation %u of iteration %u at %.9f s, before %u is over at %.9f s",
			account->device->name, account->system, worker, op, iteration, done->start_sec, edge->op,
			before->end_sec);
	}
}

static void check_operation(const struct account *account, const struct psd_program *program, unsigned worker,
			    uint32_t iteration, uint32_t op)
{
	const enum psd_op_kind kind = program->ops[op].kind;
	const bool is_layer = kind == PSD_OP_FORWARD || kind == PSD_OP_BACKWARD;
	const unsigned times = done_of(account, worker, iteration, op)->times;

	cr_expect(is_layer ? times == 1 : times <= 1, "%s, %s: worker %u does operation %u of iteration %u %u times",
		  account->device->name, account->system, worker, op, iteration, times);
	check_dependencies(account, program, worker, iteration, op);
}

/* Checks the order of a run, and returns it. */
static struct training *run_in_order(const struct contract_device *device, const char *system)
{
	struct account account = {.device = device, .system = system};
	struct psd_spans spans;
	struct psd_error err = {.text = ""};
	const struct psd_program *program;
	struct training *training;

	cr_assert_eq(psd_spans_open(&spans, WORKERS, &err), PSD_OK, "%s", err.text);
	training = run(device, system, &spans);
	program = &training->made.program;
	account.n_ops = program->n_ops;
	account.done = calloc((size_t)WORKERS * ITERATIONS * program->n_ops, sizeof(*account.done));
	cr_assert(account.done);
	cr_assert_eq(psd_spans_tell(&spans, program, note, &account, &err), PSD_OK, "%s", err.text);
	for (unsigned worker = 0; worker < WORKERS; worker++)
		for (uint32_t iteration = 0; iteration < ITERATIONS; iteration++)
			for (uint32_t op = 0; op < program->n_ops; op++)
				check_operation(&account, program, worker, iteration, op);
	free(account.done);
	psd_spans_close(&spans);
	return training;
}

void contract_follows_the_program(const struct contract_device *device, const char *system)
{
	struct training *training = run_in_order(device, system);

	check_bytes(device, system, training);
	training_free(training);
}

/* ---- bits ---- */

void contract_ends_with_equal_bits(const struct contract_device *device, const char *system)
{
	struct training *one, *other;

	if (device->is_replay)
		return;
	one = run(device, system, NULL);
	other = run(device, system, NULL);
	for (unsigned w = 0; w < WORKERS; w++) {
		cr_expect(training_is_same(one, w, one, 0), "%s, %s: worker %u differs from worker 0", device->name,
			  system, w);
		cr_expect(training_is_same(one, w, other, w), "%s, %s: worker %u differs the second time", device->name,
			  system, w);
	}
	training_free(one);
	training_free(other);
}

void contract_check(const struct contract_device devices[], unsigned n_devices,
		    void (*claim)(const struct contract_device *device, const char *system))
{
	for (unsigned d = 0; d < n_devices; d++)
		for (unsigned s = 0; s < sizeof(systems) / sizeof(systems[0]); s++)
			claim(&devices[d], systems[s]);
	for (unsigned d = 0; d < n_devices && claim == contract_follows_the_program; d++)
		for (unsigned s = 0; s < sizeof(ordered) / sizeof(ordered[0]); s++)
			training_free(run_in_order(&devices[d], ordered[s]));
}
