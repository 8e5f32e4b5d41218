/* See net.h. */
#include "tests/real/net.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/model.h"

/* Once for all cases, which fork from the runner. */
__attribute__((constructor)) static void prepare_cases(void)
{
	psd_device_cpu.prepare_forks();
}

/* In [-1, 1). */
static float draw(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return (float)(*state >> 8) * 0x1p-23f - 1.0f;
}

static float *take(uint64_t count)
{
	float *values = aligned_alloc(64, (count * sizeof(*values) + 63) / 64 * 64);

	cr_assert(values);
	return values;
}

uint64_t net_image_elements(const struct net *net)
{
	const struct psd_shape shape = net->graph->layers[0].shape;

	return (uint64_t)shape.channels * shape.height * shape.width;
}

/* A token, some of them several times, where the network looks them up. */
static float value_of_input(const struct psd_graph *graph, float drawn)
{
	return graph->vocabulary ? floorf((drawn + 1.0f) / 2.0f * (float)graph->vocabulary) : drawn;
}

/* Gradients start as nonsense: a device that adds to what it should overwrite is found out. */
static void fill(struct net *net)
{
	const uint64_t n_labels = net->options.batch * (net->graph->labels ? net->graph->labels : 1);
	const uint32_t classes = net->graph->classes ? net->graph->classes : 1;
	uint32_t state = NET_SEED;

	net->parameters = calloc(net->graph->n_tensors + 1u, sizeof(*net->parameters));
	net->gradients = calloc(net->graph->n_tensors + 1u, sizeof(*net->gradients));
	net->images = take(net->options.batch * net_image_elements(net));
	net->labels = calloc(n_labels, sizeof(*net->labels));
	cr_assert(net->parameters && net->gradients && net->labels);
	for (unsigned t = 0; t < net->graph->n_tensors; t++) {
		const uint64_t count = net->graph->tensors[t].elements;

		net->parameters[t] = take(count);
		net->gradients[t] = take(count);
		for (uint64_t i = 0; i < count; i++) {
			net->parameters[t][i] = 0.5f * draw(&state);
			net->gradients[t][i] = 1e6f;
		}
	}
	for (uint64_t i = 0; i < net->options.batch * net_image_elements(net); i++)
		net->images[i] = value_of_input(net->graph, draw(&state));
	for (uint64_t i = 0; i < n_labels; i++)
		net->labels[i] = (int32_t)(i % classes);
	net->batch = (struct psd_batch){
		.images = net->images, .labels = net->labels, .iteration = 3, .first_sample = 8, .is_training = true};
}

void net_open(struct net *net)
{
	struct psd_error err = {0};

	cr_assert_eq(psd_device_cpu.open(&net->device, &net->device_options, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_device_cpu.load(net->device, net->graph, &net->options, net->parameters, net->gradients, &err),
		     PSD_OK, "%s", err.text);
}

static struct net make_graph_apart(struct psd_graph graph, uint32_t batch)
{
	struct net net = {
		.graph = malloc(sizeof(graph)),
		.device_options = {.n_threads = 1},
		.options = {.batch = batch, .seed = NET_SEED, .loss_divisor = batch},
	};

	cr_assert(net.graph);
	*net.graph = graph;
	fill(&net);
	return net;
}

struct net net_make_graph(struct psd_graph graph, uint32_t batch)
{
	struct net net = make_graph_apart(graph, batch);

	net_open(&net);
	return net;
}

struct net net_make_apart(const char *text, uint32_t batch)
{
	struct psd_graph graph;
	struct psd_error err = {0};

	cr_assert_eq(psd_model_parse(&graph, "m.yaml", text, strlen(text), &err), PSD_OK, "%s", err.text);
	return make_graph_apart(graph, batch);
}

struct net net_make(const char *text, uint32_t batch)
{
	struct net net = net_make_apart(text, batch);

	net_open(&net);
	return net;
}

struct net net_make_chain(unsigned n_convs)
{
	char text[2048] = "name: m\ninput: {channels: 16, height: 32, width: 32}\nlayers:\n";
	size_t length = strlen(text);

	for (unsigned i = 0; i < n_convs; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length,
					   "  - {name: c%u, kind: conv, outputs: 16, kernel: 3, pad: 1}\n", i);
	snprintf(text + length, sizeof(text) - length, "%s",
		 "  - {name: top, kind: inner-product, outputs: 3}\n  - {name: loss, kind: softmax-loss}\n");
	return net_make(text, 4);
}

void net_release(struct net *net)
{
	psd_device_cpu.close(net->device);
	for (unsigned t = 0; t < net->graph->n_tensors; t++) {
		free(net->parameters[t]);
		free(net->gradients[t]);
	}
	free(net->parameters);
	free(net->gradients);
	free(net->images);
	free(net->labels);
	psd_graph_release(net->graph);
	free(net->graph);
}

double net_run_forward(struct net *net)
{
	struct psd_error err = {0};

	cr_assert_eq(psd_device_cpu.begin(net->device, &net->batch, &err), PSD_OK);
	for (unsigned l = 0; l < net->graph->n_layers; l++)
		cr_assert_eq(psd_device_cpu.forward(net->device, l, &err), PSD_OK, "%s", err.text);
	return psd_device_cpu.loss(net->device);
}

double net_run(struct net *net)
{
	const double loss = net_run_forward(net);
	struct psd_error err = {0};

	for (unsigned l = net->graph->n_layers; l-- > 0;)
		cr_assert_eq(psd_device_cpu.backward(net->device, l, &err), PSD_OK, "%s", err.text);
	return loss;
}

struct psd_factors net_take_factors(const struct net *net, unsigned layer)
{
	const struct psd_tensor *weight = &net->graph->tensors[net->graph->layers[layer].first_tensor];
	const struct psd_factors factors = {take((uint64_t)net->options.batch * weight->columns),
					    take((uint64_t)net->options.batch * weight->rows)};
	struct psd_error err = {0};

	cr_assert_eq(psd_device_cpu.keep_factors(net->device, layer, &factors, &err), PSD_OK, "%s", err.text);
	return factors;
}

void net_free_factors(struct psd_factors factors)
{
	free(factors.top_diff);
	free(factors.bottom);
}

double net_distance(const float *left, const double *right, uint64_t count)
{
	double difference = 0, norm = 0;

	for (uint64_t i = 0; i < count; i++) {
		difference += pow(left[i] - right[i], 2);
		norm += right[i] * right[i];
	}
	return sqrt(difference / fmax(norm, 1e-60));
}

double *net_widen(const float *values, uint64_t count)
{
	double *wide = calloc(count, sizeof(*wide));

	cr_assert(wide);
	for (uint64_t i = 0; i < count; i++)
		wide[i] = (double)values[i];
	return wide;
}

double **net_widen_parameters(const struct net *net)
{
	double **wide = calloc(net->graph->n_tensors + 1u, sizeof(*wide));

	cr_assert(wide);
	for (unsigned t = 0; t < net->graph->n_tensors; t++)
		wide[t] = net_widen(net->parameters[t], net->graph->tensors[t].elements);
	return wide;
}

void net_free_wide(const struct net *net, double **wide)
{
	for (unsigned t = 0; t < net->graph->n_tensors; t++)
		free(wide[t]);
	free(wide);
}
