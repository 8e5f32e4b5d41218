/* The table of buffers. */
#include "engine/program/buffer.h"

#include <assert.h>

const struct psd_buffer_row psd_buffers[PSD_BUFFERS] = {
	[PSD_BUFFER_PARAMETER] = {.name = "parameter",
				  .is_on_device = true,
				  .extent = PSD_EXTENT_ITEM,
				  .life = PSD_LIFE_RUN,
				  .on_wire = PSD_BUFFER_ENCODED_PARAMETER},
	[PSD_BUFFER_GRADIENT] = {.name = "gradient",
				 .is_on_device = true,
				 .extent = PSD_EXTENT_ITEM,
				 .life = PSD_LIFE_UNDER_WAY,
				 .on_wire = PSD_BUFFER_ENCODED_GRADIENT},
	[PSD_BUFFER_HISTORY] = {.name = "history",
				.is_on_device = true,
				.width = PSD_WIDTH_FP32,
				.extent = PSD_EXTENT_ITEM,
				.life = PSD_LIFE_RUN,
				.on_wire = PSD_BUFFERS},
	[PSD_BUFFER_START] = {.name = "start",
			      .is_on_device = true,
			      .extent = PSD_EXTENT_ITEM,
			      .life = PSD_LIFE_RUN,
			      .on_wire = PSD_BUFFERS},
	[PSD_BUFFER_FACTORS] = {.name = "factors",
				.is_on_device = true,
				.extent = PSD_EXTENT_EACH_FACTORS,
				.life = PSD_LIFE_WINDOW,
				.on_wire = PSD_BUFFER_ENCODED_FACTORS},
	[PSD_BUFFER_RESIDUAL] = {.name = "residual",
				 .is_on_device = true,
				 .width = PSD_WIDTH_FP32,
				 .extent = PSD_EXTENT_ITEM,
				 .life = PSD_LIFE_RUN,
				 .on_wire = PSD_BUFFERS},
	[PSD_BUFFER_CHOSEN] = {.name = "chosen",
			       .is_on_device = true,
			       .extent = PSD_EXTENT_ITEM,
			       .life = PSD_LIFE_UNDER_WAY,
			       .on_wire = PSD_BUFFER_ENCODED_GRADIENT},
	[PSD_BUFFER_NORMS] = {.name = "norms",
			      .is_on_device = true,
			      .width = PSD_WIDTH_FP32,
			      .extent = PSD_EXTENT_ITEM,
			      .life = PSD_LIFE_UNDER_WAY,
			      .on_wire = PSD_BUFFER_NORMS},
	[PSD_BUFFER_MASTER] = {.name = "master",
			       .is_on_device = true,
			       .is_copy = true,
			       .extent = PSD_EXTENT_ROOT,
			       .life = PSD_LIFE_RUN,
			       .on_wire = PSD_BUFFER_ENCODED_PARAMETER},
	[PSD_BUFFER_PART] = {.name = "part",
			     .is_copy = true,
			     .extent = PSD_EXTENT_PART,
			     .life = PSD_LIFE_RUN,
			     .on_wire = PSD_BUFFER_ENCODED_PARAMETER},
	[PSD_BUFFER_PART_HISTORY] = {.name = "part_history",
				     .width = PSD_WIDTH_FP32,
				     .extent = PSD_EXTENT_PART,
				     .life = PSD_LIFE_RUN,
				     .on_wire = PSD_BUFFERS},
	[PSD_BUFFER_MEMBERS] = {.name = "members",
				.width = PSD_WIDTH_WIRE,
				.extent = PSD_EXTENT_EACH_MEMBER,
				.life = PSD_LIFE_UNDER_WAY,
				.on_wire = PSD_BUFFER_MEMBERS},
	[PSD_BUFFER_RECEIVED] = {.name = "received",
				 .width = PSD_WIDTH_WIRE,
				 .extent = PSD_EXTENT_EACH_PART,
				 .life = PSD_LIFE_UNDER_WAY,
				 .on_wire = PSD_BUFFER_RECEIVED},
	[PSD_BUFFER_ENCODED_GRADIENT] = {.name = "encoded_gradient",
					 .is_encoded = true,
					 .width = PSD_WIDTH_WIRE,
					 .extent = PSD_EXTENT_ITEM,
					 .life = PSD_LIFE_UNDER_WAY,
					 .on_wire = PSD_BUFFER_ENCODED_GRADIENT},
	[PSD_BUFFER_ENCODED_PARAMETER] = {.name = "encoded_parameter",
					  .is_encoded = true,
					  .width = PSD_WIDTH_WIRE,
					  .extent = PSD_EXTENT_ITEM,
					  .life = PSD_LIFE_UNDER_WAY,
					  .on_wire = PSD_BUFFER_ENCODED_PARAMETER},
	[PSD_BUFFER_ENCODED_FACTORS] = {.name = "encoded_factors",
					.is_encoded = true,
					.width = PSD_WIDTH_WIRE,
					.extent = PSD_EXTENT_EACH_FACTORS,
					.life = PSD_LIFE_WINDOW,
					.on_wire = PSD_BUFFER_ENCODED_FACTORS},
};

unsigned psd_buffer_value_bytes(enum psd_buffer buffer, unsigned precision_bytes, const struct psd_encoding *wire)
{
	switch (psd_buffers[buffer].width) {
	case PSD_WIDTH_PRECISION: break;
	case PSD_WIDTH_FP32: return sizeof(float);
	case PSD_WIDTH_WIRE: return wire->is_lossy ? wire->value_bytes : precision_bytes;
	}
	return precision_bytes;
}

enum psd_buffer psd_buffer_on_wire(enum psd_buffer buffer, const struct psd_encoding *wire)
{
	assert(psd_buffers[buffer].on_wire < PSD_BUFFERS);
	return wire->is_lossy ? psd_buffers[buffer].on_wire : buffer;
}
