/* bcryptprimitives.dll for Wine before version 9: Rust's standard library takes random bytes from its ProcessPrng. */
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG n_bytes);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE buffer, SIZE_T n_bytes) { return SystemFunction036(buffer, (ULONG)n_bytes); }
