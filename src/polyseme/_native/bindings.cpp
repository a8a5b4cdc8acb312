// Arrays in, arrays out. Shapes are checked by the caller (polyseme.kernels).
#include "arrays.hpp"
#include "blend.hpp"
#include "coordinate.hpp"
#include "foldin.hpp"
#include "mstep.hpp"
#include "products.hpp"
#include "sweep.hpp"

using namespace polyseme;

namespace {

template <class T>
void bind_mstep(nb::module_& module) {
    module.def(
        "finish_rows",
        [](In2<T> A, Out2<T> row_sums, In1<double> totals, Out1<double> gains, int n_threads) {
            const nb::gil_scoped_release released;
            finish_rows<T>(A.data(), row_sums.data(), totals.data(), static_cast<int64_t>(A.shape(0)),
                           static_cast<int>(A.shape(1)), gains.data(), n_threads);
        },
        nb::arg("A").noconvert(), nb::arg("row_sums").noconvert(), nb::arg("totals").noconvert(),
        nb::arg("gains").noconvert(), nb::arg("n_threads"));
    module.def(
        "weighted_sum",
        [](In1<double> weights, In2<T> rows, Out1<double> total, int n_threads) {
            const nb::gil_scoped_release released;
            weighted_sum<T>(weights.data(), rows.data(), static_cast<int64_t>(rows.shape(0)), static_cast<int>(rows.shape(1)),
                            total.data(), n_threads);
        },
        nb::arg("weights").noconvert(), nb::arg("rows").noconvert(), nb::arg("total").noconvert(), nb::arg("n_threads"));
    module.def(
        "finish_words",
        [](In2<T> B, In2<double> word_sums, In1<double> mass, In1<double> totals, Out2<T> phi, Out1<double> gains, int n_threads) {
            const nb::gil_scoped_release released;
            finish_words<T>(B.data(), word_sums.data(), mass.data(), totals.data(), static_cast<int64_t>(B.shape(0)),
                            static_cast<int>(B.shape(1)), phi.data(), gains.data(), n_threads);
        },
        nb::arg("B").noconvert(), nb::arg("word_sums").noconvert(), nb::arg("mass").noconvert(), nb::arg("totals").noconvert(),
        nb::arg("phi").noconvert(), nb::arg("gains").noconvert(), nb::arg("n_threads"));
}

template <class T>
void bind_blend(nb::module_& module) {
    module.def(
        "take_rows",
        [](In2<T> table, In1<int64_t> rows, In1<T> factors, Out2<T> out, int n_threads) {
            const nb::gil_scoped_release released;
            take_rows<T>(table.data(), static_cast<int>(table.shape(1)), rows.data(), static_cast<int64_t>(rows.shape(0)),
                         factors.data(), out.data(), n_threads);
        },
        nb::arg("table").noconvert(), nb::arg("rows").noconvert(), nb::arg("factors").noconvert(), nb::arg("out").noconvert(),
        nb::arg("n_threads"));
    module.def(
        "add_rows",
        [](Out2<T> table, In1<int64_t> rows, In2<T> B, In2<double> sums, double scale, Out1<double> totals, int columns,
           int n_threads) {
            const nb::gil_scoped_release released;
            add_rows<T>(table.data(), static_cast<int>(table.shape(1)), rows.data(), static_cast<int64_t>(rows.shape(0)), B.data(),
                        sums.data(), columns, scale, totals.data(), n_threads);
        },
        nb::arg("table").noconvert(), nb::arg("rows").noconvert(), nb::arg("B").noconvert(), nb::arg("sums").noconvert(),
        nb::arg("scale"), nb::arg("totals").noconvert(), nb::arg("columns"), nb::arg("n_threads"));
}

template <class Index, class T>
void bind(nb::module_& module) {
    module.def(
        "sweep_rows",
        [](In1<Index> indptr, In1<Index> indices, In1<T> values, In2<T> A, In2<T> B, std::optional<Out2<T>> row_sums,
           std::optional<Out1<double>> logs, int n_threads, std::optional<nb::str> isa) {
            const Counts<Index, T> counts = counts_of<Index, T>(indptr, indices, values, B.shape(0));
            T* const sums = pointer_or_null(row_sums);
            double* const log = pointer_or_null(logs);
            const Isa chosen = isa_from(isa);
            const nb::gil_scoped_release released;
            sweep_rows<Index, T>(counts, A.data(), B.data(), static_cast<int>(B.shape(1)), sums, log, n_threads, chosen);
        },
        nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(), nb::arg("values").noconvert(),
        nb::arg("A").noconvert(), nb::arg("B").noconvert(), nb::arg("row_sums").noconvert().none(),
        nb::arg("logs").noconvert().none(), nb::arg("n_threads"), nb::arg("isa") = nb::none());
    module.def(
        "sweep_words",
        [](In1<Index> indptr, In1<Index> indices, In1<T> values, In2<T> A, In2<T> B, Out2<double> word_sums, int n_threads,
           std::optional<nb::str> isa) {
            const Counts<Index, T> by_word = counts_of<Index, T>(indptr, indices, values, A.shape(0));
            const Isa chosen = isa_from(isa);
            const nb::gil_scoped_release released;
            sweep_words<Index, T>(by_word, A.data(), B.data(), static_cast<int>(B.shape(1)), word_sums.data(), n_threads, chosen);
        },
        nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(), nb::arg("values").noconvert(),
        nb::arg("A").noconvert(), nb::arg("B").noconvert(), nb::arg("word_sums").noconvert(), nb::arg("n_threads"),
        nb::arg("isa") = nb::none());
    module.def(
        "products",
        [](In1<Index> indptr, In1<Index> indices, In1<T> values, In2<T> A, In2<T> B, Out1<T> q, int n_threads) {
            const Counts<Index, T> counts = counts_of<Index, T>(indptr, indices, values, B.shape(0));
            const nb::gil_scoped_release released;
            products<Index, T>(counts, A.data(), B.data(), static_cast<int>(B.shape(1)), q.data(), n_threads, chosen_isa());
        },
        nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(), nb::arg("values").noconvert(),
        nb::arg("A").noconvert(), nb::arg("B").noconvert(), nb::arg("q").noconvert(), nb::arg("n_threads"));
    module.def(
        "fold_in",
        [](In1<Index> indptr, In1<Index> indices, In1<T> values, In2<T> B, In1<double> u, In1<T> empty, Out2<T> theta,
           Out1<int32_t> steps,
           double background, double temperature, double tol, int max_iter, bool by_coordinates, int n_threads,
           std::optional<nb::str> isa) {
            const Counts<Index, T> counts = counts_of<Index, T>(indptr, indices, values, B.shape(0));
            const FoldInSettings settings{static_cast<int>(theta.shape(1)), background, temperature, tol, max_iter, by_coordinates};
            const Isa chosen = isa_from(isa);
            const nb::gil_scoped_release released;
            fold_in<Index, T>(counts, B.data(), static_cast<int>(B.shape(1)), u.data(), settings, empty.data(), theta.data(), steps.data(),
                              n_threads, chosen);
        },
        nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(), nb::arg("values").noconvert(),
        nb::arg("B").noconvert(), nb::arg("u").noconvert(), nb::arg("empty").noconvert(), nb::arg("theta").noconvert(), nb::arg("steps").noconvert(),
        nb::arg("background"), nb::arg("temperature"), nb::arg("tol"), nb::arg("max_iter"),
        nb::arg("by_coordinates"), nb::arg("n_threads"), nb::arg("isa") = nb::none());
    module.def(
        "coordinate",
        [](In1<Index> indptr, In1<Index> indices, In1<T> values, In2<T> B, In1<double> u, Out2<T> theta,
           Out1<double> gains, Out1<double> logs, int passes, double enough, int n_threads) {
            const Counts<Index, T> counts = counts_of<Index, T>(indptr, indices, values, B.shape(0));
            const CoordinateSettings settings{static_cast<int>(u.shape(0)), passes, enough};
            const nb::gil_scoped_release released;
            coordinate<Index, T>(counts, B.data(), static_cast<int>(B.shape(1)), u.data(), settings, theta.data(), gains.data(), logs.data(),
                                 n_threads, chosen_isa());
        },
        nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(), nb::arg("values").noconvert(),
        nb::arg("B").noconvert(), nb::arg("u").noconvert(), nb::arg("theta").noconvert(),
        nb::arg("gains").noconvert(), nb::arg("logs").noconvert(), nb::arg("passes"), nb::arg("enough"),
        nb::arg("n_threads"));
}

}  // namespace

NB_MODULE(_kernels, module) {
    module.doc() = "Compiled kernels of polyseme; use them through polyseme.kernels.";
    chosen_isa();  // fails here, when the package is imported, if POLYSEME_ISA names what the processor lacks
    module.def("best_isa", [] { return isa_name(best_isa()); });
    module.def("chosen_isa", [] { return isa_name(chosen_isa()); });
    bind_mstep<float>(module);
    bind_mstep<double>(module);
    bind_blend<float>(module);
    bind_blend<double>(module);
    bind<int32_t, float>(module);
    bind<int32_t, double>(module);
    bind<int64_t, float>(module);
    bind<int64_t, double>(module);
    bind_variational(module);
}
