/* CUDA graphs. Layers that execute together launch the same work in each iteration: it is recorded once, and then
 * launched by one call. Such a stretch is the layers of one operation of the program. It cannot include the layers of
 * the next operation, which may wait for other streams, while other streams wait for the end of this operation.  -
 * Graphs differ by sample slot, addresses of gradients, and training or test. The counters that masks depend on are in
 * the device's memory; layers use no rates. - The first time layers are launched call by call, so that libraries load
 * their code, and are recorded after that. Layers that cannot be recorded, or that change by themselves, are always
 * launched call by call, and counted in struct psd_gpu_recorded.  Refuses to record updates and copies, which programs
 * begin one by one. */
#include <stdlib.h>
#include <string.h>

#include "real/device/gpu/gpu.h"

/* Largest number of graphs of a stretch: one for each of the two sample slots and each iteration in progress. More
 * would not help a caller whose gradients have other addresses in each iteration. */
enum { MOST_GRAPHS = 16 };

struct graph {
	struct graph *next;
	struct CUgraphExec_st *launchable; /* recorded work; NULL if there was none */
	unsigned slot;
	/* addresses, when the graph was recorded, of the gradients of the layers' tensors, in order */
	void *gradients[];
};

/* Stretch: consecutive layers, forward or backward, that are launched together. */
struct psd_gpu_stretch {
	struct psd_gpu_stretch *next;
	struct psd_pass pass;
	bool is_training, reads_samples, is_left_out;
	unsigned n_gradients; /* number of gradients that the stretch writes; 0 in forward */
	unsigned n_graphs;
	struct graph *graphs;
	unsigned n_filled;
	struct psd_gpu_blob *filled[]; /* blobs whose diff this stretch is the first to write */
};

/* ---- keys of graphs ---- */

static bool is_same(const struct psd_device *device, const struct psd_gpu_stretch *stretch, const struct graph *graph)
{
	void *const *gradient = graph->gradients;

	if (stretch->reads_samples && graph->slot != device->slot)
		return false;
	for (unsigned l = stretch->pass.first; l < stretch->pass.end && stretch->n_gradients; l++)
		for (unsigned i = 0; i < device->layers[l].model->n_tensors; i++)
			if (device->layers[l].gradients[i] != *gradient++)
				return false;
	return true;
}

static void note(const struct psd_device *device, const struct psd_gpu_stretch *stretch, struct graph *graph)
{
	void **gradient = graph->gradients;

	graph->slot = device->slot;
	for (unsigned l = stretch->pass.first; l < stretch->pass.end && stretch->n_gradients; l++)
		for (unsigned i = 0; i < device->layers[l].model->n_tensors; i++)
			*gradient++ = device->layers[l].gradients[i];
}

static struct graph *find_graph(const struct psd_device *device, const struct psd_gpu_stretch *stretch)
{
	struct graph *graph = stretch->graphs;

	while (graph && !is_same(device, stretch, graph))
		graph = graph->next;
	return graph;
}

/* ---- blobs that layers fill ---- */

static void set_filled(const struct psd_gpu_stretch *stretch, bool is_filled)
{
	for (unsigned i = 0; i < stretch->n_filled; i++)
		stretch->filled[i]->is_filled = is_filled;
}

/* Returns an upper limit for the length of `filled`: the number of blobs of the layers and of their inputs. */
static unsigned most_filled(const struct psd_device *device, const struct psd_pass *pass)
{
	unsigned n = 0;

	for (unsigned l = pass->first; l < pass->end && pass->is_backward; l++)
		n += 1 + device->layers[l].model->n_inputs;
	return n;
}

static void watch(struct psd_gpu_stretch *stretch, struct psd_gpu_blob *blob)
{
	for (unsigned i = 0; i < stretch->n_filled; i++)
		if (stretch->filled[i] == blob)
			return;
	if (!blob->is_filled)
		stretch->filled[stretch->n_filled++] = blob;
}

