#define _GNU_SOURCE 1 /* folder_run.h */
#include "tests/real/matrix.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/real/folder_run.h"
#include "tests/real/going_on.h"
#include "tests/real/plain_training.h"

enum { FIRST_SCALE = 14, END_SCALES = 30 };

/* Significands of 11 bits (fp16) and 8 (bf16) round a value by this at most. */
#define FP16_ROUNDING_RATIO 0x1p-11
#define BF16_ROUNDING_RATIO 0x1p-8

const struct matrix_subject matrix_maskless = {
	.graph = "../../tests/data/maskless.yaml",
	.batch = 8,
	.seed = 5,
	.iterations = 6,
	.train = ", data: {kind: synthetic, training_samples: 96}",
};
const struct matrix_subject matrix_maskless_shared = {
	.graph = "../../tests/data/maskless.yaml",
	.samples = 24,
	.seed = 5,
	.iterations = 7,
	.train = ", data: {kind: synthetic, training_samples: 96}",
};
const struct matrix_subject matrix_quick = {
	.graph = "cifar10-quick.yaml",
	.samples = 32,
	.iterations = 20,
	.learn = ", optimiser: {momentum: 0.9, weight_decay: 0.004}, learning_rate: {policy: fixed, base: 0.001}",
};
const struct matrix_subject matrix_tested = {
	.graph = "cifar10-quick.yaml",
	.batch = 16,
	.seed = 1,
	.iterations = 100,
	.learn = ", optimiser: {momentum: 0.9}, learning_rate: {policy: fixed, base: 0.003}",
	.is_tested = true,
};
const struct matrix_subject matrix_softmax = {
	.graph = "softmax.yaml",
	.text = PLAIN_SOFTMAX,
	.batch = PLAIN_BATCH,
	.seed = 5,
	.iterations = PLAIN_ITERATIONS,
	.train = ", data: {kind: synthetic, training_samples: 40}",
};

/* ---- runs ---- */

struct training *matrix_make(const struct matrix_subject *subject, const struct matrix_layout *of, uint32_t iterations,
			     const char *learn)
{
	const char *accumulate = strstr(of->system, "accumulate: ");
	const unsigned micro_batches = accumulate ? (unsigned)strtoul(accumulate + 12, NULL, 10) : 1;
	const unsigned batch = subject->samples ? subject->samples / (of->workers * micro_batches) : subject->batch;
	const unsigned seed = subject->seed ? subject->seed : of->workers;
	struct scratch_folder folder;
	struct training *training;
	char job[1024];

	snprintf(job, sizeof(job), "iterations: %u%s%s%s", iterations ? iterations : subject->iterations,
		 subject->train ? subject->train : "",
		 strstr(learn, "learning_rate") || !subject->learn ? "" : subject->learn, learn);
	if (subject->text) {
		folder = scratch_folder_make();
		scratch_folder_write(&folder, subject->graph, subject->text, strlen(subject->text));
	}
	training = training_make(subject->text ? scratch_folder_path(&folder, subject->graph).text : subject->graph,
				 of->system, of->workers, of->workers_per_node, batch, seed, job);
	if (subject->text)
		scratch_folder_remove(&folder);
	training->options.worker.is_tested = subject->is_tested;
	return training;
}

struct training *matrix_train(const struct matrix_subject *subject, const struct matrix_layout *of, uint32_t iterations,
			      const char *learn)
{
	struct training *training = training_finish(matrix_make(subject, of, iterations, learn), of->system);

	training_expect_same_on_all(training, of->system);
	return training;
}

/* Runs in progress: those of one check, and the runs with which other runs of the row are compared. */
static struct kept {
	struct kept *next;
	struct training *training;
	char key[1280]; /* "": a key of one check */
} * all_kept;

static unsigned n_partial;

static const struct training *keep(struct training *training, const char *key)
{
	struct kept *kept = calloc(1, sizeof(*kept));

	cr_assert(kept);
	kept->training = training;
	snprintf(kept->key, sizeof(kept->key), "%s", key);
	kept->next = all_kept;
	all_kept = kept;
	return training;
}

