/* The mean over the whole map. */
#include "engine/model/layer.h"

static enum psd_status infer(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
			     struct psd_error *err)
{
	(void)layers, (void)at, (void)err;
	layer->shape.height = layer->shape.width = 1;
	return PSD_OK;
}

/* An addition at each place; backward one value goes to each. */
static struct psd_layer_work count(const struct psd_layer *layer, struct psd_shape in)
{
	const uint64_t places = (uint64_t)in.height * in.width;

	return psd_layer_work_per_element(layer, places, places, 0);
}

const struct psd_layer_kind psd_layer_global_pool = {
	.name = "global-pool",
	.least_inputs = 1,
	.infer = infer,
	.count = count,
};
