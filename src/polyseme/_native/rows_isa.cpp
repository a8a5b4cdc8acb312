// Compiled once per instruction set, with POLYSEME_ISA naming it.
#include "rows.hpp"

namespace polyseme {
namespace POLYSEME_ISA {

RowTable<float> table_float(int width) { return table_for<float>(width); }
RowTable<double> table_double(int width) { return table_for<double>(width); }

}  // namespace POLYSEME_ISA
}  // namespace polyseme
