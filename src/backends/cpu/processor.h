// What the processor says of itself that decides how oneDNN may be used.
#pragma once

namespace regatta::cpu {

// It announces AMX but hides its tiles: a hypervisor's half-measure, which ends in SIGILL.
bool announces_amx_without_tiles();

// It has instructions that multiply bf16: avx512_bf16, or AMX with tiles.
bool multiplies_bf16();

}  // namespace regatta::cpu