static void release(bool has_key)
{
	for (struct kept **at = &all_kept; *at;) {
		struct kept *kept = *at;

		if (*kept->key && !has_key) {
			at = &kept->next;
			continue;
		}
		*at = kept->next;
		training_free(kept->training);
		free(kept);
	}
}

const struct training *matrix_run_it(const struct matrix_run *run)
{
	struct training *training = matrix_train(run->row->subject, &run->of, run->row->iterations, run->learn);

	n_partial += training->result.n_left_out > 0 && training->result.n_left_out < training->result.n_updates;
	return keep(training, "");
}

static const struct training *train_once(const struct matrix_run *run, const struct matrix_layout *of,
					 uint32_t iterations, const char *learn)
{
	char key[1280];

	snprintf(key, sizeof(key), "%s, %u workers, %u a node, %u iterations%s", of->system, of->workers,
		 of->workers_per_node, iterations, learn);
	for (const struct kept *kept = all_kept; kept; kept = kept->next)
		if (!strcmp(kept->key, key))
			return kept->training;
	return keep(matrix_train(run->row->subject, of, iterations, learn), key);
}

/* The run that this one is compared with; keys: NULL: this one's. */
static const struct training *train_other_by(const struct matrix_run *run, const char *keys)
{
	const struct matrix_row *row = run->row;
	const uint32_t iterations = row->other.iterations ? row->other.iterations : row->iterations;
	struct matrix_layout of = row->other.layout ? *row->other.layout : run->untreated;
	char system[512], learn[640];

	snprintf(system, sizeof(system), "%s%s", of.system, keys ? keys : run->keys);
	snprintf(learn, sizeof(learn), "%s%s", row->other.learn ? row->other.learn : run->learn,
		 row->other.learn ? run->scale : "");
	of.system = system;
	cr_assert(row->other.layout || row->other.iterations || strcmp(system, run->of.system) ||
			  strcmp(learn, run->learn),
		  "no other run");
	return train_once(run, &of, iterations, learn);
}

static const struct training *train_other(const struct matrix_run *run)
{
	return train_other_by(run, run->row->other.keys);
}

static const struct training *train_nothing(const struct matrix_run *run)
{
	return train_once(run, run->row->other.layout ? run->row->other.layout : &run->untreated, 1,
			  MATRIX_LEARN_NOTHING);
}

/* ---- the table ---- */

/* Each @ of the text becomes the word. */
static void spell(char *to, size_t size, const char *text, const char *word)
{
	size_t n = 0;

	to[0] = '\0';
	for (; *text && n < size; text++)
		n += (size_t)snprintf(to + n, size - n, "%.*s", *text == '@' ? (int)strlen(word) : 1,
				      *text == '@' ? word : text);
	cr_assert(!*text && n < size, "too long");
}

static void check_run(const struct matrix_row *row, matrix_claim claim, const struct matrix_layout *of, unsigned k,
		      const char *learn, unsigned scale)
{
	const char *keys = row->keys[k] ? row->keys[k] : "";
	const double most_norm = of->workers <= MATRIX_MOST_WORKERS ? row->most_norms[of->workers] : 0.0;
	char system[512], spelt[512], scaled[640], norm[32];
	struct matrix_run run = {.row = row,
				 .of = {system, of->workers, of->workers_per_node},
				 .untreated = *of,
				 .keys = keys,
				 .learn = scaled,
				 .before = k > 0 ? row->keys[k - 1] : NULL};

	snprintf(system, sizeof(system), "%s%s", of->system, keys);
	snprintf(norm, sizeof(norm), "%g", most_norm);
	if (row->has_scales)
		snprintf(run.scale, sizeof(run.scale), ", loss_scale: %u", 1U << scale);
	spell(spelt, sizeof(spelt), learn ? learn : "", norm);
	snprintf(scaled, sizeof(scaled), "%s%s", spelt, run.scale);
	snprintf(run.what, sizeof(run.what), "%s, %u workers%s", system, of->workers, scaled);
	claim(&run);
	release(false);
}

