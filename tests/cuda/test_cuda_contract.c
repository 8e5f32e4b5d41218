/* Behaviour of a session on every device (tests/real/session/test_session_contract.c), here on the CUDA device. */
#include <criterion/criterion.h>

#include "tests/real/session_contract.h"

static const struct contract_device devices[] = {
	{.name = "cuda", .kind = &psd_device_cuda},
	{.name = "cuda beside replays", .kind = &psd_device_cuda, .is_replay = true, .real_workers = 1},
};

SESSION_CONTRACT(cuda_contract, devices)
