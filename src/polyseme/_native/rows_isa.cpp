// The row functions of one instruction set. CMake compiles this file once per instruction set and sets POLYSEME_ISA.
#include "dirichlet_table.hpp"
#include "rows.hpp"
#include "special.hpp"

namespace polyseme {
namespace POLYSEME_ISA {

RowTable<float> table_float(int width) { return table_for<float>(width); }
RowTable<double> table_double(int width) { return table_for<double>(width); }

DirichletTable<float> dirichlet_float() {
    return {dirichlet_weights<float>, dirichlet_terms<float>, exp_scaled<float>};
}
DirichletTable<double> dirichlet_double() {
    return {dirichlet_weights<double>, dirichlet_terms<double>, exp_scaled<double>};
}

}  // namespace POLYSEME_ISA
}  // namespace polyseme
