/* Names and keys are those of Kineto and NCCL. HolisticTraceAnalysis finds the kind of a kernel by its name, and its
 * step by the time of its launch. */
#include "engine/result/rank_trace.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	GPU = 0, /* `pid` of kernels, number of the device */
	CPU = 1, /* `pid` of launches and steps */
	FIRST_STREAM = 7,
	MOST_LISTED = 32, /* ranks of a process group; of larger ones Kineto tells begin and stride */
};

static const char *const stream_names[] = {"compute", "copy out", "copy in", "host CPU", "network out", "network in"};
enum { STREAMS = sizeof(stream_names) / sizeof(stream_names[0]) };

/* ---- state ---- */

enum psd_status psd_rank_trace_init(struct psd_rank_trace *trace, const struct psd_case *traced, unsigned rank,
				    bool is_predicted, struct psd_error *err)
{
	*trace = (struct psd_rank_trace){.rank = rank, .is_predicted = is_predicted};
	trace->items = calloc(traced->plan.n_items + 1, sizeof(*trace->items));
	return trace->items ? PSD_OK : psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a trace");
}

void psd_rank_trace_release(struct psd_rank_trace *trace)
{
	free(trace->items);
	trace->items = NULL;
}

/* ---- head ---- */

/* The list of all ranks would be as long as the file of a large cluster, so it is given where it is short. */
static void add_ranks(struct psd_text *text, struct psd_group group)
{
	psd_text_add(text, "[");
	for (unsigned i = 0; i < group.n && i < MOST_LISTED; i++)
		psd_text_add(text, "%s%u", i ? ", " : "", psd_group_host(group, i));
	psd_text_add(text, "]");
}

static void name_row(struct psd_text *text, const char *event, unsigned pid, unsigned tid, const char *key,
		     const char *name, unsigned number)
{
	psd_text_add(text, "%s\n{\"name\":\"%s\",\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"args\":{\"%s\":\"%s %u\"}}",
		     pid == CPU && tid == 0 ? "" : ",", event, pid, tid, key, name, number);
}