/* Lists, before the layers are launched, the blobs whose diff is not filled yet. */
static void watch_all(const struct psd_device *device, struct psd_gpu_stretch *stretch)
{
	for (unsigned l = stretch->pass.first; l < stretch->pass.end && stretch->pass.is_backward; l++) {
		const struct psd_gpu_layer *layer = &device->layers[l];

		watch(stretch, layer->blob);
		for (unsigned i = 0; i < layer->model->n_inputs; i++)
			watch(stretch, psd_gpu_input(layer, i));
	}
}

static void keep_filled(struct psd_gpu_stretch *stretch)
{
	unsigned n = 0;

	for (unsigned i = 0; i < stretch->n_filled; i++)
		if (stretch->filled[i]->is_filled)
			stretch->filled[n++] = stretch->filled[i];
	stretch->n_filled = n;
}

/* ---- beginning and recording ---- */

static enum psd_status begin_each(struct psd_device *device, const struct psd_pass *pass, struct psd_error *err)
{
	for (unsigned i = 0; i < pass->end - pass->first; i++) {
		const unsigned l = pass->is_backward ? pass->end - 1 - i : pass->first + i;

		PSD_TRY(psd_gpu_begin_layer(&device->layers[l], pass->is_backward, err));
	}
	return PSD_OK;
}

static bool varies(const struct psd_device *device, const struct psd_pass *pass)
{
	for (unsigned l = pass->first; l < pass->end && !pass->is_backward; l++)
		if (device->layers[l].kind->varies && device->layers[l].kind->varies(&device->layers[l]))
			return true;
	return false;
}

static void leave_out(struct psd_device *device, struct psd_gpu_stretch *stretch)
{
	stretch->is_left_out = true;
	device->recorded.left_out++;
}

/* Records the work of a stretch's layers as a graph. Marks blobs as filled, as launching the layers would do. */
static enum psd_status capture(struct psd_device *device, const struct psd_gpu_stretch *stretch,
			       struct CUgraphExec_st **launchable, struct psd_error *err)
{
	struct psd_error unheard;

	PSD_TRY(psd_gpu_begin_capture(device, err));
	const enum psd_status status = begin_each(device, &stretch->pass, err);
	const enum psd_status ended = psd_gpu_end_capture(device, launchable, status ? &unheard : err);
	if (status && !ended)
		psd_gpu_end_launchable(*launchable);
	return status ? status : ended;
}

/* Records that CUDA could not record a stretch; the reason of the first such failure is kept. */
static void refuse(struct psd_device *device, struct psd_gpu_stretch *stretch, const struct psd_error *why)
{
	if (device->recorded.refused++ == 0)
		device->recorded.why = *why;
	set_filled(stretch, false);
	leave_out(device, stretch);
}

/* Records a stretch as a graph and returns it. If that fails, returns NULL, and blobs are unchanged. */
static struct graph *record(struct psd_device *device, struct psd_gpu_stretch *stretch)
{
	struct graph *graph = calloc(1, sizeof(*graph) + stretch->n_gradients * sizeof(graph->gradients[0]));
	struct psd_error why;

	if (graph ? capture(device, stretch, &graph->launchable, &why) : psd_gpu_no_memory(&why)) {
		refuse(device, stretch, &why);
		free(graph);
		return NULL;
	}
	note(device, stretch, graph);
	graph->next = stretch->graphs;
	stretch->graphs = graph;
	stretch->n_graphs++;
	device->recorded.graphs++;
	return graph;
}

static enum psd_status launch(struct psd_device *device, const struct psd_gpu_stretch *stretch,
			      const struct graph *graph, struct psd_error *err)
{
	set_filled(stretch, true);
	return graph->launchable ? psd_gpu_launch(device, graph->launchable, err) : PSD_OK;
}

