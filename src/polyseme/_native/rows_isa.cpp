// The row functions of one instruction set. CMake compiles this file once per instruction set and sets POLYSEME_ISA.
#include "dirichlet_table.hpp"
#include "normal_table.hpp"
#include "rows/coordinate.hpp"
#include "rows/logistic_normal.hpp"
#include "rows/products.hpp"
#include "rows/reciprocal.hpp"
#include "rows/squares.hpp"
#include "rows/sweep.hpp"
#include "special.hpp"

namespace polyseme {
namespace POLYSEME_ISA {

// Functions for a width that is known at compile time, or for any width (0). A sweep gains from more widths than the
// other functions.
template <class T, int Width>
RowTable<T> table_of() {
    constexpr int others = Width <= 128 ? Width : 0, swept = Width / lanes<T> <= kMostPacks ? Width : others;
    return {dots<T, others>,
            accumulate<T, others>,
            accumulate_rows<T, others, int32_t>,
            accumulate_rows<T, others, int64_t>,
            sweep_range<T, swept, int32_t>,
            sweep_range<T, swept, int64_t>,
            ratios<T>,
            weighted_log_sum<T>,
            choose<T>,
            gather<T>,
            evaluate<T>,
            mix<T>,
            slope<T>,
            shift<T>,
            reciprocal_sums<T>,
            multiplied<T>,
            descend<T>,
            transpose<T>,
            gram<T>};
}

template <class T>
RowTable<T> table_for(int width) {
    switch (width) {
        case 16:
            return table_of<T, 16>();
        case 32:
            return table_of<T, 32>();
        case 48:
            return table_of<T, 48>();
        case 64:
            return table_of<T, 64>();
        case 80:
            return table_of<T, 80>();
        case 96:
            return table_of<T, 96>();
        case 112:
            return table_of<T, 112>();
        case 128:
            return table_of<T, 128>();
        case 144:
            return table_of<T, 144>();
        case 160:
            return table_of<T, 160>();
        case 176:
            return table_of<T, 176>();
        case 192:
            return table_of<T, 192>();
        case 208:
            return table_of<T, 208>();
        case 224:
            return table_of<T, 224>();
        case 240:
            return table_of<T, 240>();
        case 256:
            return table_of<T, 256>();
        default:
            return table_of<T, 0>();
    }
}

RowTable<float> table_float(int width) { return table_for<float>(width); }
RowTable<double> table_double(int width) { return table_for<double>(width); }

DirichletTable<float> dirichlet_float() {
    return {dirichlet_weights<float>, dirichlet_terms<float>, exp_scaled<float>};
}
DirichletTable<double> dirichlet_double() {
    return {dirichlet_weights<double>, dirichlet_terms<double>, exp_scaled<double>};
}

NormalTable normal_functions() { return {improve_normal, normal_terms}; }

}  // namespace POLYSEME_ISA
}  // namespace polyseme
