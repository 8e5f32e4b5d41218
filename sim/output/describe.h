/* A graph as a table for people. Scripts read the CSV of other commands. */
#ifndef PSD_DESCRIBE_H
#define PSD_DESCRIBE_H

#include <stdio.h>

#include "engine/model/graph.h"

/* Writes one line per layer (name, kind, output shape, parameters, forward MFLOPs and activation bytes of one sample),
 * then totals. Write errors stay in the error flag of `out`. Call it from the thread that owns `out`. */
void psd_describe(FILE *out, const struct psd_graph *graph);

#endif
