/* Buffers: what a host keeps of an item to synchronise it. A row says where a buffer lies, how wide its values are and
 * how much of it there is. The program's copies follow from the places, the real executor's memory from the whole row;
 * a method names the buffers that its items have. */
#ifndef PSD_BUFFER_H
#define PSD_BUFFER_H

#include <stdbool.h>

enum psd_buffer {
	PSD_BUFFER_PARAMETER,	 /* of every item, as is its gradient */
	PSD_BUFFER_GRADIENT,	 /* on a device that updates it: of all workers, when the transfers are over */
	PSD_BUFFER_HISTORY,	 /* what the solver remembers of the updates of a device */
	PSD_BUFFER_FACTORS,	 /* every worker's, side by side */
	PSD_BUFFER_PART,	 /* at a shard: the parameters that it updates */
	PSD_BUFFER_PART_HISTORY, /* and what the solver remembers of them */
	PSD_BUFFER_RECEIVED,	 /* at a shard: every worker's gradient of its part, or their sum */
	PSD_BUFFERS
};

enum psd_extent {
	PSD_EXTENT_ITEM,	 /* all elements of an item */
	PSD_EXTENT_PART,	 /* a shard's part of each slice, nothing elsewhere */
	PSD_EXTENT_EACH_PART,	 /* so much for each worker */
	PSD_EXTENT_EACH_FACTORS, /* the two small matrices of each worker */
};

/* Of how many iterations it is there at a time, each of its own. */
enum psd_life {
	PSD_LIFE_RUN,	    /* one for all iterations */
	PSD_LIFE_UNDER_WAY, /* from a forward pass to what becomes of its gradient */
	PSD_LIFE_WINDOW,    /* as far as peers may be ahead, who write into it */
};

struct psd_buffer_row {
	bool is_on_device; /* else in its host's memory: to reach another host, it is copied there and back */
	bool is_copy;	   /* of what is on a device: nothing of its own where the device works in its host's memory */
	unsigned value_bytes; /* 0: those of the scenario's precision */
	enum psd_extent extent;
	enum psd_life life;
};

extern const struct psd_buffer_row psd_buffers[PSD_BUFFERS];

/* precision_bytes: a value's in the scenario's precision. Pure. */
unsigned psd_buffer_value_bytes(enum psd_buffer buffer, unsigned precision_bytes);

#endif
