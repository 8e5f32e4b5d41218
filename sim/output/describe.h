/* Output of `psd-sim describe`: a model's layer graph as a table for people. */
#ifndef PSD_DESCRIBE_H
#define PSD_DESCRIBE_H

#include <stdio.h>

#include "engine/model/graph.h"

/* Writes one line per layer (name, kind, output shape, parameters, forward MFLOPs and activation bytes of one sample),
 * then totals. Write errors set the error flag of `out`, see ferror(). Called by the thread that uses `out`. */
void psd_describe(FILE *out, const struct psd_graph *graph);

#endif
