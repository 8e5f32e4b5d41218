/* The section `job`: length, prices, bounds and failures of the whole training. */
#include <stddef.h>

#include "engine/document/value.h"
#include "engine/scenario/job.h"
#include "engine/scenario/scenario_keys.h"

#define LONGEST_SEC 1e9 /* 31 years */
#define LEAST_MONEY 0.0001
#define JOB(text, kind, member)                                                                                        \
	.name = (text), .type = PSD_KEY_##kind, .offset = offsetof(struct psd_training_job, member)

static const struct psd_key keys[] = {
	{JOB("samples", COUNT, samples), .lowest = 1, .highest = 1e15,
	 .help = "number of samples in an epoch. Default: hours and costs are not answered"},
	{JOB("epochs", NUMBER, epochs), .lowest = 0.001, .highest = 1e6, .fallback = "1",
	 .help = "number of epochs of the training"},
	{JOB("price", NUMBER, price), .lowest = LEAST_MONEY, .highest = 1e9, .per = "per worker hour",
	 .help = "money for one worker in one hour, in any currency. Default: costs are not answered"},
	{JOB("within", SECONDS, within_sec), .highest = LONGEST_SEC,
	 .help = "time in which the training must end, such as 10h. Default: no bound"},
	{JOB("budget", NUMBER, budget), .lowest = LEAST_MONEY, .highest = 1e15,
	 .help = "most money that the training may cost. Needs `job.price`. Default: no bound"},
	{JOB("efficiency", RATIO, efficiency_ratio), .lowest = 0.01, .highest = 1, .fallback = "80%",
	 .help = "efficiency that a cluster must keep, for answers about numbers of nodes and bandwidths. Efficiency: "
		 "samples per second of N workers, divided by N times those of a worker that only computes"},
	{JOB("memory", BYTES, memory_bytes),
	 .help = "memory of a worker's device. If it is too small, the answer also has the memory with sharded "
		 "parameters (ZeRO, FSDP). Default: memory is not answered"},
	{JOB("mtbf", SECONDS, mtbf_sec), .per = "per node", .highest = LONGEST_SEC,
	 .help = "mean time between failures of one node, such as 24h. Default: failures are not answered"},
	{JOB("checkpoint", SECONDS, checkpoint_sec),
	 .help = "time in which training stands still while a checkpoint is written. Needed with `job.mtbf`"},
	{JOB("restart", SECONDS, restart_sec), .fallback = "0s",
	 .help = "time from a failure until training continues from the last checkpoint"},
	{.name = NULL},
};

/* `needed` must stand beside `name`. */
static enum psd_status check_beside(const struct psd_schema_reader *reader, const struct psd_node *mapping,
				    const char *name, const char *needed)
{
	const struct psd_node *node = psd_node_child(mapping, name);

	if (!node || psd_node_child(mapping, needed))
		return PSD_OK;
	return psd_error_set(reader->err, PSD_EINVAL, node->key_at, "'%s' needs '%s' beside it", name, needed);
}

/* A time of 0 would count as absent. */
static enum psd_status check_time(const struct psd_schema_reader *reader, const struct psd_node *mapping,
				  const char *name, double sec)
{
	const struct psd_node *node = psd_node_child(mapping, name);

	if (!node || sec > 0.0)
		return PSD_OK;
	return psd_error_set(reader->err, PSD_EINVAL, node->at, "'%s' is '%.40s', must be more than 0s", name,
			     node->text);
}

static enum psd_status check_job(const struct psd_schema_reader *reader, void *base, const struct psd_node *mapping)
{
	const struct psd_training_job *job = base;
	const struct psd_node *checkpoint = psd_node_child(mapping, "checkpoint");

	PSD_TRY(check_beside(reader, mapping, "budget", "price"));
	PSD_TRY(check_beside(reader, mapping, "budget", "samples"));
	PSD_TRY(check_beside(reader, mapping, "within", "samples"));
	PSD_TRY(check_beside(reader, mapping, "mtbf", "checkpoint"));
	PSD_TRY(check_time(reader, mapping, "within", job->within_sec));
	PSD_TRY(check_time(reader, mapping, "mtbf", job->mtbf_sec));
	if (job->mtbf_sec > 0.0 && job->checkpoint_sec <= 0.0)
		return psd_error_set(reader->err, PSD_EINVAL, checkpoint->at,
				     "'checkpoint' is '%.40s', must be more than 0s with 'mtbf'", checkpoint->text);
	return PSD_OK;
}

const struct psd_section psd_scenario_job = {.tables = {keys}, .check = check_job};
