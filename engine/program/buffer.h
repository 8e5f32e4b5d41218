/* Buffers: arrays that a host keeps to synchronise an item (bucket), such as its gradients or residuals. psd_buffers
 * describes each: in which memory it is, the width of its values and their number. From that follow the copy operations
 * of a program and the memory of a real run. A method lists the buffers that its items need. */
#ifndef PSD_BUFFER_H
#define PSD_BUFFER_H

#include <stdbool.h>

#include "engine/encodings/encoding.h"

enum psd_buffer {
	PSD_BUFFER_PARAMETER, /* parameters; every item has this buffer and the next */
	/* gradient of a worker; if devices update the parameters, it becomes the sum over workers */
	PSD_BUFFER_GRADIENT,
	PSD_BUFFER_HISTORY, /* momentum, if the device updates parameters */
	PSD_BUFFER_SQUARES, /* adaptive solvers: mean of squared gradients, if the device updates parameters */
	PSD_BUFFER_START,   /* local SGD: parameters before the first local step after an exchange */
	/* factors of linear layers' gradients: those of all workers, one worker behind the other */
	PSD_BUFFER_FACTORS,
	PSD_BUFFER_RESIDUAL, /* error feedback: residuals of gradients, kept for later iterations */
	/* sparse all-reduce: the chunks to send, one behind the other; then their sums over workers */
	PSD_BUFFER_CHOSEN,
	PSD_BUFFER_NORMS,	  /* sparse all-reduce: norm of each chunk; then the sum of the norms over workers */
	PSD_BUFFER_MASTER,	  /* at an item's root: parameters that the root updates */
	PSD_BUFFER_PART,	  /* at a shard: parameters that the shard updates */
	PSD_BUFFER_PART_HISTORY,  /* at a shard: momentum of its updates */
	PSD_BUFFER_PART_SQUARES,  /* at a shard: mean of squared gradients for its updates */
	PSD_BUFFER_MEMBERS,	  /* at a node's leader: gradients of the node's other workers */
	PSD_BUFFER_RECEIVED,	  /* at a shard: gradients of its part from every worker or leader, or their sum */
	PSD_BUFFER_VELOCITY,	  /* a worker's momentum that is applied before compression */
	PSD_BUFFER_PACKED,	  /* a worker's compressed gradient */
	PSD_BUFFER_PACKED_PARTS,  /* at a shard: compressed gradients of its part from every worker */
	PSD_BUFFER_PART_RESIDUAL, /* at a shard: residual of its compressed sums (error feedback) */
	PSD_BUFFER_PACKED_SUM,	  /* compressed sum of gradients over workers; each shard computes its part */
	PSD_BUFFER_LEFT, /* low rank: a worker's left matrix; then the sum over workers; then its orthonormal basis */
	/* low rank: right matrix, the gradient's projection on that basis; then the sum over workers; the next
	 * iteration starts with it */
	PSD_BUFFER_RIGHT,
	PSD_BUFFER_ENCODED_GRADIENT,  /* gradients in their encoding on the wire, to send and received */
	PSD_BUFFER_ENCODED_PARAMETER, /* parameters in their encoding on the wire, to send and received */
	PSD_BUFFER_ENCODED_FACTORS,   /* factors in their encoding on the wire, to send and received */
	PSD_BUFFERS
};

/* Number of values in a buffer, for one item and one host. */
enum psd_extent {
	PSD_EXTENT_ITEM,      /* all elements of an item */
	PSD_EXTENT_ROOT,      /* all elements on the item's root, no values elsewhere */
	PSD_EXTENT_PART,      /* on a shard, the shard's part of each slice; no values on other hosts */
	PSD_EXTENT_EACH_PART, /* on a shard, its part of each slice, once for every worker */
	/* on a node's leader, all elements once for each other worker of the node; no values elsewhere */
	PSD_EXTENT_EACH_MEMBER,
	PSD_EXTENT_BLOCKS,	    /* all blocks of a compressed item */
	PSD_EXTENT_BLOCK_PART,	    /* on a shard, the elements of its part of the blocks; no values on other hosts */
	PSD_EXTENT_EACH_BLOCK_PART, /* on a shard, its part of the blocks, once for every worker */
	/* left matrices of an item's tensors; all elements of a tensor that has no low-rank factors */
	PSD_EXTENT_LEFT,
	PSD_EXTENT_RIGHT,	 /* right matrices of an item's tensors */
	PSD_EXTENT_EACH_FACTORS, /* both factors of a linear layer's gradient, once for every worker */
};

/* Number of copies of a buffer, which iterations that are under way at the same time use in turn. */
enum psd_lifetime {
	PSD_LIFETIME_RUN, /* one copy for all iterations */
	/* a copy for each iteration under way, in use from the forward pass until the gradient is no longer needed */
	PSD_LIFETIME_UNDER_WAY,
	/* Twice as many copies: other hosts write into the buffer, also before this host has reached the iteration.
	 * They wait for this host's messages in each iteration, so they are ahead by no more than the number of
	 * iterations under way. */
	PSD_LIFETIME_AHEAD,
};

/* Width of a value in a buffer. */
enum psd_width {
	PSD_WIDTH_PRECISION, /* width of the scenario's precision */
	PSD_WIDTH_FP32,
	PSD_WIDTH_WIRE,	 /* width of the encoding on the wire */
	PSD_WIDTH_BLOCK, /* width of a compressed block; the buffer's elements are blocks */
};

/* Description of a buffer. */
struct psd_buffer_row {
	const char *name; /* key of the buffer in checkpoint files; a changed name makes old files unreadable */
	/* the buffer is in the device's memory; false: in the host's memory, from which messages are sent */
	bool is_on_device;
	/* The buffer is a copy of a device's parameters. It needs no memory if host and device share their memory, and
	 * its values never lose precision. */
	bool is_copy;
	/* the values are in their encoding on the wire; the buffer needs no memory if values travel unencoded */
	bool is_encoded;
	enum psd_width width;
	enum psd_extent extent;
	enum psd_lifetime life;
	/* Buffer that has the same values in their encoding on the wire, used if that encoding is lossy; PSD_BUFFERS:
	 * the values do not travel. */
	enum psd_buffer on_wire;
};

/* Descriptions of all buffers, by enum psd_buffer. */
extern const struct psd_buffer_row psd_buffers[PSD_BUFFERS];

/* Widths of the buffers' values for a plan, bytes. */
struct psd_widths {
	unsigned precision_bytes;	 /* bytes of a value in the scenario's precision */
	const struct psd_encoding *wire; /* encoding of values on the wire */
	unsigned block_bytes;		 /* bytes of one compressed block */
};
/* Returns the bytes of one value (or compressed block) of a buffer. Pure. */
unsigned psd_buffer_value_bytes(enum psd_buffer buffer, const struct psd_widths *widths);
/* Returns the buffer that messages read and write in place of this buffer: its on_wire if the encoding is lossy,
 * otherwise the buffer itself. Pure. */
enum psd_buffer psd_buffer_on_wire(enum psd_buffer buffer, const struct psd_encoding *wire);

#endif
