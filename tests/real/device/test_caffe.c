/* Keys of Caffe: each of tests/data/caffe_keys.txt changes the loss after 5 iterations, to what PyTorch has recorded
 * there for the same weights (caffe_keys.py). */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/prototxt.h"
#include "real/work/solver.h"
#include "tests/real/net.h"

#define LOSS_TOLERANCE_RATIO 1e-4
#define LEAST_CHANGE_RATIO   1e-3 /* ten times what may be off */

enum { BATCH = 4, ITERATIONS = 5, COLUMNS = 6, LINE_BYTES = 4096 };

#define HEAD                                                                                                           \
	"layer { name: 'data' type: 'Input' top: 'data' top: 'label' input_param { shape { dim: [4, 3, 6, 6] } } }\n"  \
	"layer { name: 'base' type: 'Convolution' bottom: 'data' top: 'base' convolution_param { num_output: 4 "       \
	"kernel_size: 3 pad: 1 } }\n"
#define TAIL                                                                                                           \
	"\nlayer { name: 'fc' type: 'InnerProduct' bottom: 'top' top: 'fc' inner_product_param { num_output: 3 } }\n"  \
	"layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'fc' bottom: 'label' top: 'loss' }\n"

/* Makes "abd" of "a[[b||c]]d" with the key, and "acd" without. */
static void resolve(char *to, const char *from, bool has_key)
{
	bool is_written = true;

	for (; *from; from++) {
		if (!strncmp(from, "[[", 2))
			is_written = has_key, from++;
		else if (!strncmp(from, "||", 2))
			is_written = !has_key, from++;
		else if (!strncmp(from, "]]", 2))
			is_written = true, from++;
		else if (is_written)
			*to++ = *from;
	}
	*to = '\0';
}

/* Values that the file says, or that normalisations and slopes start with, stay; others are drawn. */
static void start(const struct net *net)
{
	for (unsigned t = 0; t < net->graph->n_tensors; t++) {
		const struct psd_tensor *tensor = &net->graph->tensors[t];

		for (uint64_t e = 0; e < tensor->elements && tensor->start_bound == 0 && tensor->start_deviation == 0;
		     e++)
			net->parameters[t][e] =
				tensor->starts_bilinear ? psd_tensor_bilinear(tensor, e) : tensor->start_value;
	}
}

static double train(struct net *net, const struct psd_train *job, bool is_tested)
{
	float **histories = calloc(net->graph->n_tensors, sizeof(*histories));

	cr_assert(histories);
	for (unsigned t = 0; t < net->graph->n_tensors; t++)
		cr_assert(histories[t] = calloc(net->graph->tensors[t].elements, sizeof(float)));
	for (uint64_t i = 0; i < ITERATIONS; i++) {
		const struct psd_update update = psd_solver_update(job, 1, i);

		net->batch.iteration = i;
		(void)net_run(net);
		for (unsigned t = 0; t < net->graph->n_tensors; t++) {
			const struct psd_tensor *tensor = &net->graph->tensors[t];
			const struct psd_update own = psd_solver_update_of(update, tensor);

			psd_update_apply(&own, net->parameters[t], net->gradients[t],
					 (struct psd_moments){.history = histories[t]}, tensor->elements);
		}
	}
	for (unsigned t = 0; t < net->graph->n_tensors; t++)
		free(histories[t]);
	free(histories);
	net->batch.iteration = ITERATIONS;
	net->batch.is_training = !is_tested;
	return net_run_forward(net);
}

static double loss_of(char *const columns[COLUMNS], bool has_key)
{
	char solver[LINE_BYTES], layers[LINE_BYTES], text[2 * LINE_BYTES];
	struct psd_train job = {.iterations = ITERATIONS};
	struct psd_graph graph;
	struct psd_error err = {0};
	struct net net;
	double loss;

	resolve(solver, columns[2], has_key);
	resolve(layers, columns[3], has_key);
	snprintf(text, sizeof(text), "%s%s%s", HEAD, layers, TAIL);
	cr_assert_eq(psd_train_parse_solver(&job, "solver.prototxt", solver, strlen(solver), &err), PSD_OK, "%s: %s",
		     columns[0], err.text);
	cr_assert_eq(psd_prototxt_parse(&graph, "net.prototxt", text, strlen(text), NULL, &err), PSD_OK, "%s: %s",
		     columns[0], err.text);
	net = net_make_graph(graph, BATCH);
	start(&net);
	loss = train(&net, &job, !strcmp(columns[4], "test"));
	net_release(&net);
	return loss;
}

static unsigned split(char *line, char *columns[COLUMNS])
{
	static const char separator[] = " |> ";
	unsigned n_columns = 0;

	for (char *next = line; next && n_columns < COLUMNS; n_columns++) {
		columns[n_columns] = next;
		next = strstr(next, separator);
		if (next) {
			*next = '\0';
			next += strlen(separator);
		}
	}
	return n_columns;
}

Test(caffe, every_key_changes_the_loss_as_in_pytorch)
{
	FILE *table = fopen("tests/data/caffe_keys.txt", "r");
	char line[LINE_BYTES], *columns[COLUMNS];
	unsigned n_keys = 0;

	cr_assert(table);
	while (fgets(line, sizeof(line), table)) {
		double expected, loss, other;

		if (*line == '#')
			continue;
		cr_assert_eq(split(line, columns), COLUMNS, "%s", line);
		expected = strtod(columns[5], NULL);
		loss = loss_of(columns, true);
		other = loss_of(columns, false);
		cr_expect_lt(fabs(loss / expected - 1), LOSS_TOLERANCE_RATIO, "%s: loss %.9g, must be %.9g", columns[0],
			     loss, expected);
		cr_expect_gt(fabs(loss / other - 1), LEAST_CHANGE_RATIO, "%s: loss %.9g with and %.9g without",
			     columns[0], loss, other);
		n_keys++;
	}
	fclose(table);
	cr_assert_geq(n_keys, 60);
}
