/* Files count by their contents: small ones as a whole, large data by samples of their bytes. */
#include "real/keep/agreed_terms.h"

#include <inttypes.h>
#include <string.h>

#include "engine/base/hash.h"
#include "engine/model/layer.h"
#include "engine/scenario/scenario_agree.h"
#include "real/data/data.h"
#include "real/data/mapping.h"
#include "real/keep/checkpoint.h"
#include "real/keep/host.h"

struct contents {
	const struct psd_mapping *file;
	uint64_t hash;
};

static enum psd_status hash_contents(void *context, struct psd_error *err)
{
	struct contents *contents = context;

	(void)err;
	contents->hash = psd_hash_bytes(PSD_HASH_START, contents->file->bytes, contents->file->n_bytes);
	return PSD_OK;
}

static enum psd_status add_file(struct psd_text *text, const char *path, struct psd_error *err)
{
	struct psd_mapping file;
	struct contents contents = {.file = &file};

	PSD_TRY(psd_mapping_open(&file, NULL, path, err));
	const enum psd_status status = psd_mapping_guard(&file, 1, hash_contents, &contents, err);
	psd_text_add(text, "contents %016" PRIx64, contents.hash);
	psd_mapping_close(&file);
	return status;
}

static enum psd_status add_data(struct psd_text *text, const struct psd_case *made, const struct psd_train *train,
				struct psd_error *err)
{
	const struct psd_data_options options = psd_data_options_of(&made->costed->graph, train);
	struct psd_data *data;
	uint64_t hash;

	PSD_TRY(psd_data_open(&data, &options, err));
	const enum psd_status status = psd_data_hash(data, &hash, err);
	if (!status)
		psd_text_add(text, "%" PRIu64 " samples, contents %016" PRIx64,
			     psd_data_samples(data, PSD_DATA_TRAINING), hash);
	psd_data_close(data);
	return status;
}

/* Hosts compute the split of samples each for itself, by costs that they may read from their own files, or by seconds
 * that all have measured and told each other. */
static void add_groups(struct psd_text *text, const struct psd_case *made)
{
	unsigned node = 0, worker = 0;

	psd_text_add(text, "cluster.groups: %s", made->kinds.n > 0 ? "" : "-");
	for (unsigned k = 0; k < made->kinds.n; k++) {
		const struct psd_kind_of_nodes *nodes = &made->kinds.nodes[k];

		psd_text_add(text, "%snodes %u-%u: workers %u-%u, batch %" PRIu32, k > 0 ? "; " : "", node,
			     nodes->end_node - 1, worker, nodes->end_worker - 1, made->kinds.plan[k].batch);
		node = nodes->end_node;
		worker = nodes->end_worker;
	}
	psd_text_add(text, "\n");
}

enum psd_status psd_terms_add(struct psd_text *text, const struct psd_case *made, const struct psd_train *train,
			      uint32_t n_iterations, struct psd_error *err)
{
	const struct psd_scenario *scenario = made->costed->scenario;
	struct psd_text graph = {.bytes = NULL}, profile = {.bytes = NULL}, data = {.bytes = NULL};
	struct psd_text start = {.bytes = NULL}, iterations = {.bytes = NULL};
	enum psd_status status = add_file(&graph, scenario->graph_path, err);

	if (!status && scenario->profile_path)
		status = add_file(&profile, scenario->profile_path, err);
	if (!status && train->data.path)
		status = add_data(&data, made, train, err);
	if (!status && train->start_path)
		status = add_file(&start, train->start_path, err);
	psd_text_add(&iterations, "%" PRIu32, n_iterations);
	if (!status) {
		const struct psd_agreed_value instead[] = {
			{"model.graph", graph.bytes},		{"compute.profile", profile.bytes},
			{"train.data.path", data.bytes},	{"train.start", start.bytes},
			{"train.iterations", iterations.bytes},
		};

		psd_scenario_add_agreed(text, scenario, made->system, instead, sizeof(instead) / sizeof(instead[0]));
	}
	if (!status)
		add_groups(text, made);
	if (!status && (text->is_out_of_memory || graph.is_out_of_memory || profile.is_out_of_memory ||
			data.is_out_of_memory || start.is_out_of_memory || iterations.is_out_of_memory))
		status = psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
	psd_text_release(&graph);
	psd_text_release(&profile);
	psd_text_release(&data);
	psd_text_release(&start);
	psd_text_release(&iterations);
	return status;
}

