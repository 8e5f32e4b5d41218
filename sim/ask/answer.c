/* Answers as a list, as lines and as JSON. */
#include "sim/ask/answer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/grow.h"
#include "engine/base/units.h"
#include "engine/base/view.h"
#include "engine/result/result.h"

enum { LINE_WIDTH = 80, INDENT = 2, JSON_DIGITS = 9 };

struct psd_answer *psd_answers_add(struct psd_answers *answers, const char *question, const char *system)
{
	struct psd_answer *grown = psd_grown(answers->all, answers->n, &answers->room, sizeof(*grown));

	if (!grown) {
		answers->is_out_of_memory = true;
		return &answers->spare;
	}
	answers->all = grown;
	grown[answers->n] = (struct psd_answer){.question = question, .system = system};
	return &grown[answers->n++];
}

void psd_answer_add_value(struct psd_answers *answers, struct psd_answer *answer, struct psd_answer_value value)
{
	struct psd_answer_value *grown = psd_grown(answer->values, answer->n_values, &answer->room, sizeof(*grown));

	if (!grown) {
		answers->is_out_of_memory = true;
		return;
	}
	answer->values = grown;
	grown[answer->n_values++] = value;
}

static void release(struct psd_answers *answers, struct psd_answer *answer)
{
	answers->is_out_of_memory = answers->is_out_of_memory || answer->sentence.is_out_of_memory;
	psd_text_release(&answer->sentence);
	free(answer->values);
}

void psd_answers_drop(struct psd_answers *answers)
{
	if (answers->n > 0)
		release(answers, &answers->all[--answers->n]);
}

void psd_answers_release(struct psd_answers *answers)
{
	while (answers->n > 0)
		psd_answers_drop(answers);
	release(answers, &answers->spare);
	free(answers->all);
	*answers = (struct psd_answers){.all = NULL};
}

/* ---- quantities ---- */

void psd_answer_add_rate(struct psd_text *text, double bits_per_sec)
{
	char rate[PSD_UNITS_TEXT_MAX];
	char *bits = strstr(psd_units_write_rate(bits_per_sec, rate), "b/s");

	if (bits)
		*bits = '\0';
	psd_text_add(text, "%s%s", rate, bits ? "bit/s" : "");
}

void psd_answer_add_nodes(struct psd_text *text, unsigned nodes)
{
	psd_text_add(text, "%u node%s", nodes, psd_text_plural(nodes));
}

void psd_answer_add_number(struct psd_text *text, double number)
{
	char digits[PSD_UNITS_TEXT_MAX];

	psd_text_add(text, "%s", psd_units_write_number(number, digits));
}

void psd_answer_add_time(struct psd_text *text, double sec)
{
	static const struct {
		double sec;
		const char *unit;
	} units[] = {{3600.0, "h"}, {60.0, "min"}, {1.0, "s"}};
	const unsigned unit = sec >= 3600.0 ? 0 : sec >= 120.0 ? 1 : 2;
	char shorter[PSD_UNITS_TEXT_MAX];

	if (sec < 0.001)
		psd_text_add(text, "%s", psd_units_write_seconds(sec, shorter));
	else
		psd_text_add(text, "%.*f %s", psd_units_decimals(sec / units[unit].sec, 3, 3), sec / units[unit].sec,
			     units[unit].unit);
}

/* ---- output ---- */

/* A blank before a unit or a percent sign is no place for a line's end. */
static void keep_together(char *sentence)
{
	for (char *at = sentence; (at = strchr(at, ' ')); at++)
		if (at > sentence && strchr("0123456789", at[-1]) && (at[1] == '%' || strchr("GMTkhmsbnu", at[1])))
			*at = '\1';
}

