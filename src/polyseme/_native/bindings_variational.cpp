// Python bindings of variational.hpp.
#include "variational.hpp"

#include "arrays.hpp"

namespace polyseme {
namespace {

template <class T>
void bind_words(nb::module_& module) {
    module.def(
        "word_operands",
        [](In2<T> lambda, In2<double> eta, In1<double> shift, int topics, Out2<T> B, Out1<double> scales,
           Out1<double> terms, Out1<double> log_sums, int n_threads, std::optional<nb::str> isa) {
            const std::size_t words = lambda.shape(0), columns = lambda.shape(1);
            require(1 <= topics && static_cast<std::size_t>(topics) <= columns &&
                        (has_shape(eta, {words, 1}) || has_shape(eta, {words, columns})) &&
                        has_shape(shift, {columns}) && has_shape(B, {words, columns}) && has_shape(scales, {words}) &&
                        has_shape(terms, {words}) && has_shape(log_sums, {words}),
                    "the arrays of word_operands do not fit together");
            const Isa chosen = isa_from(isa);
            const int width = width_of(lambda), threads = threads_for_each(n_threads, lambda, 32);
            const nb::gil_scoped_release released;
            word_operands<T>(lambda.data(), eta.data(), eta.shape(1) > 1, shift.data(), static_cast<int64_t>(words),
                             topics, width, B.data(), scales.data(), terms.data(), log_sums.data(), threads, chosen);
        },
        nb::arg("lambda_").noconvert(), nb::arg("eta").noconvert(), nb::arg("shift").noconvert(), nb::arg("topics"),
        nb::arg("B").noconvert(), nb::arg("scales").noconvert(), nb::arg("terms").noconvert(),
        nb::arg("log_sums").noconvert(), nb::arg("n_threads"), nb::arg("isa") = nb::none());
}

template <class Index, class T>
void bind_documents(nb::module_& module) {
    module.def(
        "improve_gamma",
        [](In1<Index> indptr, In1<Index> indices, In1<T> values, In2<T> B, In1<double> alpha, In1<double> totals,
           std::optional<In1<double>> weights, Out2<T> n, Out2<T> A, std::optional<Out1<double>> terms,
           std::optional<Out1<double>> log_sums, Out1<int32_t> taken, int topics, int steps, double tol, int n_threads,
           std::optional<nb::str> isa) {
            const std::size_t rows = n.shape(0), columns = B.shape(1);
            const Counts<Index, T> counts = counts_of<Index, T>(indptr, indices, values, rows, B.shape(0));
            require(1 <= topics && static_cast<std::size_t>(topics) <= columns && has_shape(alpha, {columns}) &&
                        has_shape(totals, {rows}) && has_shape(weights, {rows}) && has_shape(n, {rows, columns}) &&
                        has_shape(A, {rows, columns}) && has_shape(terms, {rows}) && has_shape(log_sums, {columns}) &&
                        terms.has_value() == log_sums.has_value() && has_shape(taken, {rows}),
                    "the arrays of improve_gamma do not fit together");
            const double* weight = pointer_or_null(weights);
            double* const term = pointer_or_null(terms);
            double* const logs = pointer_or_null(log_sums);
            const GammaSettings settings{topics, steps, tol};
            const Isa chosen = isa_from(isa);
            constexpr int usual_steps = 8;
            const int many = std::min(std::max(steps, 1), usual_steps);
            const int width = width_of(B), threads = threads_for(n_threads, counts, width, 2 * many, 8 * many);
            const nb::gil_scoped_release released;
            improve_gamma<Index, T>(counts, B.data(), width, alpha.data(), totals.data(), weight, settings, n.data(),
                                    A.data(), term, logs, taken.data(), threads, chosen);
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
