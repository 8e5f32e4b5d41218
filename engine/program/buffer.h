/* Buffers: values that a host keeps of an item to synchronise it. A row says where a buffer lies, how wide its values
 * are and how many there are. The program's copies follow from that, and so does the memory of a real run; a method
 * names the buffers of its items. */
#ifndef PSD_BUFFER_H
#define PSD_BUFFER_H

#include <stdbool.h>

#include "engine/encodings/encoding.h"

enum psd_buffer {
	PSD_BUFFER_PARAMETER,	  /* every item has one, and a gradient */
	PSD_BUFFER_GRADIENT,	  /* on a device that updates: sum of all workers', after the transfers */
	PSD_BUFFER_HISTORY,	  /* momentum of the device's updates */
	PSD_BUFFER_SQUARES,	  /* adaptive solvers: mean of squared gradients */
	PSD_BUFFER_START,	  /* local steps: parameters after the last exchange */
	PSD_BUFFER_FACTORS,	  /* factors of all workers, side by side */
	PSD_BUFFER_RESIDUAL,	  /* error feedback: parts of gradients for later iterations */
	PSD_BUFFER_CHOSEN,	  /* chunks that travel, without gaps; then their sums over workers */
	PSD_BUFFER_NORMS,	  /* norm of each chunk; then the sum over workers */
	PSD_BUFFER_MASTER,	  /* at an item's root: parameters that it updates */
	PSD_BUFFER_PART,	  /* at a shard: parameters that it updates */
	PSD_BUFFER_PART_HISTORY,  /* at a shard: momentum of its updates */
	PSD_BUFFER_PART_SQUARES,  /* at a shard: mean of squared gradients */
	PSD_BUFFER_MEMBERS,	  /* at a leader: gradients of its node's other workers */
	PSD_BUFFER_RECEIVED,	  /* at a shard: gradients of its part from every worker or leader, or their sum */
	PSD_BUFFER_VELOCITY,	  /* a worker's momentum before compression */
	PSD_BUFFER_PACKED,	  /* compressed gradient */
	PSD_BUFFER_PACKED_PARTS,  /* at a shard: compressed gradients of its part from every worker */
	PSD_BUFFER_PART_RESIDUAL, /* at a shard: error feedback of its compressed sums */
	PSD_BUFFER_PACKED_SUM,	  /* compressed sum over workers; a shard makes its part */
	PSD_BUFFER_LEFT,  /* low rank: a worker's left matrix; then the sum over workers; then its orthonormal basis */
	PSD_BUFFER_RIGHT, /* low rank: projection of gradients on that basis; then the sum over workers; the next
			     iteration starts there */
	PSD_BUFFER_ENCODED_GRADIENT, /* these three as they travel, outbound and received */
	PSD_BUFFER_ENCODED_PARAMETER,
	PSD_BUFFER_ENCODED_FACTORS,
	PSD_BUFFERS
};

enum psd_extent {
	PSD_EXTENT_ITEM,	    /* all elements of an item */
	PSD_EXTENT_ROOT,	    /* all elements on the item's root, none elsewhere */
	PSD_EXTENT_PART,	    /* a shard's part of each slice, none elsewhere */
	PSD_EXTENT_EACH_PART,	    /* a shard's part for each worker */
	PSD_EXTENT_EACH_MEMBER,	    /* at a leader, all elements for each other worker of its node; none elsewhere */
	PSD_EXTENT_BLOCKS,	    /* all blocks of an item */
	PSD_EXTENT_BLOCK_PART,	    /* elements of a shard's part of the blocks, none elsewhere */
	PSD_EXTENT_EACH_BLOCK_PART, /* that part of the blocks for each worker */
	PSD_EXTENT_LEFT,	    /* left matrices of an item's tensors, and tensors without one */
	PSD_EXTENT_RIGHT,	    /* right matrices */
	PSD_EXTENT_EACH_FACTORS,    /* the two small matrices of each worker */
};

/* Number of iterations that have a copy of their own at a time. */
enum psd_lifetime {
	PSD_LIFETIME_RUN,	/* one for all iterations */
	PSD_LIFETIME_UNDER_WAY, /* from the forward pass to the end of its gradient */
	/* Other hosts write into it, also ahead of this host. There are as many unread copies as iterations under way,
	 * and others may be as many ahead: they wait for this host's messages in each. */
	PSD_LIFETIME_AHEAD,
};

/* Width of a value. */
enum psd_width {
	PSD_WIDTH_PRECISION, /* the scenario's precision */
	PSD_WIDTH_FP32,
	PSD_WIDTH_WIRE,	 /* the encoding on the wire */
	PSD_WIDTH_BLOCK, /* compressed blocks in place of values */
};

struct psd_buffer_row {
	const char *name;  /* key in checkpoints, which change with it */
	bool is_on_device; /* otherwise in its host's memory, to which it is copied to reach another host */
	/* Copy of a device's parameters: takes no memory where host and device share theirs, and nothing is lost on the
	 * way. */
	bool is_copy;
	bool is_encoded; /* takes no memory where values travel as they are; on a device with memory of its own, too */
	enum psd_width width;
	enum psd_extent extent;
	enum psd_lifetime life;
	/* Buffer of its values as they travel, if their encoding is lossy; PSD_BUFFERS: they do not travel. */
	enum psd_buffer on_wire;
};

extern const struct psd_buffer_row psd_buffers[PSD_BUFFERS];

/* Widths for the buffers of a plan. */
struct psd_widths {
	unsigned precision_bytes; /* bytes of a value in the scenario's precision */
	const struct psd_encoding *wire;
	unsigned block_bytes; /* bytes of a compressed block */
};
/* Pure. */
unsigned psd_buffer_value_bytes(enum psd_buffer buffer, const struct psd_widths *widths);
/* Buffer that messages are read from or written to in its place. Pure. */
enum psd_buffer psd_buffer_on_wire(enum psd_buffer buffer, const struct psd_encoding *wire);

#endif
