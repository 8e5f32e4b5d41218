#include "tests/real/plain_training.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "real/data/data.h"
#include "real/data/sampler.h"
#include "real/device/low_rank.h"
#include "tests/real/plain_compression.h"
#include "tests/real/plain_low_rank.h"

enum { INPUTS = PLAIN_INPUTS, CLASSES = PLAIN_CLASSES, N = PLAIN_PARAMETERS, WEIGHTS = INPUTS * CLASSES };
enum { MOST_WORKERS = 4, MOST_RANK = 8, BLOCK = 1024 };

/* Compressed gradients, but for a few values whose sign, or position among the largest, rounding has turned around: of
 * how far a parameter goes. */
#define NEAR_RATIO 0.01
enum { MOST_TURNED = 4 };

struct plain {
	const char *system, *learn;
	const struct training *begun, *trained;
	struct psd_data *data;
	unsigned workers;
	double parameters[N], gradients[PLAIN_ITERATIONS][N];
	double residual[MOST_WORKERS][N], sum_residual[N];	     /* values that compression left behind */
	double left[CLASSES * MOST_RANK], right[MOST_RANK * INPUTS]; /* low-rank factors */
	double history[N], square[N];				     /* momentum, or the means of AdamW */
	unsigned n_clipped;
};

/* The number behind the key, of text that holds it once. */
static double number(const char *text, const char *key, double fallback)
{
	const char *found = strstr(text, key);

	return found ? strtod(found + strlen(key), NULL) : fallback;
}

/* ---- gradients ---- */

/* Adds the part of the worker's samples, at these parameters. */
static void add_gradient_at(const struct plain *of, const double *parameters, unsigned worker, unsigned iteration,
			    double *gradient)
{
	const uint64_t first = psd_sampler_first(iteration, of->workers, worker, PLAIN_BATCH);
	float images[PLAIN_BATCH * INPUTS];
	int32_t labels[PLAIN_BATCH];
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_data_read_batch(of->data, PSD_DATA_TRAINING, first, PLAIN_BATCH, images, labels, &err), PSD_OK,
		     "%s", err.text);
	for (unsigned s = 0; s < PLAIN_BATCH; s++)
		plain_softmax_add(parameters, images + s * INPUTS, labels[s], of->workers * PLAIN_BATCH, gradient);
}

/* The same at the algorithm's own parameters. */
static void add_gradient(const struct plain *of, unsigned worker, unsigned iteration, double *gradient)
{
	add_gradient_at(of, of->parameters, worker, iteration, gradient);
}

static void add_up(struct plain *of, unsigned iteration, double *sum)
{
	for (unsigned w = 0; w < of->workers; w++)
		add_gradient(of, w, iteration, sum);
}

/* The mean of samples is in the gradients: a mean over workers is a sum here. Biases travel as they are. */
static void add_own_factors(struct plain *of, struct plain_shape shape, double *residual, double *right, double *sum)
{
	double own[MOST_RANK * INPUTS] = {0.0};

	plain_fit(shape, of->left, residual, own);
	plain_expand(shape, of->left, own, -1.0, residual);
	for (unsigned e = 0; e < shape.rank * INPUTS; e++)
		right[e] += own[e];
	for (unsigned e = WEIGHTS; e < N; e++) {
		sum[e] += residual[e];
		residual[e] = 0.0;
	}
}

/* Gradients of the weight, (CLASSES, INPUTS), have no more than 9 ranks, as those of a sample's scores sum to nothing.
 * Vogels et al. 2019, algorithms 1 and 2, except that a worker takes its own product from its residual, and
 * momentum comes behind. */
static void factor(struct plain *of, unsigned iteration, double *sum)
{
	const struct plain_shape shape = {CLASSES, INPUTS, (unsigned)number(of->system, "{rank: ", 0)};
	double right[MOST_RANK * INPUTS] = {0.0};

	for (unsigned e = 0; iteration == 0 && e < shape.rank * INPUTS; e++) /* elements of tensor 0 */
		of->right[e] = (double)psd_low_rank_start(0, e / INPUTS, e % INPUTS);
	memset(of->left, 0, sizeof(of->left));
	for (unsigned w = 0; w < of->workers; w++) {
		add_gradient(of, w, iteration, of->residual[w]);
		plain_project(shape, of->residual[w], of->right, of->left);
	}
	plain_make_orthonormal(shape, of->left);
	for (unsigned w = 0; w < of->workers; w++)
		add_own_factors(of, shape, of->residual[w], right, sum);
	memcpy(of->right, right, sizeof(right));
	plain_expand(shape, of->left, of->right, 1.0, sum);
}

