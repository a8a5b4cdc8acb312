// Counts as CSR arrays: pointers to memory that belongs to the caller.
#pragma once
#include <cstdint>

namespace polyseme {

template <class Index, class T>
struct Counts {
    const Index* indptr;
    const Index* indices;
    const T* values;
    int64_t rows, columns;
};

}  // namespace polyseme