static void add_wrapped(struct psd_text *lines, const struct psd_text *sentence)
{
	struct psd_text words = {.bytes = NULL};
	const size_t begin = lines->length;

	psd_text_add_plain(&words, sentence->bytes ? sentence->bytes : "");
	if (words.bytes) {
		keep_together(words.bytes);
		psd_text_add_wrapped(lines, words.bytes, 0, INDENT, psd_view_width(LINE_WIDTH));
	}
	for (size_t i = begin; i < lines->length; i++)
		if (lines->bytes[i] == '\1')
			lines->bytes[i] = ' ';
	lines->is_out_of_memory = lines->is_out_of_memory || words.is_out_of_memory;
	psd_text_release(&words);
}

static enum psd_status check(const struct psd_answers *answers, struct psd_error *err)
{
	bool is_out_of_memory = answers->is_out_of_memory;

	for (uint32_t i = 0; i < answers->n; i++)
		is_out_of_memory = is_out_of_memory || answers->all[i].sentence.is_out_of_memory;
	return is_out_of_memory ? psd_out_of_memory(err) : PSD_OK;
}

enum psd_status psd_answers_write_text(FILE *out, const char *title, const struct psd_answers *answers,
				       struct psd_error *err)
{
	struct psd_text lines = {.bytes = NULL}, head = {.bytes = NULL};

	psd_text_add(&head, "%s", title ? title : "");
	if (title)
		add_wrapped(&lines, &head);
	for (uint32_t i = 0; i < answers->n; i++) {
		const bool is_new = i == 0 || strcmp(answers->all[i].question, answers->all[i - 1].question) != 0;

		psd_text_add(&lines, "%s", is_new ? "\n" : "");
		add_wrapped(&lines, &answers->all[i].sentence);
	}
	enum psd_status status = check(answers, err);
	if (!status && (lines.is_out_of_memory || head.is_out_of_memory))
		status = psd_out_of_memory(err);
	if (!status)
		fwrite(lines.bytes, 1, lines.length, out);
	psd_text_release(&lines);
	psd_text_release(&head);
	return status;
}

static void write_value(struct psd_json *json, const struct psd_answer_value *value)
{
	psd_json_begin(json, NULL, '{');
	psd_json_string(json, "name", value->name);
	psd_json_string(json, "unit", value->unit);
	psd_json_number(json, "value", value->number, JSON_DIGITS);
	psd_json_flag(json, "is_beyond", true, value->is_beyond);
	if (value->system)
		psd_json_string(json, "system", value->system);
	if (value->nodes > 0)
		psd_json_count(json, "nodes", value->nodes);
	if (value->bandwidth_bps > 0.0)
		psd_json_number(json, "bandwidth_bps", value->bandwidth_bps, JSON_DIGITS);
	if (value->samples_per_sec > 0.0)
		psd_json_number(json, "samples_per_sec", value->samples_per_sec, JSON_DIGITS);
	if (value->limit.kind != PSD_LIMIT_NONE) {
		char limit[PSD_RESULT_LIMIT_MAX];

		psd_limit_write(&value->limit, limit, sizeof(limit));
		psd_json_string(json, "limit", limit);
	}
	psd_json_end(json, '}');
}

static void write_answer(struct psd_json *json, const struct psd_answer *answer)
{
	psd_json_line(json);
	psd_json_begin(json, NULL, '{');
	psd_json_string(json, "question", answer->question);
	psd_json_string(json, "system", answer->system ? answer->system : "");
	psd_json_string(json, "sentence", answer->sentence.bytes ? answer->sentence.bytes : "");
	psd_json_begin(json, "values", '[');
	for (uint32_t v = 0; v < answer->n_values; v++)
		write_value(json, &answer->values[v]);
	psd_json_end(json, ']');
	psd_json_end(json, '}');
}

enum psd_status psd_answers_write_json(struct psd_json *json, const char *title, const struct psd_answers *answers,
				       struct psd_error *err)
{
	PSD_TRY(check(answers, err));
	psd_json_line(json);
	psd_json_begin(json, NULL, '{');
	psd_json_string(json, "scenario", title);
	psd_json_begin(json, "answers", '[');
	for (uint32_t i = 0; i < answers->n; i++)
		write_answer(json, &answers->all[i]);
	psd_json_end(json, ']');
	psd_json_end(json, '}');
	return PSD_OK;
}
