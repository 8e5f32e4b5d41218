/* Writes the texts of a scenario and a graph, runs them, and collects the spans. */
#include "real/calibrate/exchange.h"

#include <math.h>
#include <stdlib.h>

#include "engine/base/text.h"
#include "engine/model/model.h"

#define PATH	    "exchange" /* path of the texts, which are not files, in errors */
#define NO_RATE_BPS 1e9	       /* a scenario needs a bandwidth; the case drops it */

/* ---- the texts ---- */

/* A sequence of linear layers with square weights and no bias. */
static void add_model(struct psd_text *text, const struct psd_exchange_options *options)
{
	psd_text_add(text, "name: exchange\ninput: {channels: %u}\nlayers:\n", options->side);
	for (unsigned l = 0; l < options->n_tensors; l++)
		psd_text_add(text, "  - {name: fc%u, kind: inner-product, outputs: %u, bias: false}\n", l,
			     options->side);
	psd_text_add(text, "  - {name: loss, kind: softmax-loss}\n");
}

static void add_scenario(struct psd_text *text, const struct psd_exchange_options *options)
{
	psd_text_add(text, "model: {graph: " PATH ", batch_per_worker: 1}\ncompute: {device: cpu}\n");
	psd_text_add(text,
		     "cluster: {nodes: %u, workers_per_node: %u, network: {bandwidth: %.17gbps, latency: %.17gs}}\n",
		     options->n_workers / options->workers_per_node, options->workers_per_node,
		     options->rate_bps > 0.0 ? options->rate_bps : NO_RATE_BPS, options->latency_sec);
	psd_text_add(text,
		     "systems:\n  - {name: PS, schedule: sequential, sync: ps, servers: %u, pair: 1GiB, slice: 1GiB}\n",
		     options->n_servers);
	psd_text_add(text,
		     "train:\n  data: {kind: synthetic, training_samples: 256, test_samples: 1}\n  iterations: %u\n"
		     "  learning_rate: {base: 0.001}\n  test_every: 0\n  streams: %u\n",
		     (unsigned)options->n_iterations, options->n_streams);
}

static enum psd_status parse_scenario(struct psd_scenario *scenario, const struct psd_exchange_options *options,
				      struct psd_error *err)
{
	struct psd_text text = {.bytes = NULL};

	add_scenario(&text, options);
	const enum psd_status status = text.is_out_of_memory
					       ? psd_out_of_memory(err)
					       : psd_scenario_parse(scenario, PATH, text.bytes, text.length, NULL, err);
	psd_text_release(&text);
	return status;
}

static enum psd_status make_model(struct psd_costed_model *costed, const struct psd_scenario *scenario,
				  const struct psd_exchange_options *options, struct psd_error *err)
{
	struct psd_costed_model made = {.scenario = scenario};
	struct psd_text text = {.bytes = NULL};

	add_model(&text, options);
	enum psd_status status = text.is_out_of_memory
					 ? psd_out_of_memory(err)
					 : psd_model_parse(&made.graph, PATH, text.bytes, text.length, err);
	psd_text_release(&text);
	if (status)
		return status;
	status = psd_costs_from_device(&made.costs, &made.graph, psd_device_find(scenario->device_name),
				       scenario->batch_per_worker, PSD_PRECISION_FP32, 0.0, err);
	if (status)
		psd_graph_release(&made.graph);
	else
		*costed = made;
	return status;
}

/* ---- the spans ---- */

struct log {
	struct psd_exchange *exchange;
	uint32_t n_iterations;
};

/* Each operation has an entry in each iteration. Entries of operations that send nothing stay without bytes. */
static void note_span(void *context, const struct psd_program *program, const struct psd_span *span)
{
	const struct log *log = context;
	const struct psd_op *op = &program->ops[span->task.op];
	struct psd_exchange_flight *flight =
		&log->exchange->flights[span->task.op * log->n_iterations + span->task.iteration];

	if (!psd_op_is_send(op))
		return;
	flight->is_push = op->payload.collective == &psd_push;
	flight->iteration = span->task.iteration;
	if (span->is_arrival) {
		flight->end_sec = fmax(flight->end_sec, span->end_sec);
		flight->bytes += (double)span->bytes;
	} else {
		flight->start_sec = fmin(flight->start_sec, span->start_sec);
	}
}

static enum psd_status collect(struct psd_exchange *exchange, const struct psd_spans *spans,
			       const struct psd_program *program, uint32_t n_iterations, struct psd_error *err)
{
	const struct log log = {exchange, n_iterations};

	exchange->n_flights = program->n_ops * n_iterations;
	exchange->flights = calloc(exchange->n_flights, sizeof(*exchange->flights));
	if (!exchange->flights)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for an exchange");
	for (unsigned f = 0; f < exchange->n_flights; f++)
		exchange->flights[f].start_sec = INFINITY;
	return psd_spans_tell(spans, program, note_span, (void *)(uintptr_t)&log, err);
}

/* ---- the run ---- */

static enum psd_status launch(struct psd_exchange *exchange, const struct psd_case *made,
			      const struct psd_exchange_options *options, struct psd_error *err)
{
	struct psd_spans spans = {.hosts = NULL};
	const struct psd_launch_options launch_options = {
		.worker.made = made,
		.worker.train = &made->costed->scenario->train,
		.worker.device = &psd_device_idle,
		.worker.n_iterations = options->n_iterations,
		.cluster_kind = options->cluster_kind,
		.worker.connect_sec = PSD_LAUNCH_CONNECT_SEC,
		.worker.stall_sec = options->stall_sec,
		.worker.remark = options->remark,
		.worker.context = options->context,
		.spans = &spans,
		.stop_signal = options->stop_signal,
	};
	struct psd_worker_result result;
	enum psd_status status = psd_spans_open(&spans, psd_layout_hosts(&made->plan.layout), err);

	if (!status)
		status = psd_launch(&launch_options, &result, err);
	if (!status)
		status = collect(exchange, &spans, &made->program, options->n_iterations, err);
	if (!status)
		exchange->iteration_sec = result.iteration_sec;
	psd_spans_close(&spans);
	return status;
}

static enum psd_status run_case(struct psd_exchange *exchange, const struct psd_costed_model *costed,
				const struct psd_exchange_options *options, struct psd_error *err)
{
	struct psd_point point = psd_scenario_point(costed->scenario, 0);
	struct psd_case made;

	point.bandwidth_bps = options->rate_bps;
	PSD_TRY(psd_case_make(&made, costed, &costed->scenario->systems[0], point, err));
	const enum psd_status status = launch(exchange, &made, options, err);
	psd_case_release(&made);
	return status;
}

enum psd_status psd_exchange_run(struct psd_exchange *exchange, const struct psd_exchange_options *options,
				 struct psd_error *err)
{
	struct psd_exchange run = {.flights = NULL};
	struct psd_costed_model costed;
	struct psd_scenario scenario;

	PSD_TRY(parse_scenario(&scenario, options, err));
	enum psd_status status = make_model(&costed, &scenario, options, err);
	if (!status) {
		status = run_case(&run, &costed, options, err);
		psd_costed_model_release(&costed);
	}
	psd_scenario_release(&scenario);
	if (status)
		psd_exchange_release(&run);
	else
		*exchange = run;
	return status;
}

void psd_exchange_release(struct psd_exchange *exchange)
{
	free(exchange->flights);
	*exchange = (struct psd_exchange){.flights = NULL};
}
