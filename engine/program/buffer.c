/* The table of buffers. */
#include "engine/program/buffer.h"

#include <assert.h>

/* Shorter names for the memory in which a buffer is. */
#define ON_DEVICE      .is_on_device = true
#define IN_HOST	       .is_on_device = false
#define UPDATED_THERE  .is_on_device = true, .is_of_updates = true
#define COPY_ON_DEVICE .is_on_device = true, .is_copy = true
#define COPY_IN_HOST   .is_on_device = false, .is_copy = true
#define ENCODED	       .is_on_device = false, .is_encoded = true
/* Shorter name for psd_buffer_row.on_wire. */
#define AS(buffer) PSD_BUFFER_##buffer
#define STAYS	   PSD_BUFFERS
#define ROW(buffer, text, lies, values, all, host, often, lasts, travels)                                              \
	[PSD_BUFFER_##buffer] = {.name = (text),                                                                       \
				 lies,                                                                                 \
				 .width = PSD_WIDTH_##values,                                                          \
				 .content = PSD_CONTENT_##all,                                                         \
				 .owner = PSD_OWNER_##host,                                                            \
				 .times = PSD_TIMES_##often,                                                           \
				 .life = PSD_LIFETIME_##lasts,                                                         \
				 .on_wire = (travels)}

const struct psd_buffer_row psd_buffers[PSD_BUFFERS] = {
	ROW(PARAMETER, "parameter", ON_DEVICE, PRECISION, ELEMENTS, ALL, ONCE, RUN, AS(ENCODED_PARAMETER)),
	ROW(GRADIENT, "gradient", ON_DEVICE, PRECISION, ELEMENTS, ALL, ONCE, UNDER_WAY, AS(ENCODED_GRADIENT)),
	ROW(HISTORY, "history", UPDATED_THERE, FP32, ELEMENTS, ALL, ONCE, RUN, STAYS),
	ROW(SQUARES, "squares", UPDATED_THERE, FP32, ELEMENTS, ALL, ONCE, RUN, STAYS),
	ROW(SUM, "sum", UPDATED_THERE, PRECISION, ELEMENTS, ALL, ONCE, UNDER_WAY, STAYS),
	ROW(OWN, "own", UPDATED_THERE, FP32, ELEMENTS, ALL, ONCE, RUN, AS(OWN)),
	ROW(START, "start", ON_DEVICE, PRECISION, ELEMENTS, ALL, ONCE, RUN, STAYS),
	ROW(SENT, "sent", ON_DEVICE, PRECISION, ELEMENTS, ALL, ONCE, RUN, STAYS),
	ROW(OUTER, "outer", ON_DEVICE, FP32, ELEMENTS, ALL, ONCE, RUN, STAYS),
	ROW(KEPT, "kept", ON_DEVICE, PRECISION, ELEMENTS, ALL, ONCE, UNDER_WAY, STAYS),
	ROW(KEPT_HISTORY, "kept_history", ON_DEVICE, FP32, ELEMENTS, ALL, ONCE, RUN, STAYS),
	ROW(OWN_HISTORY, "own_history", ON_DEVICE, FP32, ELEMENTS, ALL, ONCE, RUN, STAYS),
	ROW(FACTORS, "factors", ON_DEVICE, PRECISION, FACTORS, ALL, SENDERS, AHEAD, AS(ENCODED_FACTORS)),
	ROW(RESIDUAL, "residual", ON_DEVICE, FP32, ELEMENTS, ALL, ONCE, RUN, STAYS),
	ROW(CHOSEN, "chosen", ON_DEVICE, PRECISION, ELEMENTS, ALL, ONCE, UNDER_WAY, AS(ENCODED_GRADIENT)),
	ROW(NORMS, "norms", ON_DEVICE, FP32, ELEMENTS, ALL, ONCE, UNDER_WAY, AS(NORMS)),
	ROW(MASTER, "master", COPY_ON_DEVICE, PRECISION, ELEMENTS, ROOT, ONCE, RUN, AS(ENCODED_PARAMETER)),
	ROW(PART, "part", COPY_IN_HOST, PRECISION, ELEMENTS, SHARDS, ONCE, RUN, AS(ENCODED_PARAMETER)),
	ROW(PART_HISTORY, "part_history", IN_HOST, FP32, ELEMENTS, SHARDS, ONCE, RUN, STAYS),
	ROW(PART_SQUARES, "part_squares", IN_HOST, FP32, ELEMENTS, SHARDS, ONCE, RUN, STAYS),
	ROW(PART_OUTER, "part_outer", IN_HOST, FP32, ELEMENTS, SHARDS, ONCE, RUN, STAYS),
	ROW(MEMBERS, "members", IN_HOST, WIRE, ELEMENTS, LEADERS, MEMBERS, UNDER_WAY, AS(MEMBERS)),
	ROW(RECEIVED, "received", IN_HOST, WIRE, ELEMENTS, SHARDS, SENDERS, UNDER_WAY, AS(RECEIVED)),
	ROW(VELOCITY, "velocity", ON_DEVICE, FP32, ELEMENTS, ALL, ONCE, RUN, STAYS),
	ROW(PACKED, "packed", ON_DEVICE, BLOCK, BLOCKS, ALL, ONCE, UNDER_WAY, AS(PACKED)),
	ROW(PACKED_PARTS, "packed_parts", IN_HOST, BLOCK, BLOCKS, SHARDS, SENDERS, UNDER_WAY, AS(PACKED_PARTS)),
	ROW(PART_RESIDUAL, "part_residual", IN_HOST, FP32, BLOCK_ELEMENTS, SHARDS, ONCE, RUN, STAYS),
	ROW(PACKED_SUM, "packed_sum", ON_DEVICE, BLOCK, BLOCKS, ALL, ONCE, UNDER_WAY, AS(PACKED_SUM)),
	ROW(LEFT, "left", ON_DEVICE, FP32, LEFT, ALL, ONCE, UNDER_WAY, AS(LEFT)),
	ROW(RIGHT, "right", ON_DEVICE, FP32, RIGHT, ALL, ONCE, RUN, AS(RIGHT)),
	ROW(ENCODED_GRADIENT, "encoded_gradient", ENCODED, WIRE, ELEMENTS, ALL, ONCE, UNDER_WAY, AS(ENCODED_GRADIENT)),
	ROW(ENCODED_PARAMETER, "encoded_parameter", ENCODED, WIRE, ELEMENTS, ALL, ONCE, UNDER_WAY,
	    AS(ENCODED_PARAMETER)),
	ROW(ENCODED_FACTORS, "encoded_factors", ENCODED, WIRE, FACTORS, ALL, SENDERS, AHEAD, AS(ENCODED_FACTORS)),
};

unsigned psd_buffer_value_bytes(enum psd_buffer buffer, const struct psd_widths *widths)
{
	switch (psd_buffers[buffer].width) {
	case PSD_WIDTH_PRECISION: break;
	case PSD_WIDTH_FP32: return sizeof(float);
	case PSD_WIDTH_WIRE: return widths->wire->is_lossy ? widths->wire->value_bytes : widths->precision_bytes;
	case PSD_WIDTH_BLOCK: return widths->block_bytes;
	}
	return widths->precision_bytes;
}

enum psd_buffer psd_buffer_on_wire(enum psd_buffer buffer, const struct psd_encoding *wire)
{
	assert(psd_buffers[buffer].on_wire < PSD_BUFFERS);
	return wire->is_lossy ? psd_buffers[buffer].on_wire : buffer;
}

bool psd_buffer_is_sum(enum psd_buffer buffer)
{
	return psd_buffers[buffer].content == PSD_CONTENT_ELEMENTS && psd_buffers[buffer].times == PSD_TIMES_SENDERS;
}
