/* Processor time and memory of this machine, of all programs and of the kernel. */
#ifndef PSD_REAL_MACHINE_H
#define PSD_REAL_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

/* Processor time since the machine's start, in seconds over all processors that the calling thread may run on. */
struct psd_machine_time {
	double busy_sec;
	double interrupt_sec; /* part of busy_sec used by interrupts, most of the work for links */
	double stolen_sec;    /* part of busy_sec that a virtual machine's physical host gave to others */
	double all_sec;
};

/* Reads these processor times, with a resolution of 0.01 s. False: the kernel does not tell. */
bool psd_machine_read(struct psd_machine_time *time);
/* Processor seconds used by the calling thread. */
double psd_machine_own_sec(void);
/* Processor seconds used by all threads of this process. */
double psd_machine_process_sec(void);

/* Model of the first processor, or "unknown processor". */
enum { PSD_MACHINE_MODEL_MAX = 128 };
void psd_machine_model(char model[PSD_MACHINE_MODEL_MAX]);

/* Likely cause of death by a signal, as words behind "killed by signal N"; "" if unknown. */
const char *psd_machine_kill_hint(int signal_number);

/* Bytes of memory that programs can still take without swapping; UINT64_MAX: the kernel does not tell. */
uint64_t psd_machine_available_bytes(void);

#endif
