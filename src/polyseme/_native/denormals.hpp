// Treats denormal numbers as zero in this thread during the lifetime of the object, because each of them costs about a
// hundred cycles.
#pragma once
#include <cstdint>
#if defined(__SSE2__) || defined(_M_X64)
#include <xmmintrin.h>
#endif

namespace polyseme {

class DenormalsOff {
  public:
#if defined(__SSE2__) || defined(_M_X64)
    DenormalsOff() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | 0x8040); }
    ~DenormalsOff() { _mm_setcsr(saved_); }

  private:
    unsigned saved_;
#elif defined(__aarch64__) && defined(__GNUC__)
    DenormalsOff() {
        asm volatile("mrs %0, fpcr" : "=r"(saved_));
        const uint64_t flushing = saved_ | (uint64_t(1) << 24);
        asm volatile("msr fpcr, %0" : : "r"(flushing));
    }
    ~DenormalsOff() { asm volatile("msr fpcr, %0" : : "r"(saved_)); }

  private:
    uint64_t saved_;
#else
    DenormalsOff() {}
    ~DenormalsOff() {}
#endif
    DenormalsOff(const DenormalsOff&) = delete;
    DenormalsOff& operator=(const DenormalsOff&) = delete;
};

}  // namespace polyseme