static unsigned count(const char *const texts[], unsigned most)
{
	unsigned n = 0;

	while (n < most && texts[n])
		n++;
	return n ? n : 1;
}

static void check_layout(const struct matrix_row *row, matrix_claim claim, const struct matrix_layout *of,
			 unsigned turn)
{
	const unsigned n_keys = count(row->keys, MATRIX_MOST_KEYS), n_learns = count(row->learns, MATRIX_MOST_LEARNS);
	const unsigned end = row->has_scales ? END_SCALES : FIRST_SCALE + 1;

	for (unsigned k = 0; k < n_keys; k++)
		for (unsigned l = 0; l < n_learns; l++) {
			if (row->is_in_turn && (k != turn % n_keys || l != turn % n_learns))
				continue;
			for (unsigned scale = FIRST_SCALE; scale < end; scale++)
				check_run(row, claim, of, k, row->learns[l], scale);
		}
}

static void check_workers(const struct matrix_row *row, matrix_claim claim, const struct matrix_layout *layout,
			  unsigned turn)
{
	const unsigned first = layout->workers ? layout->workers : 1, last = layout->workers ? layout->workers : 8;
	struct matrix_layout of = *layout;

	for (of.workers = first; of.workers <= last; of.workers *= 2)
		check_layout(row, claim, &of, turn);
}

static void check_seed(const struct matrix_row *row, matrix_claim claim)
{
	unsigned l = row->first;

	cr_assert(row->layouts[l].system, "no run");
	for (; row->layouts[l].system && (!row->end || l < row->end); l++)
		if (!row->stride || (l - row->first) % row->stride == 0)
			check_workers(row, claim, &row->layouts[l], l);
	release(true);
}

void matrix_check(const struct matrix_row *row, matrix_claim claim)
{
	const unsigned n_seeds = row->n_seeds && getenv("PSD_FULL_TESTS") ? row->n_seeds : 1;

	n_partial = 0;
	for (unsigned s = 0; s < n_seeds; s++) {
		struct matrix_subject subject = row->subject ? *row->subject : matrix_quick;
		struct matrix_row seeded = *row;

		subject.seed = row->first_seed ? row->first_seed + s : subject.seed;
		seeded.subject = &subject;
		check_seed(&seeded, claim);
	}
	cr_expect_geq(n_partial, row->least_partial);
}

/* ---- the same ---- */

void matrix_is_same_on_all(const struct matrix_run *run)
{
	const struct training *one = matrix_run_it(run);

	uint64_t received_bytes = 0;

	if (one->made.plan.local || one->made.plan.sparse) /* some iterations do not exchange all */
		return;
	for (unsigned node = 0; node < psd_layout_nodes(&one->made.plan.layout); node++) {
		const uint64_t bytes = psd_program_traffic(&one->made.program, node).received_bytes;

		received_bytes = bytes > received_bytes ? bytes : received_bytes;
	}
	training_expect_sent(one, most_sent_bytes(&one->made), run->what);
	cr_expect_eq(one->result.received_bytes_per_node, received_bytes, "%s: %lu bytes received", run->what,
		     one->result.received_bytes_per_node);
}

static void expect_same_bits(const struct training *one, const struct training *other, const struct matrix_run *run)
{
	for (unsigned w = 0; w < run->of.workers; w++)
		cr_expect(training_is_same(one, w, other, w), "%s: worker %u differs", run->what, w);
}

void matrix_repeats(const struct matrix_run *run)
{
	expect_same_bits(matrix_run_it(run), matrix_run_it(run), run);
}

void matrix_has_same_bits(const struct matrix_run *run)
{
	expect_same_bits(matrix_run_it(run), train_other(run), run);
}

/* ---- near ---- */