/* Blocks of the weight, and the bias. */
static void compress(const struct plain *of, double *values, double *sent)
{
	const uint32_t kept = (uint32_t)ceil(number(of->system, "kept: ", 0) / 100.0 * BLOCK); /* 0: one-bit */

	for (unsigned first = 0; first < WEIGHTS; first += BLOCK)
		plain_compress(kept, values + first, sent + first, WEIGHTS - first < BLOCK ? WEIGHTS - first : BLOCK);
	plain_compress(kept, values + WEIGHTS, sent + WEIGHTS, CLASSES);
}

/* On the way to a server, and back. */
static void pack(struct plain *of, unsigned iteration, double *sum)
{
	double sent[N];

	for (unsigned w = 0; w < of->workers; w++) {
		add_gradient(of, w, iteration, of->residual[w]);
		compress(of, of->residual[w], sent);
		for (unsigned e = 0; e < N; e++)
			of->sum_residual[e] += sent[e];
	}
	compress(of, of->sum_residual, sum);
}

static void clip(struct plain *of, double *gradient)
{
	const double most_norm = number(of->learn, "clip: ", INFINITY);
	double square = 0.0;

	for (unsigned e = 0; e < N; e++)
		square += gradient[e] * gradient[e];
	of->n_clipped += square > most_norm * most_norm;
	for (unsigned e = 0; e < N && square > most_norm * most_norm; e++)
		gradient[e] *= most_norm / sqrt(square);
}

/* ---- updates ---- */

static void update(struct plain *of, const double *gradient)
{
	const double rate = number(of->learn, "base: ", 0), momentum = number(of->learn, "momentum: ", 0);
	const double decay = number(of->learn, "weight_decay: ", 0);

	for (unsigned e = 0; e < N; e++) {
		of->history[e] = momentum * of->history[e] + rate * (gradient[e] + decay * of->parameters[e]);
		of->parameters[e] -= of->history[e];
	}
}

/* Loshchilov and Hutter 2019, algorithm 2, without restarts: in iteration t, from 1. */
static void update_adamw(struct plain *of, const double *gradient, unsigned t)
{
	const double beta1 = number(of->learn, "beta1: ", 0.9), beta2 = number(of->learn, "beta2: ", 0.999);
	const double epsilon = number(of->learn, "epsilon: ", 1e-8), decay = number(of->learn, "weight_decay: ", 0);

	for (unsigned e = 0; e < N; e++) {
		of->history[e] = beta1 * of->history[e] + (1 - beta1) * gradient[e];
		of->square[e] = beta2 * of->square[e] + (1 - beta2) * gradient[e] * gradient[e];
		const double mean = of->history[e] / (1 - pow(beta1, t)), square = of->square[e] / (1 - pow(beta2, t));
		of->parameters[e] -=
			number(of->learn, "base: ", 0) * (mean / (sqrt(square) + epsilon) + decay * of->parameters[e]);
	}
}

/* Iteration t ends with the update by the gradient of iteration t - staleness, if there is one. */
static void train(struct plain *of)
{
	const unsigned staleness = (unsigned)number(of->system, "staleness: ", 0);

	for (unsigned t = 0; t < PLAIN_ITERATIONS; t++) {
		double *late = t >= staleness ? of->gradients[t - staleness] : NULL;

		(strstr(of->system, "low_rank")	  ? factor
		 : strstr(of->system, "compress") ? pack
						  : add_up)(of, t, of->gradients[t]);
		if (!late)
			continue;
		clip(of, late);
		if (strstr(of->learn, "kind: adamw"))
			update_adamw(of, late, t - staleness + 1);
		else
			update(of, late);
	}
	cr_expect(!strstr(of->learn, "clip: ") || (of->n_clipped > 0 && of->n_clipped < PLAIN_ITERATIONS - staleness),
		  "%s: %u gradients are clipped", of->system, of->n_clipped);
}

/* ---- workers with parameters of their own ---- */

struct replica {
	double parameters[N], history[N];
};

