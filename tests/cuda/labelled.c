/* See labelled.h. */
#define _DEFAULT_SOURCE
#include "tests/cuda/labelled.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <sys/mman.h>

#include "tests/cuda/stand_in.h"

enum { LABEL_MAX = 32 };

static _Thread_local const char *now = "";
static const struct psd_graph *graph;
static float *const *weights;	       /* one for each tensor of the graph */
static const char *begun[PSD_STREAMS]; /* each stream's by its own thread */
static const char *of_mark[PSD_STREAMS][PSD_MOST_MARKS];
static char *left_out; /* LABEL_MAX bytes that processes share */

static void keep_label(void)
{
	snprintf(left_out, LABEL_MAX, "%s", now);
}

void labelled_watch(void)
{
	if (!left_out)
		left_out = mmap(NULL, LABEL_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq((void *)left_out, MAP_FAILED);
	left_out[0] = '\0';
	psd_stand_in_on_left_out(keep_label);
}

const char *labelled_left_out(void)
{
	return left_out;
}

/* A call that is waited for inside, if at all. */
#define CALL(label, call)                                                                                              \
	do {                                                                                                           \
		now = label;                                                                                           \
		const enum psd_status status = psd_device_cuda.call;                                                   \
		now = "";                                                                                              \
		return status;                                                                                         \
	} while (0)
/* One that begins something on a stream. */
#define BEGIN(stream, label, call)                                                                                     \
	do {                                                                                                           \
		begun[stream] = label;                                                                                 \
		CALL(label, call);                                                                                     \
	} while (0)

static enum psd_status open_device(struct psd_device **device, const struct psd_device_options *options,
				   struct psd_error *err)
{
	graph = NULL;
	for (unsigned s = 0; s < PSD_STREAMS; s++)
		begun[s] = "nothing";
	CALL("open", open(device, options, err));
}

static void close_device(struct psd_device *device)
{
	now = "close";
	psd_device_cuda.close(device);
	now = "";
}

static enum psd_status take(struct psd_device *device, uint64_t bytes, void **block, struct psd_error *err)
{
	CALL("take", take(device, bytes, block, err));
}

static const char *label_of_copy(enum psd_stream stream, const void *from)
{
	if (stream == PSD_STREAM_COPY_IN)
		return "copy in";
	if (stream == PSD_STREAM_SUMS)
		return "sum";
	for (unsigned t = 0; graph && t < graph->n_tensors; t++)
		if (weights[t] == from)
			return "parameters out";
	return "copy out";
}

static enum psd_status copy(struct psd_device *device, enum psd_stream stream, void *to, const void *from,
			    uint64_t bytes, struct psd_error *err)
{
	BEGIN(stream, label_of_copy(stream, from), copy(device, stream, to, from, bytes, err));
}

static enum psd_status load(struct psd_device *device, const struct psd_graph *loaded,
			    const struct psd_network_options *options, float *const parameters[],
			    float *const gradients[], struct psd_error *err)
{
	graph = loaded;
	weights = parameters;
	CALL("load", load(device, loaded, options, parameters, gradients, err));
}

static enum psd_status begin(struct psd_device *device, const struct psd_batch *batch, struct psd_error *err)
{
	CALL("begin", begin(device, batch, err));
}

static enum psd_status fetch(struct psd_device *device, const struct psd_batch *batch, struct psd_error *err)
{
	begun[PSD_STREAM_SAMPLES] = "samples";
	CALL("fetch", fetch(device, batch, err));
}

static enum psd_status forward(struct psd_device *device, unsigned layer, struct psd_error *err)
{
	BEGIN(PSD_STREAM_COMPUTE, graph->layers[layer].kind->is_loss ? "loss" : "forward", forward(device, layer, err));
}

static enum psd_status backward(struct psd_device *device, unsigned layer, struct psd_error *err)
{
	BEGIN(PSD_STREAM_COMPUTE, "backward", backward(device, layer, err));
}

static enum psd_status begin_pass(struct psd_device *device, const struct psd_pass *of, struct psd_error *err)
{
	const bool is_loss = !of->is_backward && graph->layers[of->end - 1].kind->is_loss;

	BEGIN(PSD_STREAM_COMPUTE, of->is_backward ? "backward" : is_loss ? "loss" : "forward", pass(device, of, err));
}

static enum psd_status keep_factors(struct psd_device *device, unsigned layer, const struct psd_factors *kept,
				    struct psd_error *err)
{
	BEGIN(PSD_STREAM_COMPUTE, "keep factors", keep_factors(device, layer, kept, err));
}

static enum psd_status rebuild(struct psd_device *device, const struct psd_factors *factors, uint32_t samples,
			       uint32_t rows, uint32_t columns, float *gradient, float *bias_gradient,
			       struct psd_error *err)
{
	BEGIN(PSD_STREAM_COMPUTE, "rebuild",
	      rebuild(device, factors, samples, rows, columns, gradient, bias_gradient, err));
}

#define KERNEL(name, arguments, text)                                                                                  \
	static enum psd_status name(struct psd_device *device, const struct arguments *of, struct psd_error *err)      \
	{                                                                                                              \
		BEGIN(PSD_STREAM_COMPUTE, text, kernels->name(device, of, err));                                       \
	}
PSD_KERNELS(KERNEL)

#define SLOT(name, arguments, text) .name = name,
static const struct psd_kernels kernels = {PSD_KERNELS(SLOT)};

static enum psd_status read_state(struct psd_device *device, unsigned state, float *values, struct psd_error *err)
{
	CALL("read state", read_state(device, state, values, err));
}

static enum psd_status write_state(struct psd_device *device, unsigned state, const float *values,
				   struct psd_error *err)
{
	CALL("write state", write_state(device, state, values, err));
}

static uint64_t mark(struct psd_device *device, enum psd_stream stream)
{
	const uint64_t made = psd_device_cuda.mark(device, stream);

	of_mark[stream][made % PSD_MOST_MARKS] = begun[stream];
	begun[stream] = "nothing";
	return made;
}

static enum psd_status wait(struct psd_device *device, enum psd_stream stream, uint64_t made, struct psd_error *err)
{
	CALL(of_mark[stream][made % PSD_MOST_MARKS], wait(device, stream, made, err));
}

/* Functions without a wait stay the CUDA device's own. */
struct psd_device_kind labelled_device(void)
{
	struct psd_device_kind kind = psd_device_cuda;

	kind.open = open_device;
	kind.close = close_device;
	kind.take = take;
	kind.copy = copy;
	kind.load = load;
	kind.begin = begin;
	kind.fetch = fetch;
	kind.forward = forward;
	kind.backward = backward;
	kind.pass = begin_pass;
	kind.keep_factors = keep_factors;
	kind.rebuild = rebuild;
	kind.kernels = &kernels;
	kind.read_state = read_state;
	kind.write_state = write_state;
	kind.mark = mark;
	kind.wait = wait;
	return kind;
}
