/* The table of buffers. */
#include "engine/program/buffer.h"

const struct psd_buffer_row psd_buffers[PSD_BUFFERS] = {
	[PSD_BUFFER_PARAMETER] = {.is_on_device = true, .extent = PSD_EXTENT_ITEM, .life = PSD_LIFE_RUN},
	[PSD_BUFFER_GRADIENT] = {.is_on_device = true, .extent = PSD_EXTENT_ITEM, .life = PSD_LIFE_UNDER_WAY},
	[PSD_BUFFER_HISTORY] = {.is_on_device = true,
				.value_bytes = 4,
				.extent = PSD_EXTENT_ITEM,
				.life = PSD_LIFE_RUN},
	[PSD_BUFFER_FACTORS] = {.is_on_device = true, .extent = PSD_EXTENT_EACH_FACTORS, .life = PSD_LIFE_WINDOW},
	[PSD_BUFFER_PART] = {.is_copy = true, .extent = PSD_EXTENT_PART, .life = PSD_LIFE_RUN},
	[PSD_BUFFER_PART_HISTORY] = {.value_bytes = 4, .extent = PSD_EXTENT_PART, .life = PSD_LIFE_RUN},
	[PSD_BUFFER_RECEIVED] = {.extent = PSD_EXTENT_EACH_PART, .life = PSD_LIFE_UNDER_WAY},
};

unsigned psd_buffer_value_bytes(enum psd_buffer buffer, unsigned precision_bytes)
{
	return psd_buffers[buffer].value_bytes > 0 ? psd_buffers[buffer].value_bytes : precision_bytes;
}
