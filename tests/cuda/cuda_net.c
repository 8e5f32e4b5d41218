/* See cuda_net.h. */
#include "tests/cuda/cuda_net.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

void cuda_net_wait(struct psd_device *device, enum psd_stream stream)
{
	struct psd_error err = {0};
	const uint64_t mark = psd_device_cuda.mark(device, stream);

	cr_assert_eq(psd_device_cuda.wait(device, stream, mark, &err), PSD_OK, "%s", err.text);
}

void cuda_net_put(struct psd_device *device, void *to, const void *from, uint64_t bytes)
{
	struct psd_error err = {0};

	cr_assert_eq(psd_device_cuda.copy(device, PSD_STREAM_COPY_IN, to, from, bytes, &err), PSD_OK, "%s", err.text);
	cuda_net_wait(device, PSD_STREAM_COPY_IN);
}

void cuda_net_get(struct psd_device *device, void *to, const void *from, uint64_t bytes)
{
	struct psd_error err = {0};

	cr_assert_eq(psd_device_cuda.copy(device, PSD_STREAM_COPY_OUT, to, from, bytes, &err), PSD_OK, "%s", err.text);
	cuda_net_wait(device, PSD_STREAM_COPY_OUT);
}

float *cuda_net_take(struct psd_device *device, const float *values, uint64_t count)
{
	struct psd_error err = {0};
	void *block;

	cr_assert_eq(psd_device_cuda.take(device, count * sizeof(*values), &block, &err), PSD_OK, "%s", err.text);
	cuda_net_put(device, block, values, count * sizeof(*values));
	return block;
}

struct cuda_net cuda_net_open(struct net *net, enum psd_layer_arithmetic arithmetic)
{
	return cuda_net_open_with(net, &(struct psd_device_options){.n_threads = 1, .arithmetic = arithmetic});
}

struct cuda_net cuda_net_open_with(struct net *net, const struct psd_device_options *options)
{
	const unsigned n_tensors = net->graph->n_tensors;
	struct cuda_net cuda = {.net = net,
				.parameters = calloc(n_tensors + 1u, sizeof(float *)),
				.gradients = calloc(n_tensors + 1u, sizeof(float *)),
				.host_gradients = calloc(n_tensors + 1u, sizeof(float *))};
	struct psd_error err = {0};

	cr_assert(cuda.parameters && cuda.gradients && cuda.host_gradients);
	cr_assert_eq(psd_device_cuda.open(&cuda.device, options, &err), PSD_OK, "%s", err.text);
	for (unsigned t = 0; t < n_tensors; t++) {
		const uint64_t count = net->graph->tensors[t].elements;

		cuda.host_gradients[t] = calloc(count, sizeof(float));
		cr_assert(cuda.host_gradients[t]);
		cuda.parameters[t] = cuda_net_take(cuda.device, net->parameters[t], count);
		if (net->gradients[t]) /* nonsense, as in the net: a device that adds to it is found out */
			cuda.gradients[t] = cuda_net_take(cuda.device, net->gradients[t], count);
	}
	cr_assert_eq(
		psd_device_cuda.load(cuda.device, net->graph, &net->options, cuda.parameters, cuda.gradients, &err),
		PSD_OK, "%s", err.text);
	return cuda;
}

void cuda_net_close(struct cuda_net *cuda)
{
	psd_device_cuda.close(cuda->device);
	for (unsigned t = 0; t < cuda->net->graph->n_tensors; t++)
		free(cuda->host_gradients[t]);
	free(cuda->host_gradients);
	free(cuda->parameters);
	free(cuda->gradients);
}

double cuda_net_run_forward(struct cuda_net *cuda)
{
	struct psd_error err = {0};

	cr_assert_eq(psd_device_cuda.begin(cuda->device, &cuda->net->batch, &err), PSD_OK, "%s", err.text);
	for (unsigned l = 0; l < cuda->net->graph->n_layers; l++)
		cr_assert_eq(psd_device_cuda.forward(cuda->device, l, &err), PSD_OK, "%s", err.text);
	cuda_net_wait(cuda->device, PSD_STREAM_COMPUTE);
	return psd_device_cuda.loss(cuda->device);
}

double cuda_net_run(struct cuda_net *cuda)
{
	const double loss = cuda_net_run_forward(cuda);
	struct psd_error err = {0};

	for (unsigned l = cuda->net->graph->n_layers; l-- > 0;)
		cr_assert_eq(psd_device_cuda.backward(cuda->device, l, &err), PSD_OK, "%s", err.text);
	cuda_net_wait(cuda->device, PSD_STREAM_COMPUTE);
	for (unsigned t = 0; t < cuda->net->graph->n_tensors; t++)
		if (cuda->gradients[t])
			cuda_net_get(cuda->device, cuda->host_gradients[t], cuda->gradients[t],
				     cuda->net->graph->tensors[t].elements * sizeof(float));
	return loss;
}

double cuda_net_distance(const float *left, const float *right, uint64_t count)
{
	double difference = 0, norm = 0;

	for (uint64_t i = 0; i < count; i++) {
		difference += pow((double)left[i] - (double)right[i], 2);
		norm += (double)right[i] * (double)right[i];
	}
	return sqrt(difference / fmax(norm, 1e-60));
}