void psd_rank_trace_add_head(const struct psd_rank_trace *trace, struct psd_text *text, const struct psd_case *traced,
			     const char *executor)
{
	const struct psd_scenario *scenario = traced->costed->scenario;
	const unsigned workers = traced->plan.layout.workers;

	psd_text_add(text, "{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":0,\n");
	/* readers look for "rank" with a blank behind its colon */
	psd_text_add(text,
		     "\"distributedInfo\":{\"backend\":\"nccl\",\"rank\": %u,\"world_size\": %u,\"pg_count\":1,"
		     "\"pg_config\":[{\"pg_name\":\"0\",\"pg_desc\":\"default_pg\",\"backend_config\":\"cuda:nccl\","
		     "\"pg_size\":%u,\"ranks\":",
		     trace->rank, workers, workers);
	add_ranks(text, (struct psd_group){.stride = 1, .n = workers});
	psd_text_add(text, "}]},\n\"deviceProperties\":[{\"id\":0,\"name\":");
	psd_text_add_json(text, scenario->device_name ? scenario->device_name : "profile");
	psd_text_add(text, "}],\n\"otherData\":{\"scenario\":");
	psd_text_add_json(text, scenario->title);
	psd_text_add(text, ",\"system\":");
	psd_text_add_json(text, traced->system->name);
	psd_text_add(text, ",\"executor\":\"%s\",\"nodes\":%u,\"workers\":%u,\"bandwidth_bps\":%.15g},\n", executor,
		     traced->point.nodes, workers, traced->point.bandwidth_bps);
	psd_text_add(text, "\"traceEvents\":[");
	name_row(text, "process_name", CPU, 0, "name", "worker", trace->rank);
	name_row(text, "process_name", GPU, 0, "name", "device of worker", trace->rank);
	for (unsigned s = 0; s < STREAMS; s++)
		name_row(text, "thread_name", GPU, FIRST_STREAM + s, "name", stream_names[s], FIRST_STREAM + s);
}

/* ---- names of kernels ---- */

struct value_type {
	const char *kernel, *dtype; /* in NCCL's kernels, and in PyTorch's arguments */
};

static struct value_type type_of(const struct psd_program *program, const struct psd_op *op)
{
	const bool is_bf16 = !strcmp(program->plan->wire->name, "bf16");

	switch (op->payload.value_bytes) {
	case 1: return (struct value_type){"u8", "Byte"};
	case 2: return is_bf16 ? (struct value_type){"bf16", "BFloat16"} : (struct value_type){"f16", "Half"};
	default: return (struct value_type){"f32", "Float"};
	}
}

static void add_all_reduce(struct psd_text *text, const struct psd_collective *collective, struct value_type type)
{
	psd_text_add(text, "\"ncclDevKernel_AllReduce_Sum_%s_", type.kernel);
	for (const char *c = collective->assumed ? collective->assumed : collective->name; *c; c++)
		psd_text_add(text, "%c", isalnum((unsigned char)*c) ? toupper((unsigned char)*c) : '_');
	psd_text_add(text, "_LL\"");
}

static void add_kernel_name(struct psd_text *text, const struct psd_program *program, const struct psd_op *op)
{
	switch (op->resource) {
	case PSD_RESOURCE_DEVICE: psd_trace_add_name(text, program->plan, op); break;
	case PSD_RESOURCE_COPY_OUT: psd_text_add(text, "\"Memcpy DtoH (Device -> Pageable)\""); break;
	case PSD_RESOURCE_COPY_IN: psd_text_add(text, "\"Memcpy HtoD (Pageable -> Device)\""); break;
	case PSD_RESOURCE_CPU:
		psd_text_add(text, "\"ncclDevKernel_Reduce_Sum_%s\"", type_of(program, op).kernel);
		break;
	case PSD_RESOURCE_NIC:
	case PSD_RESOURCE_NONE:
		if (psd_op_is_collective(op))
			add_all_reduce(text, op->payload.collective, type_of(program, op));
		else
			psd_text_add(text, "\"ncclDevKernel_SendRecv\"");
	}
}

/* ---- arguments ---- */

static void add_all_reduce_arguments(struct psd_text *text, const struct psd_program *program,
				     const struct psd_span *span)
{
	const struct psd_payload *payload = &program->ops[span->task.op].payload;
	const struct psd_group group = psd_payload_group(payload, &program->plan->layout);

	psd_text_add(text,
		     ",\"Collective name\":\"allreduce\",\"In msg nelems\":%" PRIu64 ",\"Out msg nelems\":%" PRIu64
		     ",\"Group size\":%u,\"Global rank start\":%u,\"Global rank stride\":%u",
		     payload->elements, payload->elements, group.n, group.first, group.stride);
	if (payload->group.n == 0)
		psd_text_add(text, ",\"Process Group Name\":\"0\",\"Process Group Description\":\"default_pg\"");
	else
		psd_text_add(text, ",\"Process Group Name\":\"%u:%u\"", group.first, group.stride);
	if (group.n <= MOST_LISTED) {
		psd_text_add(text, ",\"Process Group Ranks\":\"");
		add_ranks(text, group);
		psd_text_add(text, "\"");
	}
	psd_trace_add_peers(text, program, span);
}

static void add_send_arguments(struct psd_text *text, const struct psd_program *program, const struct psd_span *span)
{
	const struct psd_traffic traffic = psd_trace_traffic(program, span);
	const struct psd_payload *payload = &program->ops[span->task.op].payload;
	const uint64_t bytes = span->is_arrival ? traffic.received_bytes : traffic.sent_bytes;

	psd_text_add(text,
		     ",\"Collective name\":\"%s\",\"In msg nelems\":%" PRIu64 ",\"Out msg nelems\":%" PRIu64
		     ",\"Group size\":%u",
		     span->is_arrival ? "recv" : "send", bytes / payload->value_bytes, bytes / payload->value_bytes,
		     program->plan->layout.workers);
	if (span->is_arrival)
		psd_text_add(text, ",\"Src Rank\":%u", span->peer);
	else if (payload->collective->has_root && span->host != payload->root)
		psd_text_add(text, ",\"Dst Rank\":%u", payload->root);
}

static void add_arguments(struct psd_text *text, const struct psd_program *program, const struct psd_span *span)
{
	const struct psd_op *op = &program->ops[span->task.op];

	psd_text_add(text, ",\"iteration\":%" PRIu32 ",\"bytes\":%" PRIu64, span->task.iteration, span->bytes);
	if (op->resource == PSD_RESOURCE_DEVICE)
		return;
	psd_text_add(text, ",\"operation\":");
	psd_trace_add_name(text, program->plan, op);
	if (psd_op_is_collective(op))
		add_all_reduce_arguments(text, program, span);
	if (psd_op_is_send(op))
		add_send_arguments(text, program, span);
	if (op->payload.collective)
		psd_text_add(text, ",\"dtype\":\"%s\"", type_of(program, op).dtype);
}

/* ---- steps and spans ---- */

static void add_step(const struct psd_rank_trace *trace, struct psd_text *text, double end_sec)
{
	psd_text_add(text,
		     ",\n{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#%" PRIu32 "\",\"pid\":%d,"
		     "\"tid\":1,\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"External id\":0}}",
		     trace->iteration, CPU, 1e6 * trace->step_sec, 1e6 * (end_sec - trace->step_sec));
}

/* A step begins with the first layer of its iteration or, where it is told, with the end of the one before. */
static void begin_step(struct psd_rank_trace *trace, struct psd_text *text, uint32_t iteration, double start_sec)
{
	if (trace->has_step && iteration <= trace->iteration)
		return;
	if (trace->has_step)
		add_step(trace, text, start_sec);
	trace->has_step = true;
	trace->iteration = iteration;
	trace->step_sec = trace->device_sec = start_sec;
}

static double begin_of(struct psd_rank_trace *trace, const struct psd_program *program, const struct psd_span *span)
{
	const struct psd_op *op = &program->ops[span->task.op];
	struct psd_rank_item *item = &trace->items[op->item < 0 ? program->plan->n_items : (uint32_t)op->item];
	double start_sec = span->start_sec;

	if (op->resource == PSD_RESOURCE_DEVICE)
		return span->work_sec > 0.0 ? fmax(start_sec, span->end_sec - span->work_sec) : start_sec;
	if (!trace->is_predicted || op->item < 0)
		return start_sec;
	if (span->is_arrival && item->end_sec > 0.0 && item->iteration == span->task.iteration)
		start_sec = fmin(start_sec, item->end_sec);
	*item = (struct psd_rank_item){span->task.iteration, span->end_sec};
	return start_sec;
}

/* The device's kernels are launched one ahead, since a device waits for data and not for its host. */
static double launch_of(struct psd_rank_trace *trace, const struct psd_op *op, double start_sec)
{
	const double before_sec = trace->device_sec;

	if (op->resource != PSD_RESOURCE_DEVICE)
		return start_sec;
	trace->device_sec = start_sec;
	return before_sec;
}

void psd_rank_trace_add_span(struct psd_rank_trace *trace, struct psd_text *text, const struct psd_program *program,
			     const struct psd_span *span)
{
	const struct psd_op *op = &program->ops[span->task.op];
	const bool is_copy = op->resource == PSD_RESOURCE_COPY_OUT || op->resource == PSD_RESOURCE_COPY_IN;
	const unsigned stream = FIRST_STREAM + (span->is_arrival ? STREAMS - 1 : (unsigned)op->resource);
	const double start_sec = begin_of(trace, program, span);

	if (span->task.op == program->next_op) {
		begin_step(trace, text, span->task.iteration + 1, start_sec);
		return;
	}
	const uint64_t number = ++trace->n_kernels;
	if (psd_ops[op->kind].is_forward)
		begin_step(trace, text, span->task.iteration, start_sec);
	const double launch_sec = launch_of(trace, op, start_sec);
	psd_text_add(text,
		     ",\n{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"%s\",\"pid\":%d,\"tid\":1,\"ts\":%.3f,"
		     "\"dur\":0,\"args\":{\"External id\":%" PRIu64 ",\"correlation\":%" PRIu64 "}}",
		     is_copy ? "cudaMemcpyAsync" : "cudaLaunchKernel", CPU, 1e6 * launch_sec, number, number);
	psd_text_add(text, ",\n{\"ph\":\"X\",\"cat\":\"%s\",\"name\":", is_copy ? "gpu_memcpy" : "kernel");
	add_kernel_name(text, program, op);
	psd_text_add(text,
		     ",\"pid\":%d,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"External id\":%" PRIu64
		     ",\"device\":0,\"context\":1,\"stream\":%u,\"correlation\":%" PRIu64,
		     GPU, stream, 1e6 * start_sec, 1e6 * (span->end_sec - start_sec), number, stream, number);
	add_arguments(text, program, span);
	psd_text_add(text, "}}");
	trace->end_sec = fmax(trace->end_sec, span->end_sec);
	psd_trace_count(text, GPU, &trace->until_now, psd_trace_traffic(program, span), span->end_sec);
}

void psd_rank_trace_add_end(const struct psd_rank_trace *trace, struct psd_text *text)
{
	if (trace->has_step && trace->end_sec > trace->step_sec)
		add_step(trace, text, trace->end_sec);
	psd_text_add(text, "\n]}\n");
}
