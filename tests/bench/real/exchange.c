/* psd's ring of the one matrix of allreduce.yaml, REPEATS times, in a node of in-cluster: one line for each on every
 * rank, "SECONDS CPU_SECONDS". A whole worker as in psd-run, but for its device, which only writes and checks the
 * gradient. SECRET in the environment is as --secret. CPU is that of the thread that sends, receives and adds. Exits 1
 * if a sum is wrong. For tests/bench/real/bench_allreduce.sh. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/case/case.h"
#include "engine/scenario/scenario.h"
#include "real/cluster/emulation.h"
#include "real/net/secret.h"
#include "real/session/worker.h"

#define FIRST_PORT  7411
#define CONNECT_SEC 30.0

struct psd_device { /* with compute `none` */
	const struct psd_graph *graph;
	float **gradients; /* NULL where none is wanted */
	bool has_gradient; /* span of all layers, from the first backward pass on */
};

static unsigned rank, n_workers;
static bool is_ring;
static uint64_t held_bytes;

static enum psd_status open_checking(struct psd_device **device, const struct psd_device_options *options,
				     struct psd_error *err)
{
	struct psd_device *const opened = calloc(1, sizeof(*opened));

	(void)options;
	if (!opened)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
	*device = opened;
	return PSD_OK;
}

static enum psd_status load(struct psd_device *device, const struct psd_graph *graph,
			    const struct psd_network_options *options, float *const parameters[],
			    float *const gradients[], struct psd_error *err)
{
	float **const copies = calloc(graph->n_tensors + 1U, sizeof(*copies));

	(void)parameters, (void)options;
	if (!copies)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
	memcpy(copies, gradients, graph->n_tensors * sizeof(*copies));
	*device = (struct psd_device){.graph = graph, .gradients = copies};
	return PSD_OK;
}

/* A ring's gradient is still the last iteration's sum; a parameter server leaves it alone. */
static enum psd_status forward(struct psd_device *device, unsigned layer, struct psd_error *err)
{
	const float expected = (float)(n_workers * (n_workers + 1) / 2);
	const struct psd_layer *const of = &device->graph->layers[layer];

	for (unsigned t = of->first_tensor; is_ring && device->has_gradient && t < of->first_tensor + of->n_tensors;
	     t++)
		for (uint64_t e = 0; e < device->graph->tensors[t].elements; e++)
			if (device->gradients[t][e] != expected)
				return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "wrong sum: %g, must be %g",
						     (double)device->gradients[t][e], (double)expected);
	return PSD_OK;
}

static enum psd_status backward(struct psd_device *device, unsigned layer, struct psd_error *err)
{
	const struct psd_layer *const of = &device->graph->layers[layer];

	(void)err;
	for (unsigned t = of->first_tensor; (is_ring || !device->has_gradient) && t < of->first_tensor + of->n_tensors;
	     t++)
		for (uint64_t e = 0; e < device->graph->tensors[t].elements; e++)
			device->gradients[t][e] = (float)(rank + 1);
	device->has_gradient = device->has_gradient || layer == 0;
	return PSD_OK;
}

static void close_checking(struct psd_device *device)
{
	if (device)
		free(device->gradients);
	free(device);
}

/* Idle, but for gradients that tell whose they are. */
static struct psd_device_kind checking_compute(void)
{
	struct psd_device_kind kind = psd_device_idle;

	kind.open = open_checking;
	kind.load = load;
	kind.forward = forward;
	kind.backward = backward;
	kind.close = close_checking;
	return kind;
}

/* The processor's own, which tells what it held when it closes. */
static void close_counted(struct psd_device *device)
{
	if (device)
		held_bytes = psd_device_cpu.memory_bytes(device);
	psd_device_cpu.close(device);
}

