/* Kinds of operations. The table psd_ops says for each kind which resource it occupies, at which rate it moves its
 * bytes, and whether it moves them between hosts. */
#ifndef PSD_OPERATION_H
#define PSD_OPERATION_H

#include <stdbool.h>

enum psd_op_kind {
	/* forward pass of a layer that has parameters, and of the layers without parameters that follow it */
	PSD_OP_FORWARD,
	/* backward pass of the same layers in reverse order; afterwards the gradient of the layer is complete */
	PSD_OP_BACKWARD,
	PSD_OP_COPY_OUT, /* copy from the device's memory to the host's */
	PSD_OP_COPY_IN,	 /* copy from the host's memory to the device's */
	PSD_OP_SEND,	 /* this host sends all its messages of one transfer */
	PSD_OP_RECEIVE,	 /* ends when all messages of operation `match` to this host have arrived */
	/* a shard sums the gradients that it received from all workers, or from the leaders of nodes, and updates its
	 * parameters */
	PSD_OP_REDUCE,
	/* a gradient is rebuilt from received factors (a matrix product), and the parameters are updated by it */
	PSD_OP_FACTOR,
	PSD_OP_APPLY, /* parameters are updated by a gradient that is complete on this host */
	/* all-reduce. All members of its group begin together. A host executes only one of them at a time. */
	PSD_OP_COLLECTIVE,
	/* Takes no time. An operation that waits for a gate thereby waits for all operations that the gate waits
	 * for. */
	PSD_OP_GATE,
	/* fixed work of the software stack at the end of an iteration, which the next iteration waits for */
	PSD_OP_BARRIER,
	PSD_OP_CONVERT, /* encodes or decodes the values of `source` into `target` */
	/* sparse all-reduce: the residual of earlier iterations is added to the gradient, and the chosen chunks are
	 * copied to the send buffer */
	PSD_OP_GATHER,
	/* Sparse all-reduce: chunks are chosen by their norms, to be sent in the next iteration. */
	PSD_OP_CHOOSE,
	/* the leader (first worker) of a node adds the gradients of the node's other workers to its own */
	PSD_OP_SUM,
	/* Local SGD: a worker updates its parameters by its own gradient. In iterations in which workers exchange, the
	 * change of the parameters since the last exchange then replaces the gradient. */
	PSD_OP_STEP,
	PSD_OP_PACK,	/* the residual is added to the gradient (error feedback), and the result is compressed */
	PSD_OP_REPACK,	/* a shard sums the compressed gradients of all workers, and compresses the sum */
	PSD_OP_UNPACK,	/* the compressed sum is decompressed into the buffer of the gradient */
	PSD_OP_PROJECT, /* low rank: the residual is added to the gradient, and its left matrix is computed */
	/* low rank: the sum of left matrices becomes an orthonormal basis, then right matrix and residual are
	 * computed */
	PSD_OP_FIT,
	PSD_OP_EXPAND, /* low rank: the product of left and right matrix replaces the gradient */
	/* Takes no time. It ends when the first layer of the next iteration may start. The duration of an iteration is
	 * measured from one PSD_OP_NEXT to the next. */
	PSD_OP_NEXT,
	PSD_OP_MEASURE, /* gradient clipping: computes the sum of squares of a gradient that is complete on this host */
	/* Gradient clipping: computes the factor by which all gradients are multiplied, from all sums of squares. */
	PSD_OP_CLIP,
	PSD_OP_ACCUMULATE, /* the gradient of a micro-batch is added to those of the iteration's earlier ones */
	PSD_OP_KEEP,	   /* stale reads: a worker keeps a copy of its own gradient, before the sum replaces it */
	/* Stale reads: the parameters of the next forward pass are made: a copy of those with all sums that have
	 * arrived, updated by the worker's own gradients whose sums are missing. */
	PSD_OP_READ,
	PSD_OP_KINDS
};

/* Resource of a host that an operation occupies while it is executed. Each resource executes one operation at a
 * time. */
enum psd_resource {
	PSD_RESOURCE_DEVICE,
	PSD_RESOURCE_COPY_OUT,
	PSD_RESOURCE_COPY_IN,
	PSD_RESOURCE_CPU,
	PSD_RESOURCE_NIC, /* sending side of the network interface; receive operations need no resource */
	PSD_RESOURCES,
	PSD_RESOURCE_NONE = PSD_RESOURCES
};

/* Part that an operation has in a transfer between hosts. */
enum psd_part {
	PSD_PART_NONE,	  /* it is work of one host */
	PSD_PART_SENDS,	  /* the host sends all its messages */
	PSD_PART_AWAITS,  /* it ends when all messages to the host have arrived */
	PSD_PART_TOGETHER /* all members of a group begin it together; a host executes one of them at a time */
};

/* Rate at which an operation moves its bytes (struct psd_host_costs). */
enum psd_rate {
	PSD_RATE_NONE,	  /* its duration follows from other costs */
	PSD_RATE_COPY,	  /* between the memories of device and host */
	PSD_RATE_REDUCE,  /* sums by the host's processor */
	PSD_RATE_UPDATE,  /* updates by the device */
	PSD_RATE_CONVERT, /* conversions by the device */
};

/* Properties of a kind of operation. */
struct psd_op_row {
	/* Name in messages, traces and plots. PSD_OP_COPY_OUT and PSD_OP_COPY_IN have the same one. */
	const char *name;
	enum psd_resource resource; /* resource that it occupies, unless a method chooses another one */
	enum psd_rate rate;
	enum psd_part part;
	bool is_forward, is_backward; /* it is a pass of layers */
	bool rebuilds;		      /* it makes a gradient from factors, in place of the backward pass */
	bool updates;		      /* it updates parameters by a gradient that is complete on this host */
	/* it computes sums of squares of a gradient that is complete on this host, for an update */
	bool measures;
	bool reads;	 /* it makes the parameters of a forward pass (PSD_OP_READ) */
	bool is_fixed;	 /* fixed work of the software stack: one core, no tensor */
	bool is_instant; /* it takes no time */
};

/* Table of kinds, indexed by enum psd_op_kind. */
extern const struct psd_op_row psd_ops[PSD_OP_KINDS];

#endif
