#include "tests/real/legs.h"

#include <stdio.h>

enum { SEED = 3 };

struct leg legs_before(const char *graph, struct side side, const char *train)
{
	return (struct leg){.graph = graph, .train = train, .side = side, .batch = LEGS_BATCH, .end = LEGS_CUT};
}

struct leg legs_behind(const char *graph, struct side was, const struct training *cut, struct side side,
		       const char *train, uint32_t end)
{
	return (struct leg){
		.graph = graph,
		.train = train,
		.side = side,
		.batch = LEGS_BATCH,
		.first = LEGS_CUT,
		.end = end,
		.first_sample = (uint64_t)LEGS_CUT * LEGS_BATCH * was.workers,
		.from_hosts = psd_layout_hosts(&cut->made.plan.layout),
	};
}

struct training *legs_make(const struct leg *leg, const struct psd_checkpoints *checkpoints)
{
	struct training *training;
	char job[768];

	snprintf(job, sizeof(job), "iterations: %u, %s", leg->end, leg->train);
	training = training_make(leg->graph, leg->side.system, leg->side.workers, leg->side.per_node, leg->batch, SEED,
				 job);
	if (leg->kind) {
		psd_case_release(&training->made);
		psd_costed_model_compute_on(&training->loaded.costed, leg->kind->has_own_memory);
		loaded_case(&training->made, &training->loaded, 0, 0);
		training->options.worker.device = leg->kind;
	}
	training->options.worker.checkpoints = checkpoints;
	training->options.worker.first_iteration = leg->first;
	training->options.worker.first_sample = leg->first_sample;
	training->options.worker.from_hosts = leg->from_hosts;
	return training;
}

struct training *legs_go(const struct leg *leg, const struct psd_checkpoints *checkpoints)
{
	return training_finish(legs_make(leg, checkpoints), leg->side.system);
}
