// Features of the processor, by CPUID, that decide how oneDNN may be used.
#pragma once

namespace regatta::cpu {

// CPUID announces AMX but describes no tiles (leaf 0x1D), as under some hypervisors: AMX kernels
// would end in SIGILL.
bool announces_amx_without_tiles();

// The processor has instructions that multiply bf16: avx512_bf16, or AMX with tiles.
bool multiplies_bf16();

}  // namespace regatta::cpu
