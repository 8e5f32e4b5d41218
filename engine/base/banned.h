/* List of C library functions that must not be called, each with its replacement. The Makefile includes this file in
 * every C file; it must not be included by hand. It declares the functions without any #include, because it comes
 * before the feature macros of the C file. The C library's own declarations are compatible with these. */
#ifndef PSD_BANNED_H
#define PSD_BANNED_H

#ifdef __has_attribute
#if __has_attribute(unavailable)
#define PSD_BANNED(instead) __attribute__((unavailable("call " instead)))
#endif
#endif
/* For compilers older than GCC 12: a call of such a function is a warning. With DEV=1 the warning is an error. */
#ifndef PSD_BANNED
#define PSD_BANNED(instead) __attribute__((deprecated("call " instead)))
#endif

int sprintf(char *restrict, const char *restrict, ...) PSD_BANNED("snprintf");
char *strcpy(char *restrict, const char *restrict) PSD_BANNED("snprintf, or memcpy with a known length");
char *strcat(char *restrict, const char *restrict) PSD_BANNED("snprintf");
char *strtok(char *restrict, const char *restrict) PSD_BANNED("strcspn");
int atoi(const char *) PSD_BANNED("psd_units_read_count");
double atof(const char *) PSD_BANNED("psd_units_read_number");

#endif
