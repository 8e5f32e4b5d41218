/* Model files for runs of psd-run that have to be short. */
#ifndef PSD_TESTS_REAL_TINY_MODEL_H
#define PSD_TESTS_REAL_TINY_MODEL_H

/* Two inner products; classes: as text. */
#define MODEL_OF(name, second, classes)                                                                                \
	"name: " name "\ninput: {channels: 16}\nlayers:\n"                                                             \
	"  - {name: fc1, kind: inner-product, outputs: 8}\n"                                                           \
	"  - {name: " second ", kind: inner-product, outputs: " classes "}\n"                                          \
	"  - {name: loss, kind: softmax-loss}\n"
#define TINY_MODEL    MODEL_OF("tiny", "fc2", "4")
#define WIDER_MODEL   MODEL_OF("wider", "fc2", "6")
#define RENAMED_MODEL MODEL_OF("renamed", "other", "6")

#endif
