/* Buffers: values that a host keeps of an item to synchronise it. A row tells where a buffer lies, how wide its values
 * are and how many there are. The program's copies follow from that, and so does the memory of a real run. A method
 * names the buffers of its items. */
#ifndef PSD_BUFFER_H
#define PSD_BUFFER_H

#include <stdbool.h>

#include "engine/encodings/encoding.h"

enum psd_buffer {
	PSD_BUFFER_PARAMETER,	  /* parameters; every item has them, and a gradient */
	PSD_BUFFER_GRADIENT,	  /* gradient of a worker; where the device updates, then the sum over workers */
	PSD_BUFFER_HISTORY,	  /* momentum, where the device updates parameters */
	PSD_BUFFER_SQUARES,	  /* adaptive solvers: mean of squared gradients, where the device updates */
	PSD_BUFFER_START,	  /* factors of linear layers' gradients, of all workers side by side */
	PSD_BUFFER_FACTORS,	  /* low-rank factors (of linear layers' gradients) of all workers, side by side */
	PSD_BUFFER_RESIDUAL,	  /* error feedback: residuals of gradients, kept for later iterations */
	PSD_BUFFER_CHOSEN,	  /* sparse plans: chunks to send, without gaps; then their sums over workers */
	PSD_BUFFER_NORMS,	  /* sparse plans: norm of each chunk; then the sum over workers */
	PSD_BUFFER_MASTER,	  /* at an item's root: parameters that the root updates */
	PSD_BUFFER_PART,	  /* at a shard: parameters that the shard updates */
	PSD_BUFFER_PART_HISTORY,  /* at a shard: momentum of its updates */
	PSD_BUFFER_PART_SQUARES,  /* at a shard: mean of squared gradients for its updates */
	PSD_BUFFER_MEMBERS,	  /* at a node's leader: gradients of the node's other workers */
	PSD_BUFFER_RECEIVED,	  /* at a shard: gradients of its part from every worker or leader, or their sum */
	PSD_BUFFER_VELOCITY,	  /* a worker's momentum, applied before compression */
	PSD_BUFFER_PACKED,	  /* a worker's compressed gradient */
	PSD_BUFFER_PACKED_PARTS,  /* at a shard: compressed gradients of its part from every worker */
	PSD_BUFFER_PART_RESIDUAL, /* at a shard: residual of its compressed sums (error feedback) */
	PSD_BUFFER_PACKED_SUM,	  /* compressed sum over workers; a shard makes its part */
	PSD_BUFFER_LEFT,  /* low rank: a worker's left matrix; then the sum over workers; then its orthonormal basis */
	PSD_BUFFER_RIGHT, /* low rank: projection of gradients on that basis; then the sum over workers; the next
			     iteration starts there */
	PSD_BUFFER_ENCODED_GRADIENT, /* encoded gradients, outbound and received; next two: parameters, factors */
	PSD_BUFFER_ENCODED_PARAMETER,
	PSD_BUFFER_ENCODED_FACTORS,
	PSD_BUFFERS
};

enum psd_extent {
	PSD_EXTENT_ITEM,	    /* all elements of an item */
	PSD_EXTENT_ROOT,	    /* all elements on the item's root, none elsewhere */
	PSD_EXTENT_PART,	    /* a shard's part of each slice; none on other hosts */
	PSD_EXTENT_EACH_PART,	    /* a shard's part of each slice, once for every worker */
	PSD_EXTENT_EACH_MEMBER,	    /* at a leader, all elements for each other worker of its node; none elsewhere */
	PSD_EXTENT_BLOCKS,	    /* all blocks of a compressed item */
	PSD_EXTENT_BLOCK_PART,	    /* elements in a shard's part of the blocks; none on other hosts */
	PSD_EXTENT_EACH_BLOCK_PART, /* a shard's part of the blocks, once for every worker */
	PSD_EXTENT_LEFT,	    /* left matrices of an item's tensors; tensors without low-rank factors are whole */
	PSD_EXTENT_RIGHT,	    /* right matrices of an item's tensors */
	PSD_EXTENT_EACH_FACTORS,    /* both small matrices of the gradient, once for every worker */
};

/* Number of copies of a buffer, for iterations that are under way together. */
enum psd_lifetime {
	PSD_LIFETIME_RUN,	/* one copy for all iterations */
	PSD_LIFETIME_UNDER_WAY, /* one copy per iteration, from its forward pass to the end of its gradient */
	/* Copies that other hosts write into, also before this host reaches the iteration. Others may be ahead by the
	 * number of iterations under way, since they wait for this host's messages in each. */
	PSD_LIFETIME_AHEAD,
};

/* Width of a value in a buffer. */
enum psd_width {
	PSD_WIDTH_PRECISION, /* width of the scenario's precision */
	PSD_WIDTH_FP32,
	PSD_WIDTH_WIRE,	 /* width of the encoding on the wire */
	PSD_WIDTH_BLOCK, /* width of a compressed block; blocks take the place of values */
};

struct psd_buffer_row {
	const char *name;  /* key in checkpoints; another name makes old ones unreadable */
	bool is_on_device; /* on the device; otherwise in its host's memory, to which it is copied for other hosts */
	/* Copy of a device's parameters. It takes no memory where host and device share theirs, and never loses
	 * precision on the way. */
	bool is_copy;
	bool is_encoded; /* values in their encoding on the wire; without memory if values travel unencoded */
	enum psd_width width;
	enum psd_extent extent;
	enum psd_lifetime life;
	/* Buffer of these values in their encoding on the wire, if that is lossy; PSD_BUFFERS: they do not travel. */
	enum psd_buffer on_wire;
};

extern const struct psd_buffer_row psd_buffers[PSD_BUFFERS];

/* Widths of the buffers' values for a plan, bytes. */
struct psd_widths {
	unsigned precision_bytes; /* bytes of a value in the scenario's precision */
	const struct psd_encoding *wire;
	unsigned block_bytes; /* bytes of one compressed block */
};
/* Bytes of one value (or block) of a buffer with these widths. Pure. */
unsigned psd_buffer_value_bytes(enum psd_buffer buffer, const struct psd_widths *widths);
/* Buffer that messages use in place of this one: its encoded values where the encoding is lossy. Pure. */
enum psd_buffer psd_buffer_on_wire(enum psd_buffer buffer, const struct psd_encoding *wire);

#endif
