/* Runs the interpreter on one representative of each class of hosts, with an event heap as the clock and closed forms
 * as the network. */
#include "engine/estimate/estimate.h"

#include <math.h>
#include <stdlib.h>

#include "engine/estimate/estimate_parts.h"
#include "engine/program/event_tag.h"

static double estimate_now(void *context)
{
	return ((struct psd_estimate *)context)->now_sec;
}

static void apply(struct psd_estimate *estimate, uint64_t tag)
{
	struct psd_interpreter *interpreter = &estimate->interpreter;
	const unsigned class = psd_event_tag_host(tag);

	estimate->n_events++;
	switch ((enum psd_estimate_event)psd_event_tag_kind(tag)) {
	case PSD_ESTIMATE_FINISHED:
		if (psd_estimate_work_ends(estimate, class, (enum psd_resource)psd_event_tag_rest(tag)))
			psd_interpreter_finished(interpreter, class, (enum psd_resource)psd_event_tag_rest(tag));
		break;
	case PSD_ESTIMATE_ARRIVED: psd_interpreter_arrived(interpreter, class, psd_event_tag_task(tag)); break;
	case PSD_ESTIMATE_MESSAGE_PART: psd_estimate_end_message_part(estimate, psd_event_tag_rest(tag)); break;
	case PSD_ESTIMATE_QUEUED: psd_interpreter_queued(interpreter, class); break;
	case PSD_ESTIMATE_COLLECTIVE_PART: psd_estimate_end_collective_part(estimate, class); break;
	case PSD_ESTIMATE_COLLECTIVE: psd_estimate_end_collective(estimate, psd_event_tag_task(tag)); break;
	}
}

static void run(struct psd_estimate *estimate)
{
	psd_interpreter_begin(&estimate->interpreter);
	while (estimate->n_events <= estimate->most_events) {
		double pool_sec;
		uint64_t tag;
		struct psd_pool *pool = psd_estimate_first_pool(estimate, &pool_sec);
		const double event_sec = estimate->events.n > 0 ? estimate->events.entries[0].at : INFINITY;
		const double flow_sec = psd_estimate_flow_end_sec(estimate, fmin(event_sec, pool_sec));

		if (pool && pool_sec <= event_sec && pool_sec <= flow_sec) {
			estimate->now_sec = fmax(estimate->now_sec, pool_sec);
			while (psd_pool_take_ended(pool, estimate->now_sec, &tag))
				apply(estimate, tag);
		} else if (isfinite(flow_sec) && flow_sec <= event_sec) {
			estimate->now_sec = flow_sec;
			psd_estimate_end_flows(estimate);
		} else if (estimate->events.n > 0) {
			const struct psd_heap_entry event = psd_heap_pop(&estimate->events);

			estimate->now_sec = event.at;
			apply(estimate, event.tag);
		} else {
			break;
		}
	}
}

static void fill_outcome(const struct psd_estimate *estimate, struct psd_run_length length, struct psd_outcome *outcome)
{
	const struct psd_interpreter *interpreter = &estimate->interpreter;
	*outcome = (struct psd_outcome){
		.iteration_sec = psd_interpreter_iteration_sec(interpreter, length.first_measured),
		.parts = psd_interpreter_parts(interpreter, length.first_measured),
		.n_iterations = length.n_iterations,
		.n_events = estimate->n_events,
		.takes_factors = psd_outcome_takes_factors(estimate->program),
		.early = psd_plan_early(estimate->program->plan),
		.period = psd_plan_steps(estimate->program->plan),
		.n_parts = psd_plan_parts(estimate->program->plan),
	};
	psd_outcome_lengthen(outcome, psd_interpreter_steady_sec(interpreter, length.first_measured));
	psd_interpreter_find_bound(interpreter, length.first_measured, outcome);
	for (int r = 0; r < PSD_RESOURCES; r++)
		outcome->busy_sec[r] = psd_interpreter_busy_sec(interpreter, (enum psd_resource)r);
	for (unsigned c = 0; c < estimate->classes.n; c++)
		psd_reads_add(&interpreter->reads, c, length.first_measured, estimate->classes.of[c].n_members,
			      outcome->reads);
}

/* True if the node has the same traffic as the other nodes of its kind, or less, in all transfers. */
static bool is_alike(const struct psd_program *program, unsigned node)
{
	const struct psd_layout *layout = &program->plan->layout;

	for (uint32_t i = 0; i < program->n_ops; i++) {
		const struct psd_op *op = &program->ops[i];

		if (psd_op_moves(op) && psd_payload_may_be_busiest(&op->payload, layout, node))
			return false;
	}
	return true;
}

