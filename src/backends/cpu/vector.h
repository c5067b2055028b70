// Loops that the compiler vectorises, once for each instruction set; the processor picks at load
// time, so one program runs well on unequal machines.
#pragma once

// Sanitizers start after the resolvers that pick a clone would run.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define REGATTA_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define REGATTA_CLONES
#endif

// Before a loop of few and known turns whose vectors are to stay in registers.
#if defined(__GNUC__) && !defined(__clang__)
#define REGATTA_UNROLL _Pragma("GCC unroll 16")
#else
#define REGATTA_UNROLL
#endif

// Bodies shared by clones must be inlined into each to be compiled for it.
#define REGATTA_INLINE inline __attribute__((always_inline))
