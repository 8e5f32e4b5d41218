/* The contract of a session on any device: one list of cases, which a suite runs on each row of its table of devices.
 * The programs are those of tests/test_contract.c; expected results are read from the program. */
#ifndef PSD_TESTS_SESSION_CONTRACT_H
#define PSD_TESTS_SESSION_CONTRACT_H

#include "tests/real/training.h"

struct contract_device {
	const char *name;
	const struct psd_device_kind *kind;
	bool is_replay; /* the kind counts for the first so many workers only, and there are no parameters to compare */
	unsigned real_workers;
};

/* Per iteration the node that sends most sends the bytes that the program gives. Each worker executes each layer once
 * in each iteration, and nothing twice. An operation that depends on another of the same worker begins when that has
 * ended, the edge's number of iterations before. */
void contract_follows_the_program(const struct contract_device *device, const char *system);
/* All workers end with the same parameters, and so do those of another run. */
void contract_ends_with_equal_bits(const struct contract_device *device, const char *system);

void contract_check(const struct contract_device devices[], unsigned n_devices,
		    void (*claim)(const struct contract_device *device, const char *system));

#define SESSION_CONTRACT(suite, devices)                                                                               \
	Test(suite, follows_the_program)                                                                               \
	{                                                                                                              \
		contract_check(devices, sizeof(devices) / sizeof(devices[0]), contract_follows_the_program);           \
	}                                                                                                              \
	Test(suite, ends_with_equal_bits)                                                                              \
	{                                                                                                              \
		contract_check(devices, sizeof(devices) / sizeof(devices[0]), contract_ends_with_equal_bits);          \
	}

#endif
