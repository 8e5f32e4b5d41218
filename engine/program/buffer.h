/* Buffers: arrays on a host that are needed to synchronise an item (bucket), such as its gradients or residuals. The
 * table psd_buffers says for each buffer in which memory it is, how wide its values are, and how many values it has.
 * The copy operations of a program and the memory of a real run follow from this table. A method lists the buffers that
 * its items need. */
#ifndef PSD_BUFFER_H
#define PSD_BUFFER_H

#include <stdbool.h>

#include "engine/collectives/layout.h"
#include "engine/encodings/encoding.h"

enum psd_buffer {
	/* parameters; every item (bucket) has PSD_BUFFER_PARAMETER and PSD_BUFFER_GRADIENT */
	PSD_BUFFER_PARAMETER,
	/* gradient of a worker; replaced by the sum over workers if devices update the parameters */
	PSD_BUFFER_GRADIENT,
	PSD_BUFFER_HISTORY, /* momentum, if devices update the parameters */
	PSD_BUFFER_SQUARES, /* AdamW: mean of squared gradients, if devices update the parameters */
	PSD_BUFFER_SUM,	    /* sum of gradients over workers, of the elements that this worker updates */
	/* parameters that this worker updates, if it has whole ones only while layers use them */
	PSD_BUFFER_OWN,
	PSD_BUFFER_START,	 /* local SGD: the parameters as they were after the last exchange */
	PSD_BUFFER_SENT,	 /* local SGD with a delay: the parameters at the begin of the exchange */
	PSD_BUFFER_OUTER,	 /* local SGD: momentum of the outer optimiser, if devices update the parameters */
	PSD_BUFFER_KEPT,	 /* stale reads: a worker's own gradient */
	PSD_BUFFER_KEPT_HISTORY, /* stale reads: momentum with the worker's own gradients whose sum is missing */
	PSD_BUFFER_OWN_HISTORY,	 /* managed communication with stale reads: momentum of the worker's own gradients */
	/* factors of linear layers' gradients: those of all workers, one after the other */
	PSD_BUFFER_FACTORS,
	/* error feedback: residuals of gradients, which are added to gradients of later iterations */
	PSD_BUFFER_RESIDUAL,
	/* sparse all-reduce: the chosen chunks, one after the other; later replaced by their sums over workers */
	PSD_BUFFER_CHOSEN,
	/* sparse all-reduce: norm of each chunk; later replaced by the sum of the norms over workers */
	PSD_BUFFER_NORMS,
	PSD_BUFFER_MASTER,	  /* on the root of an item (bucket): the parameters that the root updates */
	PSD_BUFFER_PART,	  /* on a shard: the parameters that the shard updates */
	PSD_BUFFER_PART_HISTORY,  /* on a shard: momentum of its updates */
	PSD_BUFFER_PART_SQUARES,  /* on a shard: mean of squared gradients of its updates */
	PSD_BUFFER_PART_OUTER,	  /* on a shard: momentum of the outer optimiser */
	PSD_BUFFER_MEMBERS,	  /* on a node's leader (first worker): gradients of the node's other workers */
	PSD_BUFFER_RECEIVED,	  /* on a shard: gradients of its part from each worker or leader; later their sum */
	PSD_BUFFER_VELOCITY,	  /* momentum of a worker that is applied to its own gradient before compression */
	PSD_BUFFER_PACKED,	  /* a worker's compressed gradient */
	PSD_BUFFER_PACKED_PARTS,  /* on a shard: compressed gradients of its part from each worker */
	PSD_BUFFER_PART_RESIDUAL, /* on a shard: residual from compressing its sums (error feedback) */
	/* compressed sum of gradients over workers; each shard computes its part of it */
	PSD_BUFFER_PACKED_SUM,
	/* Low rank: left matrix of a worker's gradient; later replaced by the sum over workers, then by an orthonormal
	 * basis of the sum. */
	PSD_BUFFER_LEFT,
	/* Low rank: right matrix, the projection of the gradient on that basis; later replaced by the sum over
	 * workers. It is kept, because the next iteration starts with it. */
	PSD_BUFFER_RIGHT,
	PSD_BUFFER_ENCODED_GRADIENT,  /* gradients, encoded for the network; used to send and to receive */
	PSD_BUFFER_ENCODED_PARAMETER, /* parameters, encoded for the network; used to send and to receive */
	PSD_BUFFER_ENCODED_FACTORS,   /* factors, encoded for the network; used to send and to receive */
	PSD_BUFFERS
};

