/* Reads and writes quantities with units. No other file does this. The prefixes k M G T are powers of 1000, Ki Mi Gi
 * powers of 1024; b, bit and bits are bits, B, byte and bytes are bytes. A blank may stand before the unit. A quantity
 * without its unit is an error, but counts, numbers and ratios have no unit. All functions are pure, any thread. */
#ifndef PSD_UNITS_H
#define PSD_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/text.h"

/* Read a quantity from a whole text; the comments have examples. False: the text has another form, or the quantity is
 * negative, infinite or too large. Then the output is unchanged. psd_units_*_help are words for the error. */
bool psd_units_read_rate(const char *text, double *bits_per_sec); /* reads 40Gbps, 2.3GBps, 10 Gbit/s, 10Gb/s, 1GiB/s */
bool psd_units_read_bytes(const char *text, uint64_t *bytes);	  /* reads 64B, 2MB, 256 KiB, 512 bytes */
bool psd_units_read_seconds(const char *text, double *sec);	  /* reads 1.5ms, 30us, 5ns, 2s, 3min, 24h, 2d */
bool psd_units_read_flop_rate(const char *text, double *flops_per_sec); /* reads 6.1TFLOPS, 300 GFLOP/s */
bool psd_units_read_ratio(const char *text, double *ratio);		/* reads 0.15, 15% */
bool psd_units_read_count(const char *text, uint64_t *count);		/* reads 12 and 0; only digits are allowed */
/* reads 34.6 and 1e-3; the number is finite, may be negative, and has no suffix */
bool psd_units_read_number(const char *text, double *number);

extern const char psd_units_rate_help[];      /* text "a rate such as 40Gbps or 2.3GBps" */
extern const char psd_units_bytes_help[];     /* text "a size such as 256KiB or 2MB" */
extern const char psd_units_seconds_help[];   /* text "a time such as 30us or 1.5ms" */
extern const char psd_units_flop_rate_help[]; /* text "a rate such as 6.1TFLOPS" */
extern const char psd_units_ratio_help[];     /* text "a ratio such as 0.15 or 15%" */

/* Kinds of quantities; PLAIN: a whole number without a unit. */
enum psd_units_kind { PSD_UNITS_RATE, PSD_UNITS_BYTES, PSD_UNITS_SECONDS, PSD_UNITS_FLOP_RATE, PSD_UNITS_PLAIN };
/* Appends the spelling that was probably meant by a text that could not be read: "40Gbps or 40GBps" for 40gbps.
 * Appends nothing if no spelling is near. */
void psd_units_suggest(struct psd_text *text, enum psd_units_kind quantity, const char *wrong);

#define PSD_UNITS_TEXT_MAX 32
/* Write a quantity for people to `text` and return it. Numbers have four significant digits, but all digits before the
 * decimal point; usual numbers have no exponent. */
char *psd_units_write_number(double value, char text[PSD_UNITS_TEXT_MAX]);	/* writes 17.2, 0.06321, 40138 */
char *psd_units_write_rate(double bits_per_sec, char text[PSD_UNITS_TEXT_MAX]); /* writes 40 Gb/s */
char *psd_units_write_bytes(uint64_t bytes, char text[PSD_UNITS_TEXT_MAX]);	/* writes 574.7 MB */
char *psd_units_write_seconds(double sec, char text[PSD_UNITS_TEXT_MAX]);	/* writes 30 us */
char *psd_units_write_count(uint64_t count, char text[PSD_UNITS_TEXT_MAX]);	/* writes 143,667,240 */
char *psd_units_write_flops(double flops, char text[PSD_UNITS_TEXT_MAX]);	/* writes 39.3 GFLOP */

/* Returns the number of decimals, 0 to `most`, with which `value` has n_digits significant digits; 0 if value is 0. */
int psd_units_decimals(double value, int n_digits, int most);

#endif