static bool has_root(const struct psd_program *program)
{
	for (uint32_t i = 0; i < program->n_ops; i++)
		if (program->ops[i].payload.collective && program->ops[i].payload.collective->has_root)
			return true;
	return false;
}

/* True for nodes that are neither among the first two nor the last of their kind: without roots all are alike, or
 * none. */
static bool is_inner(const struct psd_layout *layout, unsigned node)
{
	return node >= 2 && node + 1 != layout->nodes && node + 1 != psd_layout_nodes(layout);
}

/* Sets the bytes that the busiest node sends and receives. Only one of the nodes that are alike is counted. */
static void add_traffic(const struct psd_program *program, struct psd_outcome *outcome)
{
	const unsigned n_nodes = psd_layout_nodes(&program->plan->layout);
	const bool is_rootless = !has_root(program);
	bool has_alike = false;

	for (unsigned node = 0; node < n_nodes; node++) {
		if (has_alike && is_rootless && is_inner(&program->plan->layout, node))
			continue;
		if (is_alike(program, node)) {
			if (has_alike)
				continue;
			has_alike = true;
		}
		const struct psd_traffic traffic = psd_program_mean_traffic(program, node);

		if (traffic.sent_bytes > outcome->sent_bytes_per_node)
			outcome->sent_bytes_per_node = traffic.sent_bytes;
		if (traffic.received_bytes > outcome->received_bytes_per_node)
			outcome->received_bytes_per_node = traffic.received_bytes;
	}
}

static enum psd_status interpret(struct psd_estimate *estimate, const struct psd_duties *const duties[],
				 struct psd_run_length length, struct psd_outcome *outcome, struct psd_error *err)
{
	const struct psd_program *program = estimate->program;
	const struct psd_seam seam = {
		.now = estimate_now,
		.work = psd_estimate_work,
		.send = psd_estimate_send,
		.collective = psd_estimate_collective,
		.context = estimate,
	};
	enum psd_status status = psd_interpreter_init(
		&estimate->interpreter, program, estimate->classes.n, duties,
		(struct psd_iterations){.end = length.n_iterations, .n_behind = length.n_behind}, &seam, err);

	if (status != PSD_OK)
		return status;
	run(estimate);
	if (estimate->n_events > estimate->most_events)
		status = psd_refuse_length(program->plan->system, program->plan->layout.workers, estimate->most_events,
					   PSD_RELIEF_LENGTH, err);
	else if (estimate->is_out_of_memory)
		status = psd_estimate_out_of_memory(err);
	else
		status = psd_interpreter_check(&estimate->interpreter, err);
	if (status == PSD_OK)
		fill_outcome(estimate, length, outcome);
	psd_interpreter_release(&estimate->interpreter);
	return status;
}

/* ---- estimators ---- */

struct psd_estimator {
	struct psd_estimate estimate;
	struct psd_duties *duties; /* duties of each class */
	const struct psd_duties **duties_of_class;
	struct psd_outcome traffic; /* bytes per node, once has_traffic */
	bool has_traffic;
};

static enum psd_status open_parts(struct psd_estimate *estimate, struct psd_error *err)
{
	PSD_TRY(psd_classes_find(&estimate->classes, estimate->program, err));
	PSD_TRY(psd_estimate_open_messages(estimate, err));
	PSD_TRY(psd_estimate_open_collectives(estimate, err));
	return psd_estimate_open_work(estimate, err);
}

static enum psd_status make_duties(struct psd_estimator *estimator, struct psd_error *err)
{
	const struct psd_classes *classes = &estimator->estimate.classes;

	estimator->duties = calloc(classes->n, sizeof(*estimator->duties));
	estimator->duties_of_class = calloc(classes->n, sizeof(*estimator->duties_of_class));
	if (!estimator->duties || !estimator->duties_of_class)
		return psd_estimate_out_of_memory(err);
	for (unsigned c = 0; c < classes->n; c++) {
		PSD_TRY(psd_duties_make(&estimator->duties[c], estimator->estimate.program,
					classes->of[c].representative, psd_classes_arrivals, classes, err));
		estimator->duties_of_class[c] = &estimator->duties[c];
	}
	return PSD_OK;
}

/* Refuses a run with too many events, by a count before it begins. Where each host is a class of its own, each message
 * from or to a root is an event at least; an asynchronous program has no others. */
static enum psd_status check_length(const struct psd_estimate *estimate, struct psd_run_length length,
				    struct psd_error *err)
{
	const struct psd_program *program = estimate->program;
	const struct psd_layout *layout = psd_estimate_layout(estimate);
	const uint32_t n_exchanges = length.n_iterations / psd_plan_steps(program->plan);
	double n_messages = 0.0;