/* Parameters from the first on, as of one tensor. */
static double compare(const struct matrix_run *run, const struct training *const of[3], size_t first, uint64_t elements,
		      const char *name)
{
	const float *one = training_parameters(of[0], 0) + first, *other = training_parameters(of[1], 0) + first;
	const double apart = training_values_distance(one, other, elements);
	const double way = training_values_distance(training_parameters(of[2], 0) + first, other, elements);
	const double norm = training_values_distance(other, NULL, elements);

	if (run->row->way_ratio > 0.0)
		cr_expect_leq(apart, run->row->way_ratio * way, "%s: %s is off by %g of its way", run->what, name,
			      apart / way);
	if (run->row->norm_ratio > 0.0)
		cr_expect_leq(apart, run->row->norm_ratio * norm, "%s: %s is off by %g of its norm", run->what, name,
			      apart / norm);
	return way / norm;
}

void matrix_is_near(const struct matrix_run *run)
{
	const struct training *const of[] = {matrix_run_it(run), train_other(run), train_nothing(run)};
	const struct psd_graph *graph = &of[0]->loaded.costed.graph;
	double furthest_ratio = 0.0;
	size_t first = 0;

	if (!run->row->is_by_tensor)
		furthest_ratio = compare(run, of, 0, graph->parameters, "all");
	for (unsigned t = 0; run->row->is_by_tensor && t < graph->n_tensors; t++) {
		const struct psd_tensor *tensor = &graph->tensors[t];

		furthest_ratio = fmax(furthest_ratio, compare(run, of, first, tensor->elements, tensor->name));
		first += tensor->elements;
	}
	cr_expect_gt(furthest_ratio, run->row->least_way_ratio, "%s: it went %g of its norm", run->what,
		     furthest_ratio);
}

void matrix_is_another(const struct matrix_run *run)
{
	double apart_ratio;

	if (!run->before)
		return;
	apart_ratio = training_apart_ratio(train_nothing(run), train_other_by(run, run->before), matrix_run_it(run));
	cr_expect_gt(apart_ratio, run->row->way_ratio, "%s: off by %g of the way of '%s'", run->what, apart_ratio,
		     run->before);
}

void matrix_follows_the_algorithm(const struct matrix_run *run)
{
	plain_training_check(train_nothing(run), matrix_run_it(run), run->of.system, run->learn, run->row->way_ratio);
}

static void expect_share_of_bytes(const struct training *one, const struct training *other, unsigned parts,
				  const char *what)
{
	cr_expect_eq(one->result.sent_bytes_per_node, other->result.sent_bytes_per_node / parts, "%s: %lu of %lu", what,
		     one->result.sent_bytes_per_node, other->result.sent_bytes_per_node);
	cr_expect_eq(one->result.received_bytes_per_node, other->result.received_bytes_per_node / parts,
		     "%s: %lu of %lu", what, one->result.received_bytes_per_node,
		     other->result.received_bytes_per_node);
}

/* In an all-reduce values are rounded when they leave their worker, and in each of P - 1 sums. A worker has the nearest
 * representable values of the parameters that a server keeps, each time they arrive: that rounding does not add up. The
 * server's own values change by gradients, each rounded once, and with leaders once more. */
void matrix_rounds_nearly(const struct matrix_run *run)
{
	const struct training *rounded = matrix_run_it(run), *exact = train_other(run), *begun = train_nothing(run);
	const double ratio = strstr(run->of.system, "fp16") ? FP16_ROUNDING_RATIO : BF16_ROUNDING_RATIO;
	const bool is_kept = !exact->made.plan.items[0].method->collective->steps;
	const unsigned sums = run->of.workers_per_node > 1 ? exact->made.plan.layout.nodes : 0;
	const double away = training_distance(rounded, exact), way = training_distance(begun, exact);
	const double most = ratio * ((is_kept ? training_distance(exact, NULL) : 0.0) + (run->of.workers + sums) * way);
	const double loss = rounded->result.last_loss, exact_loss = exact->result.last_loss;

	cr_expect_lt(most, 0.5 * way, "%s: %g of the way may be missing", run->what, most / way);
	cr_expect(away > 0.0 && away <= most, "%s: %g away, %g allowed", run->what, away, most);
	if (is_kept)
		cr_expect_float_eq(loss / exact_loss, 1.0, ratio, "%s: loss %g instead of %g", run->what, loss,
				   exact_loss);
	expect_share_of_bytes(rounded, exact, 2, run->what);
	training_expect_sent(rounded, most_sent_bytes(&rounded->made), run->what);
}

