// The bindings of variational.hpp. Shapes are checked by the caller (dirichlet.py).
#include "variational.hpp"

#include "arrays.hpp"

namespace polyseme {
namespace {

template <class T>
void bind_words(nb::module_& module) {
    module.def(
        "word_operands",
        [](In2<T> lambda, In1<double> eta, In1<double> shift, int topics, Out2<T> B, Out1<double> scales, Out1<double> terms,
           Out1<double> log_sums, int n_threads, std::optional<nb::str> isa) {
            const Isa chosen = isa_from(isa);
            const nb::gil_scoped_release released;
            word_operands<T>(lambda.data(), eta.data(), shift.data(), static_cast<int64_t>(lambda.shape(0)), topics,
                             static_cast<int>(lambda.shape(1)), B.data(), scales.data(), terms.data(), log_sums.data(), n_threads,
                             chosen);
        },
        nb::arg("lambda_").noconvert(), nb::arg("eta").noconvert(), nb::arg("shift").noconvert(), nb::arg("topics"),
        nb::arg("B").noconvert(), nb::arg("scales").noconvert(), nb::arg("terms").noconvert(), nb::arg("log_sums").noconvert(),
        nb::arg("n_threads"), nb::arg("isa") = nb::none());
}

template <class Index, class T>
void bind_documents(nb::module_& module) {
    module.def(
        "improve_gamma",
        [](In1<Index> indptr, In1<Index> indices, In1<T> values, In2<T> B, In1<double> alpha, In1<double> totals,
           std::optional<In1<double>> weights, Out2<T> n, Out2<T> A, std::optional<Out1<double>> terms,
           std::optional<Out1<double>> log_sums, Out1<int32_t> taken, int topics, int steps, double tol, int n_threads,
           std::optional<nb::str> isa) {
            const Counts<Index, T> counts = counts_of<Index, T>(indptr, indices, values, B.shape(0));
            const double* weight = pointer_or_null(weights);
            double* const term = pointer_or_null(terms);
            double* const logs = pointer_or_null(log_sums);
            const GammaSettings settings{topics, steps, tol};
            const Isa chosen = isa_from(isa);
            const nb::gil_scoped_release released;
            improve_gamma<Index, T>(counts, B.data(), static_cast<int>(B.shape(1)), alpha.data(), totals.data(), weight, settings,
                                    n.data(), A.data(), term, logs, taken.data(), n_threads, chosen);
        },
        nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(), nb::arg("values").noconvert(),
        nb::arg("B").noconvert(), nb::arg("alpha").noconvert(), nb::arg("totals").noconvert(),
        nb::arg("weights").noconvert().none(), nb::arg("n").noconvert(), nb::arg("A").noconvert(),
        nb::arg("terms").noconvert().none(), nb::arg("log_sums").noconvert().none(), nb::arg("taken").noconvert(),
        nb::arg("topics"), nb::arg("steps"), nb::arg("tol"), nb::arg("n_threads"), nb::arg("isa") = nb::none());
}

}  // namespace

void bind_variational(nb::module_& module) {
    bind_words<float>(module);
    bind_words<double>(module);
    bind_documents<int32_t, float>(module);
    bind_documents<int32_t, double>(module);
    bind_documents<int64_t, float>(module);
    bind_documents<int64_t, double>(module);
}

}  // namespace polyseme
