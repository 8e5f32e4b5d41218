#include "real/cluster/memory_limit.h"

#include "engine/base/units.h"
#include "engine/model/layer.h"
#include "engine/program/footprint.h"
#include "real/net/ring_buffer.h"

/* Measured: a replay of VGG19-22K on 16 nodes; an MLP's worker without its tensors; both ends of an idle connection. */
enum {
	PROCESS_BYTES = 14 << 20,
	TRAINING_BYTES = 16 << 20, /* added by training: oneDNN's kernels, and samples that are read */
	CONNECTION_BYTES = 8192,
};

/* Memory of a sample on its worker's host: outputs of layers, gradients of the outputs that factors are made of, and
 * the next sample. Gradients of other outputs share memory. With a device of its own memory the host keeps samples
 * only. */
static uint64_t sample_bytes(const struct psd_graph *graph, bool is_apart)
{
	uint64_t values = psd_shape_elements(graph->layers[0].shape);

	if (is_apart)
		return 2 * sizeof(float) * values; /* the sample that is computed, and the next one */
	for (unsigned t = 0; t < graph->n_tensors; t++)
		values += graph->tensors[t].rows ? graph->tensors[t].columns : 0;
	return graph->activation_bytes + sizeof(float) * values;
}

/* Memory of all workers' factors on each of the first n_hosts that rebuilds a matrix. */
static uint64_t factors_bytes(const struct psd_case *made, uint64_t n_hosts)
{
	const struct psd_layout *layout = &made->plan.layout;
	uint64_t bytes = 0;

	for (const struct psd_op *op = made->program.ops; op < made->program.ops + made->program.n_ops; op++)
		for (unsigned h = 0; psd_ops[op->kind].rebuilds && h < n_hosts; h++)
			if (psd_op_runs_on(op, layout, h))
				bytes += sizeof(float) * layout->workers *
					 psd_subject_factors(&made->plan.items[op->item].subject);
	return bytes;
}

/* Number of pairs of hosts that share a node. */
static uint64_t near_pairs(const struct psd_layout *layout)
{
	uint64_t n_pairs = 0;

	for (unsigned node = 0; node < layout->nodes; node++) {
		const uint64_t n_here = psd_layout_workers_on(layout, node);

		n_pairs += n_here * (n_here - 1) / 2;
	}
	return n_pairs;
}

uint64_t psd_memory_limit_least_bytes(const struct psd_case *made, const struct psd_replay *replay)
{
	const struct psd_layout *layout = &made->plan.layout;
	const struct psd_graph *graph = made->plan.graph;
	const struct psd_scenario *scenario = made->costed->scenario;
	const uint64_t n_training = replay ? replay->real_workers : layout->workers;
	const uint64_t n_hosts = psd_layout_hosts(layout),
		       n_connections = n_hosts * (n_hosts - 1) / 2 * psd_train_least_streams(&scenario->train);
	const uint64_t shared_bytes =
		near_pairs(layout) * psd_train_least_streams(&scenario->train) * 2 * sizeof(struct psd_ring_buffer);
	const struct psd_footprint kept = psd_footprint_make(&made->program, scenario->batch_per_worker);
	const uint64_t worker_bytes = TRAINING_BYTES + kept.parameters_bytes + kept.gradients_bytes + /* or more */
				      sample_bytes(graph, made->costed->costs.has_own_memory) * psd_case_samples(made) /
					      (layout->workers * made->plan.micro_batches);

	return n_hosts * PROCESS_BYTES + n_connections * CONNECTION_BYTES + shared_bytes + n_training * worker_bytes +
	       factors_bytes(made, replay ? n_training : n_hosts);
}

enum psd_status psd_memory_limit_check(const struct psd_case *made, const struct psd_replay *replay,
				       uint64_t available_bytes, struct psd_error *err)
{
	const uint64_t least_bytes = psd_memory_limit_least_bytes(made, replay);
	char least[PSD_UNITS_TEXT_MAX], available[PSD_UNITS_TEXT_MAX];

	if (least_bytes <= available_bytes)
		return PSD_OK;
	return psd_error_set(
		err, PSD_EINVAL, (struct psd_place){made->costed->scenario->path, 0, 0},
		"its processes take at least %s of memory, this machine has %s left: choose fewer --nodes%s",
		psd_units_write_bytes(least_bytes, least), psd_units_write_bytes(available_bytes, available),
		replay ? "" : " or a smaller batch_per_worker, or machines of your own with --hosts");
}