	if (estimate->classes.n < psd_layout_hosts(layout))
		return PSD_OK;
	for (uint32_t i = 0; i < program->n_ops; i++) {
		const struct psd_payload *payload = &program->ops[i].payload;

		if (psd_op_moves(&program->ops[i]) && payload->collective->has_root)
			n_messages += psd_op_times(&program->ops[i], length.n_iterations, n_exchanges) *
				      (psd_payload_receivers(payload, layout, payload->root) +
				       (double)psd_payload_senders(payload, layout, payload->root));
	}
	return n_messages <= (double)length.most_events ? PSD_OK
							: psd_refuse_length(program->plan->system, layout->workers,
									    length.most_events, PSD_RELIEF_LENGTH, err);
}

enum psd_status psd_estimator_new(struct psd_estimator **estimator, const struct psd_program *program,
				  struct psd_run_length length, struct psd_error *err)
{
	struct psd_estimator *made = calloc(1, sizeof(*made));

	if (!made)
		return psd_estimate_out_of_memory(err);
	made->estimate.program = program;
	enum psd_status status = open_parts(&made->estimate, err);
	if (!status)
		status = check_length(&made->estimate, length, err);
	if (!status)
		status = make_duties(made, err);
	if (status)
		psd_estimator_free(made);
	else
		*estimator = made;
	return status;
}

void psd_estimator_free(struct psd_estimator *estimator)
{
	if (!estimator)
		return;
	struct psd_estimate *estimate = &estimator->estimate;
	for (unsigned c = 0; estimator->duties && c < estimate->classes.n; c++)
		psd_duties_release(&estimator->duties[c]);
	free(estimator->duties_of_class);
	free(estimator->duties);
	psd_estimate_close_work(estimate);
	psd_estimate_close_collectives(estimate);
	psd_estimate_close_messages(estimate);
	psd_classes_release(&estimate->classes);
	free(estimate->events.entries);
	free(estimator);
}

/* Sets all parts to the begin of a run, at the plan's present rates. */
static void begin(struct psd_estimate *estimate, struct psd_run_length length, struct psd_prices *prices)
{
	estimate->now_sec = 0.0;
	estimate->n_events = 0;
	estimate->most_events = length.most_events;
	estimate->is_out_of_memory = false;
	estimate->events.n = 0;
	estimate->next_seq = 0;
	estimate->prices = prices ? prices : &estimate->own_prices;
	psd_prices_forget_sec(&estimate->own_prices);
	psd_estimate_begin_messages(estimate);
	psd_estimate_begin_work(estimate);
}

static enum psd_status run_time(struct psd_estimator *estimator, struct psd_run_length length,
				struct psd_prices *prices, struct psd_outcome *outcome, struct psd_error *err)
{
	begin(&estimator->estimate, length, prices);
	return interpret(&estimator->estimate, estimator->duties_of_class, length, outcome, err);
}

enum psd_status psd_estimator_run(struct psd_estimator *estimator, struct psd_run_length length,
				  struct psd_outcome *outcome, struct psd_error *err)
{
	PSD_TRY(run_time(estimator, length, NULL, outcome, err));
	if (!estimator->has_traffic)
		add_traffic(estimator->estimate.program, &estimator->traffic);
	estimator->has_traffic = true;
	outcome->sent_bytes_per_node = estimator->traffic.sent_bytes_per_node;
	outcome->received_bytes_per_node = estimator->traffic.received_bytes_per_node;
	return PSD_OK;
}

enum psd_status psd_estimator_time(struct psd_estimator *estimator, struct psd_run_length length,
				   struct psd_outcome *outcome, struct psd_error *err)
{
	return run_time(estimator, length, NULL, outcome, err);
}

enum psd_status psd_estimate_time(const struct psd_program *program, struct psd_run_length length,
				  struct psd_prices *prices, struct psd_outcome *outcome, struct psd_error *err)
{
	struct psd_estimator *estimator = NULL;
	enum psd_status status = psd_estimator_new(&estimator, program, length, err);

	if (!status)
		status = run_time(estimator, length, prices, outcome, err);
	psd_estimator_free(estimator);
	return status;
}

enum psd_status psd_estimate(const struct psd_program *program, struct psd_run_length length,
			     struct psd_outcome *outcome, struct psd_error *err)
{
	struct psd_estimator *estimator = NULL;
	enum psd_status status = psd_estimator_new(&estimator, program, length, err);

	if (!status)
		status = psd_estimator_run(estimator, length, outcome, err);
	psd_estimator_free(estimator);
	return status;
}
