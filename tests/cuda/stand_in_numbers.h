/* Numbers as cuBLAS and cuDNN store them, for the stand-in's arithmetic in double. Refuses to know shapes. */
#ifndef PSD_TESTS_CUDA_STAND_IN_NUMBERS_H
#define PSD_TESTS_CUDA_STAND_IN_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

enum psd_stand_in_number { PSD_STAND_IN_FLOAT, PSD_STAND_IN_HALF, PSD_STAND_IN_BFLOAT };

size_t psd_stand_in_number_bytes(enum psd_stand_in_number number);
double psd_stand_in_read(enum psd_stand_in_number number, const void *values, size_t index);
/* Rounds to the nearest number of that kind. */
void psd_stand_in_write(enum psd_stand_in_number number, void *values, size_t index, double value);
/* A factor as tensor cores take it from a float: 10 bits behind the point. */
double psd_stand_in_tf32(double value);
/* Zeros; ends the process where memory is short. */
double *psd_stand_in_doubles(size_t n);
/* Overwrites memory that a library may use freely while it computes; begin may be NULL. */
void psd_stand_in_scribble(void *begin, size_t bytes);

#endif
