/* Answers to questions about a scenario: a sentence for people, and the same numbers for scripts. */
#ifndef PSD_SIM_ANSWER_H
#define PSD_SIM_ANSWER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "sim/output/json.h"
#include "sim/output/limit.h"

/* Number of an answer. Strings are constants or belong to the scenario. */
struct psd_answer_value {
	const char *name, *unit;
	double number;		/* NAN: there is none, which JSON shows as null */
	const char *system;	/* name of the system that goes with the number; NULL: none */
	struct psd_limit limit; /* resource that bounds the system there */
	unsigned nodes;		/* number of nodes for which the number holds; 0: it does not depend on nodes */
	/* bandwidth for which the number holds, bits per second; 0: it depends on no bandwidth */
	double bandwidth_bps;
	double samples_per_sec; /* throughput at the number, samples per second; 0: none is given */
	bool is_beyond;		/* the search ended at the number; the true number lies beyond it */
};

struct psd_answer {
	const char *question; /* name of the question */
	const char *system;   /* name of the system; NULL: the answer is about no single system */
	struct psd_text sentence;
	struct psd_answer_value *values;
	uint32_t n_values, room;
};

/* A list of all zeros is empty. psd_answers_release() releases it. */
struct psd_answers {
	struct psd_answer *all;
	uint32_t n, room;
	bool is_out_of_memory;
	struct psd_answer spare; /* answer that takes the words if memory for another one runs out */
};

/* Appends an empty answer and returns it, valid until the next call. The caller adds words to its sentence. */
struct psd_answer *psd_answers_add(struct psd_answers *answers, const char *question, const char *system);
/* Appends a copy of the value to the answer. */
void psd_answer_add_value(struct psd_answers *answers, struct psd_answer *answer, struct psd_answer_value value);
/* Removes the last answer. */
void psd_answers_drop(struct psd_answers *answers);
void psd_answers_release(struct psd_answers *answers);

/* Append a quantity for people: "10 Gbit/s", "1 node", "12.5 h", "40 s". */
void psd_answer_add_rate(struct psd_text *text, double bits_per_sec);
void psd_answer_add_nodes(struct psd_text *text, unsigned nodes);
void psd_answer_add_time(struct psd_text *text, double sec);
/* Appends a number with four significant digits, and all digits before the decimal point. */
void psd_answer_add_number(struct psd_text *text, double number);

/* Writes the title, unless it is NULL, and the sentences of all answers, in lines of at most 80 characters.
 * PSD_ENOMEM. */
enum psd_status psd_answers_write_text(FILE *out, const char *title, const struct psd_answers *answers,
				       struct psd_error *err) PSD_MUST_CHECK;
/* Writes an object with the title and a row for each answer, as an element of the array that is open in `json`.
 * PSD_ENOMEM. */
enum psd_status psd_answers_write_json(struct psd_json *json, const char *title, const struct psd_answers *answers,
				       struct psd_error *err) PSD_MUST_CHECK;

#endif
