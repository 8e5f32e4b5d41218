/* The table of operations. */
#include "engine/program/operation.h"

/* Shorter names for the columns. */
#define ROW(kind, text, occupies, ...)                                                                                 \
	[PSD_OP_##kind] = {.name = (text), .resource = PSD_RESOURCE_##occupies, __VA_ARGS__}
#define AT(speed)  .rate = PSD_RATE_##speed
#define IN(does)   .part = PSD_PART_##does
#define HAS(thing) .thing = true

const struct psd_op_row psd_ops[PSD_OP_KINDS] = {
	ROW(FORWARD, "forward", DEVICE, HAS(is_forward)),
	ROW(BACKWARD, "backward", DEVICE, HAS(is_backward)),
	ROW(COPY_OUT, "copy", COPY_OUT, AT(COPY)),
	ROW(COPY_IN, "copy", COPY_IN, AT(COPY)),
	ROW(SEND, "send", NIC, IN(SENDS)),
	ROW(RECEIVE, "receive", NONE, IN(AWAITS)),
	ROW(REDUCE, "reduce", CPU, AT(REDUCE)),
	ROW(FACTOR, "rebuild", DEVICE, HAS(rebuilds)),
	ROW(APPLY, "apply", DEVICE, AT(UPDATE), HAS(updates)),
	ROW(COLLECTIVE, "collective", NIC, IN(TOGETHER)),
	ROW(GATE, "gate", NONE, HAS(is_instant)),
	ROW(BARRIER, "barrier", DEVICE, HAS(is_fixed)),
	ROW(CONVERT, "convert", DEVICE, AT(CONVERT)),
	ROW(GATHER, "gather", CPU, AT(REDUCE)),
	ROW(CHOOSE, "choose", CPU, AT(REDUCE)),
	ROW(SUM, "sum", CPU, AT(REDUCE)),
	ROW(STEP, "step", DEVICE, AT(UPDATE)),
	ROW(PACK, "pack", DEVICE, AT(CONVERT)),
	ROW(REPACK, "repack", CPU, AT(REDUCE)),
	ROW(UNPACK, "unpack", DEVICE, AT(CONVERT)),
	ROW(PROJECT, "project", DEVICE, AT(CONVERT)),
	ROW(FIT, "fit", DEVICE, AT(CONVERT)),
	ROW(EXPAND, "expand", DEVICE, AT(CONVERT)),
	ROW(NEXT, "next", NONE, HAS(is_instant)),
	ROW(MEASURE, "measure", DEVICE, AT(UPDATE), HAS(measures)),
	ROW(CLIP, "clip", DEVICE, AT(NONE)),
	ROW(ACCUMULATE, "accumulate", DEVICE, AT(UPDATE)),
	ROW(KEEP, "keep", DEVICE, AT(UPDATE)),
	ROW(READ, "read", DEVICE, AT(UPDATE), HAS(reads)),
};
