// Pointers to the functions of rows/logistic_normal.hpp for one instruction set (see row_table.hpp).
#pragma once
#include "row_table.hpp"

namespace polyseme {

// The prior N(mu, Sigma) of eta, padded to `width` numbers with zeros; the padding of `diagonal` is ones.
struct NormalPrior {
    const double* mean;
    const double* precision;  // inverse of Sigma (width x width)
    const double* diagonal;   // of `precision`
    double log_det;           // of Sigma
    int topics, width;
};

// Arrays of `width` numbers that an update needs.
constexpr int kNormalArrays = 7;

struct NormalTable {
    void (*improve)(const NormalPrior& prior, const double* expected, double total, double* mean, double* variance,
                    double* work);
    double (*terms)(const NormalPrior& prior, double total, const double* mean, const double* variance, double* work);
};

NormalTable normal_table(Isa isa);

}  // namespace polyseme
