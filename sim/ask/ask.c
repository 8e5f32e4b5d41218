/* The table of questions, in the order of their answers. */
#include "sim/ask/ask.h"

#include <string.h>

#include "engine/base/spelling.h"

/* Sizes of clusters of which one must fit a system that the question is about. */
enum fitting { FITS_LARGEST, FITS_ANY, NEED_NOT_FIT };

static const struct question {
	const char *name;
	psd_question_fn answer;
	bool is_short; /* the answer also stands below a table of results */
	enum fitting fitting;
} questions[] = {
	{"efficiency", psd_ask_efficiency, true, FITS_ANY},
	{"knee", psd_ask_knee, false, FITS_ANY},
	{"bandwidth", psd_ask_bandwidth, false, FITS_LARGEST},
	{"bucket", psd_ask_bucket, true, FITS_LARGEST},
	{"best", psd_ask_best, true, FITS_LARGEST},
	{"break-even", psd_ask_break_even, false, FITS_LARGEST},
	{"hours", psd_ask_hours, false, FITS_ANY},
	{"clusters", psd_ask_cluster, true, FITS_ANY},
	{"memory", psd_ask_memory, true, NEED_NOT_FIT},
	{"failures", psd_ask_failures, true, FITS_LARGEST},
	{"runs", psd_ask_runs, true, FITS_ANY},
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

static void add_comparison(struct psd_ask *ask, struct psd_answers *answers)
{
	struct psd_text text = {.bytes = NULL};

	if (ask->n_systems > 1)
		psd_ask_add_comparison(ask, &text);
	for (const char *line = text.bytes; line && *line; line = strchr(line, '\n') + 1)
		psd_text_add(&psd_answers_add(answers, "notes", NULL)->sentence, "%.*s", (int)strcspn(line, "\n"),
			     line);
	answers->is_out_of_memory = answers->is_out_of_memory || text.is_out_of_memory;
	psd_text_release(&text);
}

static void add_simulations(const struct psd_ask *ask, struct psd_text *text)
{
	psd_text_add(text, "Estimates searched, and %u simulation%s (%s) confirmed.", ask->n_simulated,
		     psd_text_plural(ask->n_simulated), psd_sim_executor(ask->scenario, false));
	if (ask->n_too_large > 0)
		psd_text_add(text,
			     " %u more would need more events than `most_events`: answers have estimates instead.",
			     ask->n_too_large);
	if (ask->has_searched_rates)
		psd_text_add(text, " Bandwidths are found to 1 %%.");
	if (ask->has_searched_rates && ask->has_disturbances)
		psd_text_add(text, " Break-evens closer than %s %% may be missed.",
			     ask->has_coarse_turns ? "40" : "10");
}

/* Says which answers are left out, and by which rules the others were made if they are made of predictions. */
static void add_notes(struct psd_ask *ask, struct psd_answers *answers, const struct psd_text *left_out)
{
	struct psd_text *efficiency;

	if (left_out->length > 0)
		psd_text_add(&psd_answers_add(answers, "notes", NULL)->sentence, "%s.", left_out->bytes);
	if (ask->n_entries == 0)
		return;
	add_comparison(ask, answers);
	efficiency = &psd_answers_add(answers, "notes", NULL)->sentence;
	psd_text_add(efficiency, "Efficiency: samples/s divided by those of as many workers that only compute.");
	struct psd_answer *made = psd_answers_add(answers, "notes", NULL);

	if (ask->settings.is_estimate)
		psd_text_add(&made->sentence, "All answers are estimates; without --estimate, simulations confirm "
					      "them.");
	else
		add_simulations(ask, &made->sentence);
	psd_answer_add_value(
		answers, made,
		(struct psd_answer_value){.name = "simulations", .unit = "count", .number = ask->n_simulated});
}

static bool is_candidate(struct psd_ask *ask, unsigned system, enum fitting fitting)
{
	unsigned i = ask->n_sizes;

	if (fitting == NEED_NOT_FIT)
		return true;
	while (i > 0 && !psd_ask_fits(ask, system, ask->sizes[i - 1]))
		i = fitting == FITS_ANY ? i - 1 : 0;
	return i > 0;
}

static void find_candidates(struct psd_ask *ask, enum fitting fitting)
{
	ask->n_candidates = 0;
	for (unsigned s = ask->first_system; s < ask->first_system + ask->n_systems; s++)
		if (is_candidate(ask, s, fitting))
			ask->candidates[ask->n_candidates++] = s;
}

/* Texts about questions without an answer, for the notes. */
struct unanswered {
	struct psd_text left_out; /* questions with the reason */
	struct psd_text misfits;  /* questions for which no system fits */
};

/* Answers the question of the row ask->n_answered. Refuses a scenario that lacks what the only question needs. Others
 * are left out, and *unanswered names them. */
static void answer_next(struct psd_ask *ask, struct psd_answers *answers, struct unanswered *unanswered)
{
	const struct question *question = &questions[ask->n_answered];
	struct psd_text *left_out = &unanswered->left_out;
	const uint32_t n_before = answers->n;

	ask->question = question->name;
	find_candidates(ask, question->fitting);
	const bool none_fits = ask->n_candidates == 0;
	if (none_fits) /* without predictions, but a key may be missing as well */
		find_candidates(ask, NEED_NOT_FIT);
	const char *lacked = question->answer(ask, answers);

	while (none_fits && answers->n > n_before)
		psd_answers_drop(answers);
	if (none_fits && !lacked) {
		psd_text_add(&unanswered->misfits, "%s%s", unanswered->misfits.length > 0 ? ", " : "", question->name);
		return;
	}
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
	struct unanswered unanswered = {.left_out = {.bytes = NULL}};
	unsigned only = N_QUESTIONS;

	*answers = (struct psd_answers){.all = NULL};
	*signal_number = 0;
	PSD_TRY(find_question(settings->question, &only, err));
	PSD_TRY(psd_ask_open(&ask, settings, err));
	psd_progress_start(&ask.progress, N_QUESTIONS, settings->has_progress);
	for (; ask.n_answered < N_QUESTIONS && !ask.status; ask.n_answered++) {
		const struct question *question = &questions[ask.n_answered];

		if ((question->is_short || !settings->is_short) && (only == N_QUESTIONS || only == ask.n_answered))
			answer_next(&ask, answers, &unanswered);
	}
	psd_progress_end(&ask.progress);
	psd_ask_add_misfits(&ask, answers, &unanswered.misfits);
	if (settings->is_short)
		add_short_notes(answers);
	else
		add_notes(&ask, answers, &unanswered.left_out);
	answers->is_out_of_memory = answers->is_out_of_memory || unanswered.left_out.is_out_of_memory ||
				    unanswered.misfits.is_out_of_memory;
	psd_text_release(&unanswered.left_out);
	psd_text_release(&unanswered.misfits);
	*signal_number = ask.signal_number;
	psd_ask_close(&ask);
	if (ask.status)
		psd_answers_release(answers);
	return ask.status;
}