/* Adds the gradient of each worker whose factors come to this one: Q at offsets that take turns. */
static void add_peers(const struct plain *of, const struct replica *replicas, unsigned worker, unsigned t, double *sum)
{
	const unsigned peers = (unsigned)number(of->system, "peers: ", 0);

	add_gradient_at(of, replicas[worker].parameters, worker, t, sum);
	for (unsigned k = 0; k < peers; k++) {
		const unsigned offset = 1 + (t * peers + k) % (of->workers - 1);
		const unsigned sender = (worker + of->workers - offset) % of->workers;

		add_gradient_at(of, replicas[sender].parameters, sender, t, sum);
	}
	for (unsigned e = 0; e < N; e++) /* gradients are divided by the samples of all workers */
		sum[e] *= of->workers / (peers + 1.0);
}

static void average(const struct plain *of, struct replica *replicas)
{
	for (unsigned e = 0; e < N; e++) {
		double sum = 0.0;

		for (unsigned w = 0; w < of->workers; w++)
			sum += replicas[w].parameters[e];
		for (unsigned w = 0; w < of->workers; w++)
			replicas[w].parameters[e] = sum / of->workers;
	}
}

/* All workers' gradients come before the first update. */
static void train_replicas(struct plain *of)
{
	const unsigned steps = (unsigned)number(of->system, "steps: ", 1);
	struct replica replicas[MOST_WORKERS] = {0};
	static double sums[MOST_WORKERS][N];

	for (unsigned w = 0; w < of->workers; w++)
		memcpy(replicas[w].parameters, of->parameters, sizeof(of->parameters));
	for (unsigned t = 0; t < PLAIN_ITERATIONS; t++) {
		memset(sums, 0, sizeof(sums));
		for (unsigned w = 0; w < of->workers; w++)
			add_peers(of, replicas, w, t, sums[w]);
		for (unsigned w = 0; w < of->workers; w++) {
			memcpy(of->parameters, replicas[w].parameters, sizeof(of->parameters));
			memcpy(of->history, replicas[w].history, sizeof(of->history));
			update(of, sums[w]);
			memcpy(replicas[w].parameters, of->parameters, sizeof(of->parameters));
			memcpy(replicas[w].history, of->history, sizeof(of->history));
		}
		if ((t + 1) % steps == 0 || t + 1 == PLAIN_ITERATIONS)
			average(of, replicas);
	}
	memcpy(of->parameters, replicas[0].parameters, sizeof(of->parameters));
}

/* ---- the end ---- */

static void expect_near(const struct plain *of, double way_ratio)
{
	const float *begin = training_parameters(of->begun, 0), *end = training_parameters(of->trained, 0);
	double apart = 0.0, way = 0.0;
	unsigned n_apart = 0;

	for (unsigned e = 0; e < N; e++) {
		apart += pow((double)end[e] - of->parameters[e], 2);
		way += pow((double)begin[e] - of->parameters[e], 2);
	}
	for (unsigned e = 0; e < N; e++)
		n_apart += fabs((double)end[e] - of->parameters[e]) > NEAR_RATIO * sqrt(way / N);
	if (strstr(of->system, "compress"))
		cr_expect_leq(n_apart, MOST_TURNED, "%s: %u of %d parameters differ", of->system, n_apart, N);
	else
		cr_expect_leq(sqrt(apart / way), way_ratio, "%s%s: off by %g of the way", of->system, of->learn,
			      sqrt(apart / way));
}

void plain_training_check(const struct training *begun, const struct training *trained, const char *system,
			  const char *learn, double way_ratio)
{
	struct plain *of = calloc(1, sizeof(*of));
	const struct psd_data_options options =
		psd_data_options_of(&begun->loaded.costed.graph, &begun->loaded.scenario.train);
	struct psd_error err = {.text = ""};

	cr_assert(of);
	of->system = system;
	of->learn = learn;
	of->begun = begun;
	of->trained = trained;
	of->workers = trained->made.plan.layout.workers;
	for (unsigned e = 0; e < N; e++)
		of->parameters[e] = (double)training_parameters(begun, 0)[e];
	cr_assert_eq(psd_data_open(&of->data, &options, &err), PSD_OK, "%s", err.text);
	(strstr(system, "peers: ") ? train_replicas : train)(of);
	expect_near(of, way_ratio);
	psd_data_close(of->data);
	free(of);
}
