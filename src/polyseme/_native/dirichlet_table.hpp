// The functions of special.hpp of one instruction set, as pointers (see row_table.hpp).
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

// The least part of the largest that an operand keeps: a product of two such numbers is above what the kernel takes for
// unexplained, however far apart a document's topics and a word's topics are.
template <class T>
constexpr T least_operand() {
    return sizeof(T) == 4 ? T(1e-18) : T(1e-200);
}

}  // namespace polyseme
