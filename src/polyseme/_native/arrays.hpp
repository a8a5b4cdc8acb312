// NumPy arrays as the bindings take them.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <optional>

#include "counts.hpp"
#include "row_table.hpp"

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

template <class Index, class T>
Counts<Index, T> counts_of(const In1<Index>& indptr, const In1<Index>& indices, const In1<T>& values, std::size_t columns) {
    return {indptr.data(), indices.data(), values.data(), static_cast<int64_t>(indptr.shape(0)) - 1, static_cast<int64_t>(columns)};
}

template <class Array>
auto* pointer_or_null(std::optional<Array>& array) {
    return array ? array->data() : nullptr;
}

inline Isa isa_from(const std::optional<nb::str>& name) { return name ? isa_named(name->c_str()) : chosen_isa(); }

void bind_variational(nb::module_& module);  // bindings_variational.cpp

}  // namespace polyseme