/* ---- bytes ---- */

void matrix_sends(const struct matrix_run *run)
{
	const struct psd_worker_result *result = &matrix_run_it(run)->result;
	const uint64_t most = run->row->bytes, least = most - run->row->fewer_bytes;
	const uint64_t sent = result->sent_bytes_per_node, received = result->received_bytes_per_node;

	cr_expect(sent >= least && sent <= most, "%s: %lu bytes, expected %lu to %lu", run->what, sent, least, most);
	if (run->row->fewer_bytes)
		cr_expect(received >= least && received <= most, "%s: %lu bytes received", run->what, received);
}

void matrix_sends_a_part(const struct matrix_run *run)
{
	expect_share_of_bytes(matrix_run_it(run), train_other(run), run->row->parts, run->what);
}

void matrix_sends_as_predicted(const struct matrix_run *run)
{
	char text[1024], *model = realpath("tests/data/maskless.yaml", NULL);

	snprintf(text, sizeof(text),
		 "title: t\nmodel: {graph: %s, batch_per_worker: 4}\ncompute: {device: cpu}\n"
		 "cluster: {stack: none, network: {bandwidth: 1Gbps, latency: 50us}, %s\nsystems:\n  - {name: s, %s}\n"
		 "train: {iterations: 14, learning_rate: {policy: fixed, base: 0.001}}\n",
		 model, run->row->cluster, run->of.system);
	folder_run_sends_as_predicted(text, 1, 3);
	free(model);
}

/* ---- learning ---- */

void matrix_learns(const struct matrix_run *run)
{
	const double loss = matrix_run_it(run)->result.last_loss, other = train_other(run)->result.last_loss;

	cr_expect_lt(loss, run->row->loss_ratio * other, "%s: %g, of %g", run->what, loss, other);
}

static double accuracy(const struct training *training)
{
	cr_assert_gt(training->result.test_labels, 0);
	return (double)training->result.test_correct / (double)training->result.test_labels;
}

void matrix_is_accurate(const struct matrix_run *run)
{
	const double treated = accuracy(matrix_run_it(run)), other = accuracy(train_other(run));

	cr_log_info("%s: accuracy %.4f, without %.4f\n", run->what, treated, other);
	cr_expect_geq(treated, other - run->row->lost_ratio, "%s", run->what);
}

void matrix_stays_finite(const struct matrix_run *run)
{
	const struct training *one = matrix_run_it(run);

	for (uint64_t e = 0; e < one->loaded.costed.graph.parameters; e++)
		cr_assert(isfinite(training_parameters(one, 0)[e]), "%s: parameter %lu", run->what, e);
}

/* ---- beginnings and ends ---- */

void matrix_resumes(const struct matrix_run *run)
{
	going_on_check(run->of.system, run->learn, run->of.workers, run->of.workers_per_node, NULL);
}

void matrix_starts(const struct matrix_run *run)
{
	going_on_check_start(run->of.system, NULL);
}

void matrix_is_refused(const struct matrix_run *run)
{
	struct training *training = matrix_make(run->row->subject, &run->of, run->row->iterations, run->learn);

	training_run(training);
	cr_expect_eq(training->status, PSD_EINVAL, "%s", run->what);
	cr_expect(strstr(training->err.text, run->row->words), "%s: %s", run->what, training->err.text);
	training_free(training);
}
