/* The table of questions, in the order of their answers. */
#include "sim/ask/ask.h"

#include "sim/sweep/sweep.h"

static const psd_question_fn questions[] = {
	psd_ask_efficiency, psd_ask_knee,    psd_ask_bandwidth, psd_ask_best,	  psd_ask_break_even,
	psd_ask_hours,	    psd_ask_cluster, psd_ask_memory,	psd_ask_failures,
};

/* Says by which rules the answers were made. */
static void add_notes(const struct psd_ask *ask, struct psd_answers *answers)
{
	struct psd_text *efficiency = &psd_answers_add(answers, "notes", NULL)->sentence;
	struct psd_answer *made;

	psd_text_add(efficiency, "Efficiency: samples/s divided by those of as many workers that only compute.");
	made = psd_answers_add(answers, "notes", NULL);
	if (ask->settings.is_estimate)
		psd_text_add(&made->sentence, "All answers are estimates; without --estimate, simulations confirm "
					      "them.");
	else
		psd_text_add(&made->sentence,
			     "Estimates searched, and %u simulations (%s) confirmed. Bandwidths are found to 1 %%.",
			     ask->n_simulated, psd_sim_executor(ask->scenario, false));
	psd_answer_add_value(
		answers, made,
		(struct psd_answer_value){.name = "simulations", .unit = "count", .number = ask->n_simulated});
}

enum psd_status psd_ask_all(const struct psd_ask_settings *settings, struct psd_answers *answers, int *signal_number,
			    struct psd_error *err)
{
	struct psd_ask ask;

	*answers = (struct psd_answers){.all = NULL};
	*signal_number = 0;
	PSD_TRY(psd_ask_open(&ask, settings, err));
	for (size_t q = 0; q < sizeof(questions) / sizeof(questions[0]) && !ask.status; q++)
		questions[q](&ask, answers);
	add_notes(&ask, answers);
	*signal_number = ask.signal_number;
	psd_ask_close(&ask);
	if (ask.status)
		psd_answers_release(answers);
	return ask.status;
}
