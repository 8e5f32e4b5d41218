/* Buffers: what a host keeps of an item to synchronise it. A row says where a buffer lies, how wide its values are and
 * how much of it there is. The program's copies follow from the places, the real executor's memory from the whole row;
 * a method names the buffers that its items have. */
#ifndef PSD_BUFFER_H
#define PSD_BUFFER_H

#include <stdbool.h>

#include "engine/encodings/encoding.h"

enum psd_buffer {
	PSD_BUFFER_PARAMETER,	  /* of every item, as is its gradient */
	PSD_BUFFER_GRADIENT,	  /* on a device that updates it: of all workers, when the transfers are over */
	PSD_BUFFER_HISTORY,	  /* what the solver remembers of the updates of a device */
	PSD_BUFFER_SQUARES,	  /* and, of an adaptive one, of the squares of gradients */
	PSD_BUFFER_START,	  /* with local steps: the parameters that the last exchange has left */
	PSD_BUFFER_FACTORS,	  /* every worker's, side by side */
	PSD_BUFFER_RESIDUAL,	  /* of gradients that were held back, what is left for later ones */
	PSD_BUFFER_CHOSEN,	  /* the chunks of a gradient that travel, without gaps; of all workers, in the end */
	PSD_BUFFER_NORMS,	  /* of each chunk; of all workers, in the end */
	PSD_BUFFER_MASTER,	  /* at an item's root: the parameters that it updates */
	PSD_BUFFER_PART,	  /* at a shard: the parameters that it updates */
	PSD_BUFFER_PART_HISTORY,  /* and what the solver remembers of them */
	PSD_BUFFER_PART_SQUARES,  /* squares of their gradients, too */
	PSD_BUFFER_MEMBERS,	  /* at a leader: the gradients of its node's other workers */
	PSD_BUFFER_RECEIVED,	  /* at a shard: every worker's gradient of its part, or leader's, or their sum */
	PSD_BUFFER_VELOCITY,	  /* what momentum has made of a worker's gradients before they are compressed */
	PSD_BUFFER_PACKED,	  /* a compressed gradient */
	PSD_BUFFER_PACKED_PARTS,  /* at a shard: every worker's of its part */
	PSD_BUFFER_PART_RESIDUAL, /* and what was lost of the sums of its part, for later ones */
	PSD_BUFFER_PACKED_SUM,	  /* the compressed sum of all workers' gradients; a shard makes its part of it */
	PSD_BUFFER_LEFT,	  /* of low rank: every worker's own; summed; an orthonormal basis of the sum */
	PSD_BUFFER_RIGHT, /* and what gradients have in it: a worker's own, then of all; the next one starts there */
	PSD_BUFFER_ENCODED_GRADIENT, /* these three as they travel: on the way out, and as they have arrived */
	PSD_BUFFER_ENCODED_PARAMETER,
	PSD_BUFFER_ENCODED_FACTORS,
	PSD_BUFFERS
};

enum psd_extent {
	PSD_EXTENT_ITEM,	    /* all elements of an item */
	PSD_EXTENT_ROOT,	    /* the same on the item's root, nothing elsewhere */
	PSD_EXTENT_PART,	    /* a shard's part of each slice, nothing elsewhere */
	PSD_EXTENT_EACH_PART,	    /* so much for each worker */
	PSD_EXTENT_EACH_MEMBER,	    /* at a leader, all elements for each other worker of its node; nothing elsewhere */
	PSD_EXTENT_BLOCKS,	    /* all blocks of an item */
	PSD_EXTENT_BLOCK_PART,	    /* the elements of a shard's part of the blocks, nothing elsewhere */
	PSD_EXTENT_EACH_BLOCK_PART, /* that part of the blocks for each worker */
	PSD_EXTENT_LEFT,	    /* the left narrow matrices of an item's tensors, and tensors without */
	PSD_EXTENT_RIGHT,	    /* the right ones */
	PSD_EXTENT_EACH_FACTORS,    /* the two small matrices of each worker */
};

/* Of how many iterations it is there at a time, each of its own. */
enum psd_lifetime {
	PSD_LIFETIME_RUN,	/* one for all iterations */
	PSD_LIFETIME_UNDER_WAY, /* from a forward pass to what becomes of its gradient */
	/* Others write into it whether this host is as far or not. What of theirs it has not used is of as many
	 * iterations as may be under way, and they may be as many ahead: they wait for what it sends in each. */
	PSD_LIFETIME_AHEAD,
};

/* How wide its values are. */
enum psd_width {
	PSD_WIDTH_PRECISION, /* as the scenario's precision */
	PSD_WIDTH_FP32,
	PSD_WIDTH_WIRE,	 /* as they travel */
	PSD_WIDTH_BLOCK, /* compressed blocks stand for values */
};

struct psd_buffer_row {
	const char *name;  /* in checkpoints; with another name older ones cannot be read */
	bool is_on_device; /* else in its host's memory: to reach another host, it is copied there and back */
	/* Of the parameters on a device: nothing of its own where a host has these in its memory or they in its
	 * device's, and nothing is lost on the way. */
	bool is_copy;
	bool is_encoded; /* nothing where values travel as they are; on a device with memory of its own, too */
	enum psd_width width;
	enum psd_extent extent;
	enum psd_lifetime life;
	/* Where its values are as they travel, if their encoding is lossy; PSD_BUFFERS: they do not travel. */
	enum psd_buffer on_wire;
};

extern const struct psd_buffer_row psd_buffers[PSD_BUFFERS];

/* What says it for the buffers of a plan. */
struct psd_widths {
	unsigned precision_bytes; /* a value's in the scenario's precision */
	const struct psd_encoding *wire;
	unsigned block_bytes; /* a compressed block's */
};
/* Pure. */
unsigned psd_buffer_value_bytes(enum psd_buffer buffer, const struct psd_widths *widths);
/* What is read or written in its place where messages are made or arrive. Pure. */
enum psd_buffer psd_buffer_on_wire(enum psd_buffer buffer, const struct psd_encoding *wire);

#endif
