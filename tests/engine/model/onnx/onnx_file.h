/* ONNX files for tests, from lines of text:
 *
 *   opset 17                              of the operators; else 20
 *   input x f32[b,3,8,8]                  sides that are no number are open
 *   w: f32[8,3,3,3]                       an initializer whose numbers are left out,
 *   s: i64[2] = 0 -1                      with numbers in the field of its type,
 *   r: f16[2] = raw 0 15360               with the whole numbers that its bits are, in raw data,
 *   e: f32[2] = external weights.bin 16   beside the model, from that byte on
 *   y, z = Op(x, , w) axis=-1 alpha=0.5 pads=[1,1] scales=[1.,2.] mode="tanh" value=f32[1]{1} @name=n @domain=d
 *   output y                              else the last node's first output
 *   listed PARAMETER fc.weight            a name that PyTorch's exporter lists, or BUFFER, or CONSTANT_TENSOR
 *   folded v from fc.weight s             a value that an exporter computed from others
 *   y = If(c) then_branch={ a = Relu(x); output a } else_branch={ b = Neg(x); output b }
 *   function f (x, y) -> (z) alpha { z = Add(x, y) a=&alpha }   called as z = f(x, y) alpha=1 @domain=local
 *
 * After a node, @scopes=... to the next @ or the end of the line is what PyTorch says of modules, @fx=... of the call,
 * @rules=... of the rules that changed it. */
#ifndef PSD_TESTS_ONNX_FILE_H
#define PSD_TESTS_ONNX_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/model/graph.h"
#include "engine/model/onnx/onnx.pb-c.h"

/* The caller frees it by onnx__model__free_unpacked(). */
Onnx__Model *onnx_file_of(const char *text);
/* Its bytes, which the caller frees. */
uint8_t *onnx_file_pack(const Onnx__Model *model, size_t *length);

/* Loads it as the file "m.onnx". */
enum psd_status onnx_file_parse(const char *text, struct psd_graph *graph, struct psd_error *err);
enum psd_status onnx_file_parse_as(const char *text, const struct psd_model_choices *choices, struct psd_graph *graph,
				   struct psd_error *err);
struct psd_graph onnx_file_load(const char *text);
/* PSD_EINVAL with "m.onnx: " and this message. */
void onnx_file_refuses(const char *text, const char *message);

const struct psd_layer *onnx_file_layer(const struct psd_graph *graph, const char *name);
/* "input 3x8x8, conv 8x8x8, softmax-loss 10": kinds and shapes in order; trailing sides of 1 are left out. room: bytes
 * of text. */
void onnx_file_describe(const struct psd_graph *graph, char *text, size_t room);
/* Loads the text and compares its description. */
void onnx_file_becomes(const char *text, const char *description);

#endif
