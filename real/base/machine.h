/* Processor time and memory of this machine, for all programs and the kernel together, and processor time of this
 * process. */
#ifndef PSD_REAL_MACHINE_H
#define PSD_REAL_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

/* Processor seconds since the machine was started, summed over the processors that the calling thread may use. */
struct psd_machine_time {
	double busy_sec;
	double interrupt_sec; /* part of busy_sec spent in interrupts, which do most of the work for network links */
	double stolen_sec;    /* part of busy_sec in which the physical host of this virtual machine ran others */
	double all_sec;
};

/* Reads *time from the kernel, with a resolution of 0.01 s. Returns false if the kernel does not tell. */
bool psd_machine_read(struct psd_machine_time *time);
/* Returns the processor seconds that the calling thread has used. */
double psd_machine_own_sec(void);
/* Returns the processor seconds that all threads of this process have used. */
double psd_machine_process_sec(void);

/* Writes the name of the machine's first processor into `model`, or "unknown processor". */
enum { PSD_MACHINE_MODEL_MAX = 128 };
void psd_machine_model(char model[PSD_MACHINE_MODEL_MAX]);

/* Tells whether a limit on this process's memory (`ulimit -v`) is the likely reason for a signal that kills a process
 * like it: libraries do not check all that they allocate. It would come again at once. */
bool psd_machine_kill_is_limit(int signal_number);
/* Returns the likely reason why a process was killed by this signal, as words that follow "killed by signal N"; "" if
 * unknown. */
const char *psd_machine_kill_hint(int signal_number);

/* Returns the bytes of memory that programs can still take without swapping; UINT64_MAX: the kernel does not tell. */
uint64_t psd_machine_available_bytes(void);

#endif