/* Values of an item (bucket), before an owner divides them among hosts. */
enum psd_content {
	PSD_CONTENT_ELEMENTS, /* elements of the item's (bucket's) slices, each slice divided for itself */
	PSD_CONTENT_BLOCKS,   /* blocks of a compressed item (bucket) */
	/* elements in the blocks of a compressed item (bucket), divided by blocks */
	PSD_CONTENT_BLOCK_ELEMENTS,
	/* left matrices of the item's (bucket's) tensors; a tensor without low-rank factors has all its elements here
	 * */
	PSD_CONTENT_LEFT,
	PSD_CONTENT_RIGHT,   /* right matrices of the item's (bucket's) tensors */
	PSD_CONTENT_FACTORS, /* both factors of a linear layer's gradient */
};

/* Number of times that values are stored on a host that has them. */
enum psd_times {
	PSD_TIMES_ONCE,
	PSD_TIMES_SENDERS, /* once for each worker, or for each leader with a method that joins nodes */
	PSD_TIMES_MEMBERS, /* once for each other worker of the node */
};

/* Number of copies of a buffer. Iterations that are executed at the same time (under way) use different copies, in
 * rotation. */
enum psd_lifetime {
	PSD_LIFETIME_RUN, /* one copy, used by all iterations */
	/* one copy for each iteration under way, used from the forward pass until the gradient is no longer needed */
	PSD_LIFETIME_UNDER_WAY,
	/* Two copies for each iteration under way. Other hosts write into this buffer, even before this host has
	 * reached the iteration. In each iteration they wait for messages of this host, so they are ahead by at most
	 * the number of iterations under way. */
	PSD_LIFETIME_AHEAD,
};

/* Width of a value in a buffer. */
enum psd_width {
	PSD_WIDTH_PRECISION, /* width of the model's precision: 4 bytes for fp32, 2 in 16 bits */
	PSD_WIDTH_FP32,
	PSD_WIDTH_WIRE,	 /* width of the encoding on the network */
	PSD_WIDTH_BLOCK, /* bytes of a compressed block; the buffer's elements are blocks */
};

/* Properties of a buffer. */
struct psd_buffer_row {
	const char *name; /* name of the buffer in checkpoint files; if it changes, old files cannot be read */
	/* the buffer is in the device's memory; false: in the host's memory, from which messages are sent */
	bool is_on_device;
	/* The buffer is a copy of parameters on a device. It needs no memory if host and device share their memory and
	 * the encoding on the network is not lossy. */
	bool is_copy;
	/* the values are encoded for the network; the buffer needs no memory if values are sent unencoded */
	bool is_encoded;
	enum psd_width width;
	enum psd_content content;
	enum psd_owner owner; /* hosts that have the buffer's values; see psd_buffer_owner() */
	/* The owner is that of the method: the workers that update the values (psd_method.updates). */
	bool is_of_updates;
	enum psd_times times;
	enum psd_lifetime life;
	/* Buffer for the same values, encoded for the network; it is used if that encoding is lossy. PSD_BUFFERS: the
	 * values are never sent. */
	enum psd_buffer on_wire;
};

/* Table of buffers, indexed by enum psd_buffer. */
extern const struct psd_buffer_row psd_buffers[PSD_BUFFERS];

/* True if arriving values may be added to one sum instead of being stored once for each sender. Pure. */
bool psd_buffer_is_sum(enum psd_buffer buffer);
/* Widths from which a plan computes the bytes of the values in each buffer. */
struct psd_widths {
	unsigned precision_bytes;	 /* bytes of a value in the model's precision */
	const struct psd_encoding *wire; /* encoding of values on the network */
	unsigned block_bytes;		 /* bytes of one compressed block */
};
/* Returns the bytes of one value of a buffer, or of one block if its elements are blocks. Pure. */
unsigned psd_buffer_value_bytes(enum psd_buffer buffer, const struct psd_widths *widths);
/* Returns the buffer that transfers use in place of this buffer: its on_wire if the encoding `wire` is lossy,
 * otherwise `buffer` itself. Pure. */
enum psd_buffer psd_buffer_on_wire(enum psd_buffer buffer, const struct psd_encoding *wire);

#endif
