/* Question about buckets: the size of the sweep with which each system is fastest on the largest cluster. */
#include "engine/base/units.h"
#include "sim/ask/ask.h"

enum { MIB = 1 << 20 };

static bool takes_size(const struct psd_system *system)
{
	return system->fuse_bytes > 0;
}

static bool any_takes_size(const struct psd_ask *ask)
{
	bool any = false;

	for (unsigned c = 0; c < ask->n_candidates; c++)
		any = any || takes_size(&ask->scenario->systems[ask->candidates[c]]);
	return any;
}

/* Finds the fastest and the slowest size, by simulations. Returns the number of sizes that have a prediction. */
static unsigned find_sizes(struct psd_ask *ask, unsigned system, double bandwidth_bps, struct psd_answer_value *best,
			   struct psd_answer_value *worst)
{
	const uint64_t before_bytes = ask->fuse_bytes;
	unsigned n = 0;

	for (unsigned f = 0; f < ask->scenario->n_sweep_fuses && !ask->status; f++) {
		ask->fuse_bytes = ask->scenario->sweep_fuse_bytes[f];
		const double rate =
			psd_ask_samples_per_sec(ask, system, ask->most_nodes, bandwidth_bps, PSD_ASK_CONFIRM);
		const struct psd_answer_value value = {.name = "bucket",
						       .unit = "bytes",
						       .number = (double)ask->fuse_bytes,
						       .samples_per_sec = rate,
						       .nodes = ask->most_nodes,
						       .bandwidth_bps = bandwidth_bps};

		if (rate > best->samples_per_sec)
			*best = value;
		if (rate > 0.0 && (worst->samples_per_sec <= 0.0 || rate < worst->samples_per_sec))
			*worst = value;
		n += rate > 0.0;
	}
	ask->fuse_bytes = before_bytes;
	return n;
}

static void add_size(struct psd_text *text, const struct psd_answer_value *value)
{
	const uint64_t bytes = (uint64_t)value->number;
	char size[PSD_UNITS_TEXT_MAX];

	if (bytes % MIB == 0) /* as people write sizes of buckets */
		psd_text_add(text, "%llu MiB", (unsigned long long)(bytes / MIB));
	else
		psd_text_add(text, "%s", psd_units_write_bytes(bytes, size));
	psd_text_add(text, " (");
	psd_answer_add_number(text, value->samples_per_sec);
	psd_text_add(text, " samples/s)");
}

static void add_bucket(struct psd_ask *ask, struct psd_answers *answers, unsigned system, double bandwidth_bps)
{
	struct psd_answer_value best = {.name = "bucket"}, worst = best;

	const unsigned n = find_sizes(ask, system, bandwidth_bps, &best, &worst);

	if (n == 0)
		return;
	struct psd_answer *answer = psd_answers_add(answers, "bucket", psd_ask_system_name(ask, system));
	struct psd_text *text = &answer->sentence;
	psd_text_add(text, "%s is fastest with buckets of ", answer->system);
	add_size(text, &best);
	psd_text_add(text, " on ");
	psd_answer_add_nodes(text, ask->most_nodes);
	psd_text_add(text, " at ");
	psd_ask_add_rate(text, ask, bandwidth_bps);
	psd_text_add(text, ", and slowest with ");
	add_size(text, &worst);
	psd_text_add(text, ", of the %u sizes of the sweep%s.", n,
		     n < ask->scenario->n_sweep_fuses ? " that fit and run" : "");
	psd_answer_add_value(answers, answer, best);
	worst.name = "slowest bucket";
	psd_answer_add_value(answers, answer, worst);
}

/* Other questions take the first size of the sweep. */
const char *psd_ask_bucket(struct psd_ask *ask, struct psd_answers *answers)
{
	if (ask->scenario->n_sweep_fuses < 2)
		return "a sweep such as `--sweep fuse=4MiB,25MiB`";
	if (!any_takes_size(ask))
		return "a system with a size in `fuse`";
	for (unsigned b = 0; b < ask->n_bandwidths; b++)
		for (unsigned c = 0; c < ask->n_candidates && !ask->status; c++)
			if (takes_size(&ask->scenario->systems[ask->candidates[c]]))
				add_bucket(ask, answers, ask->candidates[c], ask->bandwidths_bps[b]);
	return NULL;
}
