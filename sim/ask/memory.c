/* Question about memory: the bytes of a worker, by what they are for, and whether they fit its device. */
#include "engine/base/units.h"
#include "engine/program/footprint.h"
#include "sim/ask/ask.h"

/* Plans the system on the largest cluster. False: it does not run there. */
static bool count(struct psd_ask *ask, unsigned system, struct psd_footprint *footprint)
{
	const struct psd_scenario *scenario = ask->scenario;
	struct psd_point point = psd_scenario_point(scenario, psd_scenario_points(scenario) - 1);
	struct psd_error err;
	struct psd_case made;

	if (psd_case_make(&made, ask->settings.costed, &scenario->systems[system], point, &err))
		return false;
	*footprint = psd_footprint_make(&made.program,
					psd_scenario_workload(scenario, &scenario->systems[system]).batch_per_worker);
	psd_case_release(&made);
	return true;
}

/* The largest batch with which a worker fits; 0: none does. */
static uint64_t fitting_batch(const struct psd_footprint *footprint, uint64_t batch, uint64_t memory_bytes)
{
	const uint64_t fixed_bytes = psd_footprint_bytes(footprint) - footprint->activations_bytes;

	if (fixed_bytes > memory_bytes || footprint->activations_bytes < batch)
		return 0;
	return (memory_bytes - fixed_bytes) / (footprint->activations_bytes / batch);
}

static void add_part(struct psd_answers *answers, struct psd_answer *answer, const char *name, uint64_t bytes)
{
	char text[PSD_UNITS_TEXT_MAX];

	psd_text_add(&answer->sentence, "%s %s of %s", answer->n_values > 1 ? "," : "",
		     psd_units_write_bytes(bytes, text), name);
	psd_answer_add_value(answers, answer,
			     (struct psd_answer_value){.name = name, .unit = "bytes", .number = (double)bytes});
}

static void add_memory(struct psd_ask *ask, struct psd_answers *answers, unsigned system)
{
	const uint64_t memory_bytes = ask->scenario->job.memory_bytes;
	const uint64_t batch = psd_scenario_workload(ask->scenario, &ask->scenario->systems[system]).batch_per_worker;
	char text[PSD_UNITS_TEXT_MAX];
	struct psd_footprint footprint;
	struct psd_answer *answer;

	if (!count(ask, system, &footprint))
		return;
	const uint64_t bytes = psd_footprint_bytes(&footprint);
	const uint64_t fitting = fitting_batch(&footprint, batch, memory_bytes);

	answer = psd_answers_add(answers, "memory", psd_ask_system_name(ask, system));
	psd_text_add(&answer->sentence, "A worker of %s needs at least %s:", answer->system,
		     psd_units_write_bytes(bytes, text));
	psd_answer_add_value(answers, answer,
			     (struct psd_answer_value){.name = "memory", .unit = "bytes", .number = (double)bytes});
	add_part(answers, answer, "parameters", footprint.parameters_bytes);
	add_part(answers, answer, "gradients", footprint.gradients_bytes);
	add_part(answers, answer, "optimiser", footprint.optimiser_bytes);
	add_part(answers, answer, "buffers", footprint.buffers_bytes);
	add_part(answers, answer, "activations", footprint.activations_bytes);
	psd_text_add(&answer->sentence, ". That %s %s", bytes <= memory_bytes ? "fits" : "does not fit",
		     psd_units_write_bytes(memory_bytes, text));
	if (fitting > 0)
		psd_text_add(&answer->sentence, ", %s batches of up to %llu do", bytes <= memory_bytes ? "and" : "but",
			     (unsigned long long)fitting);
	else
		psd_text_add(&answer->sentence, ", at any batch");
	psd_text_add(&answer->sentence, ".");
	psd_answer_add_value(
		answers, answer,
		(struct psd_answer_value){.name = "fitting batch", .unit = "samples", .number = (double)fitting});
	psd_answer_add_value(
		answers, answer,
		(struct psd_answer_value){.name = "fits", .unit = "flag", .number = bytes <= memory_bytes});
}

/* Adds one sentence if all systems fit. */
static bool add_all_fit(struct psd_ask *ask, struct psd_answers *answers)
{
	const uint64_t memory_bytes = ask->scenario->job.memory_bytes;
	struct psd_footprint footprint;
	char text[PSD_UNITS_TEXT_MAX];
	unsigned largest = ask->first_system;
	struct psd_answer *answer;
	uint64_t most = 0;

	for (unsigned s = ask->first_system; s < ask->first_system + ask->n_systems; s++) {
		if (!count(ask, s, &footprint))
			continue;
		largest = psd_footprint_bytes(&footprint) > most ? s : largest;
		most = psd_footprint_bytes(&footprint) > most ? psd_footprint_bytes(&footprint) : most;
	}
	if (most == 0 || most > memory_bytes)
		return false;
	answer = psd_answers_add(answers, "memory", psd_ask_system_name(ask, largest));
	psd_text_add(&answer->sentence, "Workers of all systems fit ");
	psd_text_add(&answer->sentence, "%s: ", psd_units_write_bytes(memory_bytes, text));
	psd_text_add(&answer->sentence, "that of %s needs most, at least %s.", answer->system,
		     psd_units_write_bytes(most, text));
	psd_answer_add_value(answers, answer,
			     (struct psd_answer_value){.name = "memory", .unit = "bytes", .number = (double)most});
	psd_answer_add_value(answers, answer, (struct psd_answer_value){.name = "fits", .unit = "flag", .number = 1.0});
	return true;
}

void psd_ask_memory(struct psd_ask *ask, struct psd_answers *answers)
{
	if (!ask->scenario->has_job || ask->scenario->job.memory_bytes == 0)
		return;
	if (ask->settings.is_short && add_all_fit(ask, answers))
		return;
	for (unsigned s = 0; s < ask->n_systems && !ask->status; s++)
		add_memory(ask, answers, ask->first_system + s);
	psd_text_add(&psd_answers_add(answers, "memory", NULL)->sentence,
		     "Workspace of libraries, fragments and gradients of activations come on top.");
}
