/* The network's input. It takes no FLOPs: reading data is not part of a graph. */
#include "engine/model/layer.h"

static enum psd_status infer(struct psd_layer *layer, const struct psd_layer *layers, struct psd_place at,
			     struct psd_error *err)
{
	(void)layers, (void)at, (void)err;
	layer->shape = layer->settings.shape;
	return PSD_OK;
}

const struct psd_layer_kind psd_layer_input = {.name = "input", .infer = infer};
