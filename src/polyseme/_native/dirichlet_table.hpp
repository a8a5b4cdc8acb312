// Pointers to the functions of special.hpp for one instruction set (see row_table.hpp).
#pragma once
#include "row_table.hpp"

namespace polyseme {

template <class T>
struct DirichletTable {
    void (*weights)(const T* g, int topics, int width, T floor, T* a);
    double (*terms)(const T* g, const double* prior, const double* shift, int topics, int width, double* logs);
    void (*exp_scaled)(const double* logs, double top, int topics, int width, T floor, T* b);
};

template <class T>
DirichletTable<T> dirichlet_table(Isa isa);

// Smallest entry of an operand, relative to its maximum. The product of two such entries is larger than what the kernel
// treats as zero, even if a document and a word have no topic in common.
template <class T>
constexpr T min_operand() {
    return sizeof(T) == 4 ? T(1e-18) : T(1e-200);
}

}  // namespace polyseme