static struct psd_gpu_stretch *make_stretch(struct psd_device *device, const struct psd_pass *pass)
{
	struct psd_gpu_stretch *stretch =
		calloc(1, sizeof(*stretch) + most_filled(device, pass) * sizeof(stretch->filled[0]));

	if (!stretch)
		return NULL;
	stretch->pass = *pass;
	stretch->is_training = device->batch.is_training;
	for (unsigned l = pass->first; l < pass->end; l++) {
		stretch->reads_samples |= device->layers[l].reads_samples;
		stretch->n_gradients += pass->is_backward ? device->layers[l].model->n_tensors : 0;
	}
	stretch->next = device->layers[pass->first].stretches;
	device->layers[pass->first].stretches = stretch;
	return stretch;
}

/* Launches the layers call by call, then records them. */
static enum psd_status begin_first(struct psd_device *device, const struct psd_pass *pass, struct psd_error *err)
{
	struct psd_gpu_stretch *stretch = make_stretch(device, pass);

	if (!stretch)
		return psd_gpu_no_memory(err);
	watch_all(device, stretch);
	const enum psd_status status = begin_each(device, pass, err);
	keep_filled(stretch);
	if (!status && varies(device, pass)) {
		leave_out(device, stretch);
	} else if (!status) {
		set_filled(stretch, false);
		(void)record(device, stretch);
		set_filled(stretch, true);
	}
	return status;
}

static enum psd_status begin_again(struct psd_device *device, struct psd_gpu_stretch *stretch, struct psd_error *err)
{
	struct graph *graph = find_graph(device, stretch);

	if (!graph && !stretch->is_left_out && stretch->n_graphs < MOST_GRAPHS)
		graph = record(device, stretch);
	return graph ? launch(device, stretch, graph, err) : begin_each(device, &stretch->pass, err);
}

static struct psd_gpu_stretch *find_stretch(const struct psd_device *device, const struct psd_pass *pass)
{
	struct psd_gpu_stretch *stretch = device->layers[pass->first].stretches;

	while (stretch && (stretch->pass.end != pass->end || stretch->pass.is_backward != pass->is_backward ||
			   stretch->is_training != device->batch.is_training))
		stretch = stretch->next;
	return stretch;
}

enum psd_status psd_gpu_pass(struct psd_device *device, const struct psd_pass *pass, struct psd_error *err)
{
	PSD_TRY(psd_gpu_enter(device, err));
	for (unsigned l = pass->first; l < pass->end && !pass->is_backward; l++)
		if (device->layers[l].kind->check)
			PSD_TRY(device->layers[l].kind->check(&device->layers[l], err));
	if (device->options.is_without_graphs)
		return begin_each(device, pass, err);
	struct psd_gpu_stretch *stretch = find_stretch(device, pass);
	return stretch ? begin_again(device, stretch, err) : begin_first(device, pass, err);
}

static void end_stretch(struct psd_device *device, struct psd_gpu_stretch *stretch)
{
	while (stretch->graphs) {
		struct graph *graph = stretch->graphs;

		stretch->graphs = graph->next;
		psd_gpu_end_launchable(graph->launchable);
		free(graph);
		device->recorded.graphs--;
	}
	device->recorded.left_out -= stretch->is_left_out;
	free(stretch);
}

void psd_gpu_end_graphs(struct psd_device *device, struct psd_gpu_layer *layer)
{
	while (layer->stretches) {
		struct psd_gpu_stretch *stretch = layer->stretches;

		layer->stretches = stretch->next;
		end_stretch(device, stretch);
	}
}

bool psd_gpu_detour(const struct psd_device *device, struct psd_error *how)
{
	const struct psd_gpu_recorded *recorded = &device->recorded;

	if (recorded->refused == 0)
		return false;
	psd_error_set(how, PSD_ERUN, PSD_NOWHERE,
		      "%u of %u parts of an iteration cannot be a CUDA graph, and are launched call by call: %s",
		      recorded->refused, recorded->graphs + recorded->left_out, recorded->why.text);
	return true;
}
