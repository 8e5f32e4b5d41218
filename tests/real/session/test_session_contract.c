/* Contract of a session on the devices that every build has. The CUDA device's is in tests/cuda/. */
#include <criterion/criterion.h>

#include "tests/real/session_contract.h"

static const struct contract_device devices[] = {
	{.name = "cpu", .kind = &psd_device_cpu},
	{.name = "idle", .kind = &psd_device_idle},
	{.name = "replay", .is_replay = true},
	{.name = "cpu beside replays", .kind = &psd_device_cpu, .is_replay = true, .real_workers = 1},
	{.name = "two cpus beside a replay", .kind = &psd_device_cpu, .is_replay = true, .real_workers = 2},
};

SESSION_CONTRACT(session_contract, devices)
