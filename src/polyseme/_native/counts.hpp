// Counts as CSR arrays.
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
