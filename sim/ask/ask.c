/* The table of questions, in the order of their answers. */
#include "sim/ask/ask.h"

#include "engine/base/spelling.h"

static const struct question {
	const char *name;
	psd_question_fn answer;
	bool is_short; /* the answer also stands below a table of results */
} questions[] = {
	{"efficiency", psd_ask_efficiency, true},
	{"knee", psd_ask_knee, false},
	{"bandwidth", psd_ask_bandwidth, false},
	{"bucket", psd_ask_bucket, true},
	{"best", psd_ask_best, true},
	{"break-even", psd_ask_break_even, false},
	{"hours", psd_ask_hours, false},
	{"clusters", psd_ask_cluster, true},
	{"memory", psd_ask_memory, true},
	{"failures", psd_ask_failures, true},
	{"runs", psd_ask_runs, true},
};

enum { N_QUESTIONS = sizeof(questions) / sizeof(questions[0]) };

/* Sets *index to the number of the question; leaves it for NULL. */
static enum psd_status find_question(const char *name, unsigned *index, struct psd_error *err)
{
	const char *names[N_QUESTIONS + 1] = {NULL};
	struct psd_text text = {.bytes = NULL};
	enum psd_status status;

	for (unsigned q = 0; q < N_QUESTIONS; q++) {
		names[q] = questions[q].name;
		psd_text_add(&text, "%s%s", q ? ", " : "", names[q]);
	}
	if (!name || psd_spelling_find(name, names, index))
		status = PSD_OK;
	else
		status = psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "'--question' is '%.80s', must be one of: %s",
				       name, text.bytes ? text.bytes : "");
	psd_text_release(&text);
	return status;
}

static void add_short_notes(struct psd_answers *answers)
{
	struct psd_text *text = &psd_answers_add(answers, "notes", NULL)->sentence;
	unsigned n = 0;

	psd_text_add(text, "Efficiency: samples/s divided by those of as many workers that only compute. `psd-sim ask` "
			   "also answers:");
	for (unsigned q = 0; q < N_QUESTIONS; q++)
		if (!questions[q].is_short)
			psd_text_add(text, "%s %s", n++ ? "," : "", questions[q].name);
	psd_text_add(text, ".");
}

/* Says which answers are left out, and by which rules the others were made if they are made of predictions. */
static void add_notes(const struct psd_ask *ask, struct psd_answers *answers, const struct psd_text *left_out)
{
	struct psd_text *efficiency;

	if (left_out->length > 0)
		psd_text_add(&psd_answers_add(answers, "notes", NULL)->sentence, "%s.", left_out->bytes);
	if (ask->n_entries == 0)
		return;
	efficiency = &psd_answers_add(answers, "notes", NULL)->sentence;
	psd_text_add(efficiency, "Efficiency: samples/s divided by those of as many workers that only compute.");
	struct psd_answer *made = psd_answers_add(answers, "notes", NULL);
	const bool has_searched_turns = ask->has_searched_rates && ask->has_disturbances;

	if (ask->settings.is_estimate)
		psd_text_add(&made->sentence, "All answers are estimates; without --estimate, simulations confirm "
					      "them.");
	else
		psd_text_add(&made->sentence, "Estimates searched, and %u simulation%s (%s) confirmed.%s%s",
			     ask->n_simulated, psd_text_plural(ask->n_simulated),
			     psd_sim_executor(ask->scenario, false),
			     ask->has_searched_rates ? " Bandwidths are found to 1 %." : "",
			     !has_searched_turns     ? ""
			     : ask->has_coarse_turns ? " Break-evens closer than 40 % may be missed."
						     : " Break-evens closer than 10 % may be missed.");
	psd_answer_add_value(
		answers, made,
		(struct psd_answer_value){.name = "simulations", .unit = "count", .number = ask->n_simulated});
}

/* Answers the question of the row ask->n_answered. Refuses a scenario that lacks what the only question needs. Others
 * are left out, and *left_out names them with the reason. */
static void answer_next(struct psd_ask *ask, struct psd_answers *answers, struct psd_text *left_out)
{
	const struct question *question = &questions[ask->n_answered];
	const uint32_t n_before = answers->n;

	ask->question = question->name;
	const char *lacked = question->answer(ask, answers);

	if (lacked && !ask->status && ask->settings.question)
		ask->status = psd_error_set(ask->err, PSD_EINVAL, (struct psd_place){ask->scenario->path, 0, 0},
					    "'--question' is '%s', which needs %s", question->name, lacked);
	if (ask->status || answers->n > n_before)
		return;
	psd_text_add(left_out, "%s %s (%s%s)", left_out->length > 0 ? "," : "Left out:", question->name,
		     lacked ? "needs " : "", lacked ? lacked : "predictions give no answer");
}

enum psd_status psd_ask_all(const struct psd_ask_settings *settings, struct psd_answers *answers, int *signal_number,
			    struct psd_error *err)
{
	struct psd_ask ask;
	struct psd_text left_out = {.bytes = NULL};
	unsigned only = N_QUESTIONS;

	*answers = (struct psd_answers){.all = NULL};
	*signal_number = 0;
	PSD_TRY(find_question(settings->question, &only, err));
	PSD_TRY(psd_ask_open(&ask, settings, err));
	psd_progress_start(&ask.progress, N_QUESTIONS, settings->has_progress);
	for (; ask.n_answered < N_QUESTIONS && !ask.status; ask.n_answered++) {
		const struct question *question = &questions[ask.n_answered];

		if ((question->is_short || !settings->is_short) && (only == N_QUESTIONS || only == ask.n_answered))
			answer_next(&ask, answers, &left_out);
	}
	psd_progress_end(&ask.progress);
	if (settings->is_short)
		add_short_notes(answers);
	else
		add_notes(&ask, answers, &left_out);
	answers->is_out_of_memory = answers->is_out_of_memory || left_out.is_out_of_memory;
	psd_text_release(&left_out);
	*signal_number = ask.signal_number;
	psd_ask_close(&ask);
	if (ask.status)
		psd_answers_release(answers);
	return ask.status;
}