void psd_terms_add_run(struct psd_text *text, const struct psd_host *host)
{
	const struct psd_worker_options *options = host->options;

	psd_text_add(text, "--resume, iterations that are complete: %" PRIu32 "\n", options->first_iteration);
	psd_text_add(text, "--resume, run of the checkpoint: %016" PRIx64 "\n", host->saved_run_hash);
	if (options->from_hosts > 0)
		psd_text_add(text, "--resume, of another cluster's hosts: %u\n", options->from_hosts);
	else
		psd_text_add(text, "--resume, of another cluster's hosts: none\n");
	if (options->checkpoints && options->checkpoints->every_iterations > 0)
		psd_text_add(text, "--save, iterations between checkpoints: %" PRIu32 "\n",
			     options->checkpoints->every_iterations);
	else
		psd_text_add(text, "--save, iterations between checkpoints: none\n");
	psd_text_add(text, "--restarts: %" PRIu32 "\n", options->n_restarts);
	psd_text_add(text, "--stall: %.9g s\n", options->stall_sec);
}

static uint64_t hash_graph(const struct psd_graph *graph, uint64_t hash)
{
	for (unsigned l = 0; l < graph->n_layers; l++)
		hash = psd_layer_hash(&graph->layers[l], hash);
	for (unsigned t = 0; t < graph->n_tensors; t++)
		hash = psd_hash_number(hash, graph->tensors[t].elements);
	return hash;
}

uint64_t psd_terms_hash_model(const struct psd_graph *graph)
{
	return hash_graph(graph, PSD_HASH_START);
}

void psd_terms_add_program(struct psd_text *text, const struct psd_graph *graph, const struct psd_program *program)
{
	uint64_t hash = hash_graph(graph, psd_hash_number(PSD_HASH_START, program->n_ops));

	for (uint32_t i = 0; i < program->n_ops; i++) {
		hash = psd_hash_number(psd_hash_number(hash, (uint64_t)program->ops[i].kind),
				       (uint64_t)program->ops[i].item);
		hash = psd_hash_number(hash, (uint64_t)program->ops[i].turn);
	}
	if (program->plan->compress) { /* tells what residuals and velocities belong to; operations do not */
		hash = psd_hash_bytes(hash, program->plan->compression->name, strlen(program->plan->compression->name));
		hash = psd_hash_number(hash, program->plan->block.elements);
		hash = psd_hash_number(hash, (uint64_t)program->plan->compress->momentum);
	}
	if (program->plan->sparse) /* choices are of chunks of this size */
		hash = psd_hash_number(psd_hash_bytes(hash, "chunks", strlen("chunks")),
				       program->plan->sparse->chunk_elements);
	if (program->plan->lag) /* this many sums are in a checkpoint */
		hash = psd_hash_number(psd_hash_bytes(hash, "late", strlen("late")), program->plan->lag);
	if (psd_plan_sends_updates(program->plan)) /* choices for this many iterations are in a checkpoint */
		hash = psd_hash_number(psd_hash_bytes(hash, "choices", strlen("choices")), program->plan->staleness);
	if (program->plan->outer && program->plan->outer->momentum > 0.0) /* which a checkpoint has */
		hash = psd_hash_bytes(hash, "outer", strlen("outer"));
	if (psd_plan_streams(program->plan))
		hash = psd_hash_number(psd_hash_bytes(hash, "fragments", strlen("fragments")),
				       psd_plan_fragments(program->plan));
	if (program->plan->low_rank)
		hash = psd_hash_number(psd_hash_bytes(hash, "low rank", strlen("low rank")), program->plan->low_rank);
	if (program->plan->is_adaptive) /* moments depend on the mean over workers */
		hash = psd_hash_number(hash, 1);
	psd_text_add(text, "program: %016" PRIx64 "\n", hash);
}
