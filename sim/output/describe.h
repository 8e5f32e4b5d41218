/* Output of `psd-sim describe`: the layers of a model, as a table for people. */
#ifndef PSD_DESCRIBE_H
#define PSD_DESCRIBE_H

#include <stdio.h>

#include "engine/model/graph.h"

/* Writes a line for each layer (name, kind, output shape, parameters, and for one sample forward MFLOPs and activation
 * bytes), then a line of totals. Write errors set the error flag of `out`, see ferror(). */
void psd_describe(FILE *out, const struct psd_graph *graph);

#endif
