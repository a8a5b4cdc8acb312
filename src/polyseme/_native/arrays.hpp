// NumPy arrays as arguments of the bindings, checks of their shapes, and the number of threads for a call.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <initializer_list>
#include <limits>
#include <optional>
#include <stdexcept>

#include "counts.hpp"
#include "row_table.hpp"
#include "threads.hpp"

namespace polyseme {

namespace nb = nanobind;

template <class T>
using In1 = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using In2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out1 = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out2 = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Raises ValueError in Python. Every binding checks the shapes of its arrays. Checks that have to read every number
// (that indices are in range and that indptr does not decrease) run once, when counts are created or read
// (kernels/checks.py).
inline void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

template <class Array>
bool has_shape(const Array& array, std::initializer_list<std::size_t> shape) {
    std::size_t axis = 0;
    for (const std::size_t size : shape)
        if (array.shape(axis++) != size) return false;
    return true;
}

template <class Array>
bool has_shape(const std::optional<Array>& array, std::initializer_list<std::size_t> shape) {
    return !array || has_shape(*array, shape);
}

// Number of columns of an array. The kernels store it in an int.
template <class Array>
int columns_of(const Array& array) {
    require(array.shape(1) <= static_cast<std::size_t>(std::numeric_limits<int>::max() / 2),
            "an array has too many columns");
    return static_cast<int>(array.shape(1));
}

// Number of columns of an operand, which is padded to whole vectors.
template <class Array>
int width_of(const Array& operand) {
    require(operand.shape(1) % 16 == 0, "an operand must be padded to a multiple of 16 columns");
    return columns_of(operand);
}

template <class Index, class T>
Counts<Index, T> counts_of(const In1<Index>& indptr, const In1<Index>& indices, const In1<T>& values, std::size_t rows,
                           std::size_t columns) {
    const std::size_t nonzeros = indices.shape(0);
    require(indptr.shape(0) == rows + 1 && values.shape(0) == nonzeros, "the arrays of the counts do not fit together");
    require(indptr.data()[0] == 0 && static_cast<std::size_t>(indptr.data()[rows]) == nonzeros,
            "indptr must start at 0 and end at the number of non-zeros");
    return {indptr.data(), indices.data(), values.data(), static_cast<int64_t>(rows), static_cast<int64_t>(columns)};
}

// Number of threads for this number of multiply-adds per non-zero and per row, times the width.
template <class Index, class T>
int threads_for(int n_threads, const Counts<Index, T>& counts, int width, double by_nonzero, double by_row = 0) {
    const double nonzeros = static_cast<double>(counts.indptr[counts.rows]), rows = static_cast<double>(counts.rows);
    return threads_for(n_threads, (by_nonzero * nonzeros + by_row * rows) * width);
}

// Number of threads for this number of multiply-adds per element of an array.
template <class Array>
int threads_for_each(int n_threads, const Array& array, double by_number) {
    return threads_for(n_threads, by_number * static_cast<double>(array.size()));
}

template <class Array>
auto* pointer_or_null(std::optional<Array>& array) {
    return array ? array->data() : nullptr;
}

inline Isa isa_from(const std::optional<nb::str>& name) { return name ? isa_named(name->c_str()) : chosen_isa(); }

void bind_normal(nb::module_& module);       // bindings_normal.cpp
void bind_variational(nb::module_& module);  // bindings_variational.cpp

}  // namespace polyseme
