/* Text of small transformers, for suites of devices. */
#ifndef PSD_TESTS_TRANSFORMER_HELPER_H
#define PSD_TESTS_TRANSFORMER_HELPER_H

/* A block of GPT-2 (Radford et al. 2019) with 8 channels, above the layer `below`; its last layer is sum1, sum2, ... */
#define BLOCK(n, below)                                                                                                \
	"  - {name: n" n ".a, kind: layer-norm, input: " below "}\n"                                                   \
	"  - {name: qkv" n ", kind: conv, outputs: 24, kernel: 1}\n"                                                   \
	"  - {name: att" n ", kind: attention, heads: 2, causal: true}\n"                                              \
	"  - {name: out" n ", kind: conv, outputs: 8, kernel: 1}\n"                                                    \
	"  - {name: sum" n ".a, kind: add, inputs: [" below ", out" n "]}\n"                                           \
	"  - {name: n" n ".b, kind: layer-norm}\n"                                                                     \
	"  - {name: up" n ", kind: conv, outputs: 32, kernel: 1}\n"                                                    \
	"  - {name: g" n ", kind: gelu}\n"                                                                             \
	"  - {name: down" n ", kind: conv, outputs: 8, kernel: 1}\n"                                                   \
	"  - {name: sum" n ", kind: add, inputs: [sum" n ".a, down" n "]}\n"

/* Two of them, over 6 tokens of 11, with a label for each. */
#define TRANSFORMER                                                                                                    \
	"name: m\ninput: {channels: 1, height: 6}\nlayers:\n"                                                          \
	"  - {name: table, kind: embedding, vocabulary: 11, outputs: 8}\n"                                             \
	"  - {name: place, kind: position}\n" BLOCK("1", "place")                                                      \
		BLOCK("2", "sum1") "  - {name: last, kind: layer-norm}\n"                                              \
				   "  - {name: head, kind: conv, outputs: 11, kernel: 1, bias: false}\n"               \
				   "  - {name: loss, kind: softmax-loss}\n"

/* A block of Llama 2 (Touvron et al. 2023) with 8 channels, whose heads have one of keys and values. */
#define LLAMA_BLOCK(n, below)                                                                                          \
	"  - {name: n" n ".a, kind: rms-norm, input: " below "}\n"                                                     \
	"  - {name: qkv" n ", kind: conv, outputs: 16, kernel: 1, bias: false}\n"                                      \
	"  - {name: att" n ", kind: attention, heads: 2, kv_heads: 1, causal: true, rotary: 10}\n"                     \
	"  - {name: out" n ", kind: conv, outputs: 8, kernel: 1, bias: false}\n"                                       \
	"  - {name: sum" n ".a, kind: add, inputs: [" below ", out" n "]}\n"                                           \
	"  - {name: n" n ".b, kind: rms-norm}\n"                                                                       \
	"  - {name: gate" n ", kind: conv, outputs: 12, kernel: 1, bias: false}\n"                                     \
	"  - {name: s" n ", kind: silu}\n"                                                                             \
	"  - {name: up" n ", kind: conv, outputs: 12, kernel: 1, bias: false, input: n" n ".b}\n"                      \
	"  - {name: g" n ", kind: multiply, inputs: [s" n ", up" n "]}\n"                                              \
	"  - {name: down" n ", kind: conv, outputs: 8, kernel: 1, bias: false}\n"                                      \
	"  - {name: sum" n ", kind: add, inputs: [sum" n ".a, down" n "]}\n"

#define LLAMA                                                                                                          \
	"name: m\ninput: {channels: 1, height: 6}\nlayers:\n"                                                          \
	"  - {name: table, kind: embedding, vocabulary: 11, outputs: 8}\n" LLAMA_BLOCK("1", "table")                   \
		LLAMA_BLOCK("2", "sum1") "  - {name: last, kind: rms-norm}\n"                                          \
					 "  - {name: head, kind: conv, outputs: 11, kernel: 1, bias: false}\n"         \
					 "  - {name: loss, kind: softmax-loss}\n"

#endif
