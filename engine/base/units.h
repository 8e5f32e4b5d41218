/* Reads and writes quantities with units; no other file does. SI prefixes are powers of 1000 (k M G T), IEC ones of
 * 1024 (Ki Mi Gi); b is bit, B is byte. A missing suffix is an error, except for plain counts and ratios. All functions
 * are pure, any thread. */
#ifndef PSD_UNITS_H
#define PSD_UNITS_H

#include <stdbool.h>
#include <stdint.h>

/* Read a quantity from a whole text, in forms like the examples. False: the text is not such a quantity, is negative,
 * infinite or too large; the output is then unchanged. psd_units_*_help are the words for errors. */
bool psd_units_read_rate(const char *text, double *bits_per_sec);	/* reads 40Gbps, 2.3GBps, 100 MBps, 1GiBps */
bool psd_units_read_bytes(const char *text, uint64_t *bytes);		/* reads 64B, 2MB, 256KiB, 1.5GiB */
bool psd_units_read_seconds(const char *text, double *sec);		/* reads 1.5ms, 30us, 5ns, 2s */
bool psd_units_read_flop_rate(const char *text, double *flops_per_sec); /* reads 6.1TFLOPS, 300GFLOPS */
bool psd_units_read_ratio(const char *text, double *ratio);		/* reads 0.15, 15% */
bool psd_units_read_count(const char *text, uint64_t *count);		/* reads 12, 0; digits only */
bool psd_units_read_number(const char *text, double *number); /* reads 34.6, 1e-3: finite, no suffix, may be negative */

extern const char psd_units_rate_help[];      /* text "a rate such as 40Gbps or 2.3GBps" */
extern const char psd_units_bytes_help[];     /* text "a size such as 256KiB or 2MB" */
extern const char psd_units_seconds_help[];   /* text "a time such as 30us or 1.5ms" */
extern const char psd_units_flop_rate_help[]; /* text "a rate such as 6.1TFLOPS" */
extern const char psd_units_ratio_help[];     /* text "a ratio such as 0.15 or 15%" */

#define PSD_UNITS_TEXT_MAX 32
/* Write a quantity for people into text, which they return: four significant digits, all digits before the point, no
 * exponent for usual values. */
char *psd_units_write_number(double value, char text[PSD_UNITS_TEXT_MAX]);	/* writes 17.2, 0.06321, 40138 */
char *psd_units_write_rate(double bits_per_sec, char text[PSD_UNITS_TEXT_MAX]); /* writes 40 Gb/s */
char *psd_units_write_bytes(uint64_t bytes, char text[PSD_UNITS_TEXT_MAX]);	/* writes 574.7 MB */
char *psd_units_write_seconds(double sec, char text[PSD_UNITS_TEXT_MAX]);	/* writes 30 us */
char *psd_units_write_count(uint64_t count, char text[PSD_UNITS_TEXT_MAX]);	/* writes 143,667,240 */
char *psd_units_write_flops(double flops, char text[PSD_UNITS_TEXT_MAX]);	/* writes 39.3 GFLOP */

/* Number of decimals (0 to `most`) with which `value` has n_digits significant digits; 0 for 0. */
int psd_units_decimals(double value, int n_digits, int most);

#endif
