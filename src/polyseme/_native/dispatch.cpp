// Selects the instruction set at run time.
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "dirichlet_table.hpp"
#include "normal_table.hpp"
#include "row_table.hpp"

#if defined(POLYSEME_X86) && defined(_MSC_VER)
#include <intrin.h>
#endif

namespace polyseme {

#define POLYSEME_DECLARE(isa)                  \
    namespace isa {                            \
    RowTable<float> table_float(int width);    \
    RowTable<double> table_double(int width);  \
    DirichletTable<float> dirichlet_float();   \
    DirichletTable<double> dirichlet_double(); \
    NormalTable normal_functions();            \
    }
POLYSEME_DECLARE(baseline)
#ifdef POLYSEME_X86
POLYSEME_DECLARE(avx2)
POLYSEME_DECLARE(avx512)
#endif
#undef POLYSEME_DECLARE

namespace {

Isa detect() {
#if defined(POLYSEME_X86) && defined(_MSC_VER)
    int leaf[4];
    __cpuidex(leaf, 1, 0);
    const bool os_saves = (leaf[2] & (1 << 27)) != 0;
    const bool fma = (leaf[2] & (1 << 12)) != 0;
    if (!os_saves) return Isa::baseline;
    const unsigned long long saved = _xgetbv(0);
    __cpuidex(leaf, 7, 0);
    const bool avx512 =
        (leaf[1] & (1 << 16)) && (leaf[1] & (1 << 17)) && (leaf[1] & (1 << 30)) && (leaf[1] & (1 << 31));
    if (avx512 && (saved & 0xe6) == 0xe6) return Isa::avx512;
    if ((leaf[1] & (1 << 5)) && fma && (saved & 6) == 6) return Isa::avx2;
    return Isa::baseline;
#elif defined(POLYSEME_X86)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
        return Isa::avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Isa::avx2;
    return Isa::baseline;
#else
    return Isa::baseline;
#endif
}

}  // namespace

Isa best_isa() {
    static const Isa isa = detect();
    return isa;
}

Isa isa_named(const char* name) {
    for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512})
        if (std::strcmp(name, isa_name(isa)) == 0 && isa <= best_isa()) return isa;
    throw std::invalid_argument(
        "instruction set '" + std::string(name) + "' is not one that this processor has: choose from baseline" +
        (best_isa() >= Isa::avx2 ? ", avx2" : "") + (best_isa() >= Isa::avx512 ? ", avx512" : ""));
}

Isa chosen_isa() {
    static const Isa isa = [] {
        const char* const name = std::getenv("POLYSEME_ISA");
        if (!name || !*name) return best_isa();
        try {
            return isa_named(name);
        } catch (const std::invalid_argument& error) {
            throw std::invalid_argument(std::string("POLYSEME_ISA: ") + error.what());
        }
    }();
    return isa;
}

const char* isa_name(Isa isa) { return isa == Isa::avx512 ? "avx512" : isa == Isa::avx2 ? "avx2" : "baseline"; }

template <>
RowTable<float> row_table<float>(Isa isa, int width) {
#ifdef POLYSEME_X86
    if (isa == Isa::avx512) return avx512::table_float(width);
    if (isa == Isa::avx2) return avx2::table_float(width);
#endif
    (void)isa;
    return baseline::table_float(width);
}

template <>
RowTable<double> row_table<double>(Isa isa, int width) {
#ifdef POLYSEME_X86
    if (isa == Isa::avx512) return avx512::table_double(width);
    if (isa == Isa::avx2) return avx2::table_double(width);
#endif
    (void)isa;
    return baseline::table_double(width);
}

template <>
DirichletTable<float> dirichlet_table<float>(Isa isa) {
#ifdef POLYSEME_X86
    if (isa == Isa::avx512) return avx512::dirichlet_float();
    if (isa == Isa::avx2) return avx2::dirichlet_float();
#endif
    (void)isa;
    return baseline::dirichlet_float();
}

template <>
DirichletTable<double> dirichlet_table<double>(Isa isa) {
#ifdef POLYSEME_X86
    if (isa == Isa::avx512) return avx512::dirichlet_double();
    if (isa == Isa::avx2) return avx2::dirichlet_double();
#endif
    (void)isa;
    return baseline::dirichlet_double();
}

NormalTable normal_table(Isa isa) {
#ifdef POLYSEME_X86
    if (isa == Isa::avx512) return avx512::normal_functions();
    if (isa == Isa::avx2) return avx2::normal_functions();
#endif
    (void)isa;
    return baseline::normal_functions();
}

}  // namespace polyseme