static double thread_cpu_sec(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct measured {
	FILE *out;
	double before_cpu_sec;
};

static void take_span(void *context, const struct psd_program *program, const struct psd_span *span)
{
	struct measured *const measured = context;

	if (program->ops[span->task.op].kind == PSD_OP_COLLECTIVE)
		fprintf(measured->out, "%.6f %.6f\n", span->end_sec - span->start_sec,
			thread_cpu_sec() - measured->before_cpu_sec);
	measured->before_cpu_sec = thread_cpu_sec();
}

struct job {
	bool has_compute;
	const char *system_name;
	uint32_t repeats;
	FILE *out;
};

static enum psd_status run_worker(const struct psd_case *made, const struct psd_device_kind *kind, uint32_t repeats,
				  struct measured *measured, struct psd_worker_result *result, struct psd_error *err)
{
	struct psd_mesh_host *const hosts = calloc(n_workers, sizeof(*hosts));
	const char *const secret_path = getenv("SECRET");
	struct psd_secret *secret = NULL;
	bool is_exposed;
	enum psd_status status = PSD_OK;

	if (!hosts)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
	for (unsigned h = 0; h < n_workers; h++) {
		psd_emulation_address(h, hosts[h].address);
		hosts[h].port = (uint16_t)(FIRST_PORT + h);
	}
	if (secret_path)
		status = psd_secret_load(secret_path, &secret, &is_exposed, err);
	if (!status)
		status = psd_worker_run(
			&(struct psd_worker_options){
				.made = made,
				.train = &made->costed->scenario->train,
				.device = kind,
				.n_iterations = repeats,
				.self = rank,
				.hosts = hosts,
				.secret = secret,
				.listener = -1,
				.connect_sec = CONNECT_SEC,
				.stall_sec = CONNECT_SEC,
				.span = take_span,
				.span_context = measured,
			},
			result, err);
	psd_secret_free(secret);
	free(hosts);
	return status;
}

/* Without compute there is nothing that factors could be made of. */
static bool has_factors(const struct psd_plan *plan)
{
	for (unsigned i = 0; i < plan->n_items; i++)
		if (plan->items[i].method->keeps[PSD_BUFFER_FACTORS])
			return true;
	return false;
}

static const struct psd_system *find_system(const struct psd_scenario *scenario, const char *name)
{
	for (unsigned s = 0; s < scenario->n_systems; s++)
		if (!strcmp(scenario->systems[s].name, name))
			return &scenario->systems[s];
	return NULL;
}

static void print_result(const struct psd_costed_model *costed, const struct psd_worker_result *result)
{
	uint64_t elements = 0;

	for (unsigned t = 0; t < costed->graph.n_tensors; t++)
		elements += costed->graph.tensors[t].elements;
	printf("iteration_sec,model_bytes,activation_bytes,held_bytes\n%.6f,%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n",
	       result->iteration_sec, elements * sizeof(float),
	       costed->graph.activation_bytes * costed->scenario->batch_per_worker, held_bytes);
}

static enum psd_status run(const struct psd_scenario *scenario, const struct job *job, struct psd_error *err)
{
	struct psd_device_kind kind = job->has_compute ? psd_device_cpu : checking_compute();
	struct psd_point point = psd_scenario_point(scenario, 0);
	struct psd_costed_model costed;
	struct psd_worker_result result;
	struct psd_case made;
	struct measured measured = {.out = job->out};
	const struct psd_system *const system = find_system(scenario, job->system_name);
	enum psd_status status;

	if (!system)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "no system '%.80s'", job->system_name);
	status = psd_costed_model_load(&costed, scenario, err);
	if (status)
		return status;
	if (job->has_compute)
		kind.close = close_counted;
	point.nodes = point.workers = n_workers;
	status = psd_case_make(&made, &costed, system, point, err);
	if (!status) {
		is_ring = made.plan.items[0].method->collective->steps != NULL;
		status =
			!job->has_compute && has_factors(&made.plan)
				? psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'%.80s' needs compute", job->system_name)
				: run_worker(&made, &kind, job->repeats, &measured, &result, err);
		psd_case_release(&made);
	}
	if (!status && rank == 0)
		print_result(&costed, &result);
	psd_costed_model_release(&costed);
	return status;
}

static unsigned number_of(const char *name)
{
	const char *const text = getenv(name);

	return text ? (unsigned)strtoul(text, NULL, 10) : 0;
}

int main(int argc, char **argv)
{
	struct psd_scenario scenario;
	struct psd_error err;
	enum psd_status status;
	struct job job;
	char path[512];

	rank = number_of("RANK");
	n_workers = number_of("WORLD_SIZE");
	if (argc < 6 || n_workers < 2) {
		fputs("usage: exchange none|cpu SYSTEM REPEATS RESULT SCENARIO [KEY=VALUE...], with RANK and "
		      "WORLD_SIZE\n",
		      stderr);
		return 2;
	}
	snprintf(path, sizeof(path), "%s.%u", argv[4], rank);
	job = (struct job){.has_compute = !strcmp(argv[1], "cpu"),
			   .system_name = argv[2],
			   .repeats = (uint32_t)strtoul(argv[3], NULL, 10),
			   .out = fopen(path, "we")};
	if (!job.out) {
		fputs("exchange: no file for the result\n", stderr);
		return 1;
	}
	status = psd_scenario_load(&scenario, argv[5], (const char *const *)(argv + 6), &err);
	if (!status) {
		status = run(&scenario, &job, &err);
		psd_scenario_release(&scenario);
	}
	if (status)
		fprintf(stderr, "exchange: %s\n", err.text);
	return fclose(job.out) || status;
}
