// Python bindings of the kernels.
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "coordinate.hpp"
#include "coordinate_fit.hpp"
#include "entropic.hpp"
#include "foldin.hpp"
#include "mstep.hpp"
#include "products.hpp"
#include "reciprocal.hpp"
#include "squares.hpp"
#include "stopping.hpp"
#include "sweep.hpp"
#include "table_rows.hpp"

using namespace polyseme;

namespace {

template <class T>
void bind_mstep(nb::module_& module) {
    module.def(
        "finish_rows",
        [](In2<T> A, Out2<T> row_sums, In1<double> totals, Out1<double> gains, int n_threads) {
            const std::size_t rows = A.shape(0), width = A.shape(1);
            require(has_shape(row_sums, {rows, width}) && has_shape(totals, {rows}) && has_shape(gains, {rows}),
                    "the arrays of finish_rows do not fit together");
            const int columns = width_of(A), threads = threads_for_each(n_threads, A, 8);
            const nb::gil_scoped_release released;
            finish_rows<T>(A.data(), row_sums.data(), totals.data(), static_cast<int64_t>(rows), columns, gains.data(),
                           threads);
        },
        nb::arg("A").noconvert(), nb::arg("row_sums").noconvert(), nb::arg("totals").noconvert(),
        nb::arg("gains").noconvert(), nb::arg("n_threads"));
    module.def(
        "weighted_sum",
        [](In1<double> weights, In2<T> rows, Out1<double> total, int n_threads) {
            require(has_shape(weights, {rows.shape(0)}) && has_shape(total, {rows.shape(1)}),
                    "the arrays of weighted_sum do not fit together");
            const int columns = columns_of(rows), threads = threads_for_each(n_threads, rows, 4);
            const nb::gil_scoped_release released;
            weighted_sum<T>(weights.data(), rows.data(), static_cast<int64_t>(rows.shape(0)), columns, total.data(),
                            threads);
        },
        nb::arg("weights").noconvert(), nb::arg("rows").noconvert(), nb::arg("total").noconvert(),
        nb::arg("n_threads"));
    module.def(
        "extrapolate",
        [](In1<T> next, In1<T> last, double size, double keep, Out1<T> out, int n_threads) {
            require(has_shape(last, {next.shape(0)}) && has_shape(out, {next.shape(0)}),
                    "the arrays of extrapolate do not fit together");
            const int threads = threads_for_each(n_threads, next, 2);
            const nb::gil_scoped_release released;
            extrapolate<T>(next.data(), last.data(), static_cast<T>(size), static_cast<T>(keep),
                           static_cast<int64_t>(next.size()), out.data(), threads);
        },
        nb::arg("next").noconvert(), nb::arg("last").noconvert(), nb::arg("size"), nb::arg("keep"),
        nb::arg("out").noconvert(), nb::arg("n_threads"));
    module.def(
        "rescale_columns",
        [](In2<T> factor, In1<T> scales, bool divide, Out2<T> out, int n_threads) {
            require(has_shape(scales, {factor.shape(1)}) && has_shape(out, {factor.shape(0), factor.shape(1)}),
                    "the arrays of rescale_columns do not fit together");
            const int columns = columns_of(factor), threads = threads_for_each(n_threads, factor, 2);
            const nb::gil_scoped_release released;
            rescale_columns<T>(factor.data(), scales.data(), divide, static_cast<int64_t>(factor.shape(0)), columns,
                               out.data(), threads);
        },
        nb::arg("factor").noconvert(), nb::arg("scales").noconvert(), nb::arg("divide"), nb::arg("out").noconvert(),
        nb::arg("n_threads"));
    module.def(
        "finish_words",
        [](In2<T> B, In2<double> word_sums, In1<double> mass, In1<double> totals, Out2<T> phi, Out1<double> gains,
           int n_threads) {
            const std::size_t words = B.shape(0), width = B.shape(1);
            require(has_shape(word_sums, {words, width}) && has_shape(mass, {width}) && has_shape(totals, {words}) &&
                        has_shape(phi, {words, width}) && has_shape(gains, {words}),
                    "the arrays of finish_words do not fit together");
            const int columns = width_of(B), threads = threads_for_each(n_threads, B, 8);
            const nb::gil_scoped_release released;
            finish_words<T>(B.data(), word_sums.data(), mass.data(), totals.data(), static_cast<int64_t>(words),
                            columns, phi.data(), gains.data(), threads);
        },
        nb::arg("B").noconvert(), nb::arg("word_sums").noconvert(), nb::arg("mass").noconvert(),
        nb::arg("totals").noconvert(), nb::arg("phi").noconvert(), nb::arg("gains").noconvert(), nb::arg("n_threads"));
}

// Returns whether all numbers are indices of rows of the table. This is cheap compared with reading the rows.
bool all_in_range(const In1<int64_t>& rows, std::size_t table_rows) {
    const auto most = static_cast<int64_t>(table_rows);
    return std::all_of(rows.data(), rows.data() + rows.shape(0),
                       [most](int64_t row) { return 0 <= row && row < most; });
}

template <class T>
void bind_table_rows(nb::module_& module) {
    module.def(
        "take_rows",
        [](In2<T> table, In1<int64_t> rows, In1<T> factors, Out2<T> out, int n_threads) {
            const std::size_t n = rows.shape(0), width = table.shape(1);
            require(has_shape(factors, {width}) && has_shape(out, {n, width}) && all_in_range(rows, table.shape(0)),
                    "the arrays of take_rows do not fit together");
            const int columns = columns_of(table), threads = threads_for_each(n_threads, out, 4);
            const nb::gil_scoped_release released;
            take_rows<T>(table.data(), columns, rows.data(), static_cast<int64_t>(n), factors.data(), out.data(),
                         threads);
        },
        nb::arg("table").noconvert(), nb::arg("rows").noconvert(), nb::arg("factors").noconvert(),
        nb::arg("out").noconvert(), nb::arg("n_threads"));
    module.def(
        "add_rows",
        [](Out2<T> table, In1<int64_t> rows, In2<T> B, In2<double> sums, double scale, Out1<double> totals, int columns,
           int n_threads) {
            const std::size_t n = rows.shape(0), width = table.shape(1);
            require(has_shape(B, {n, width}) && has_shape(sums, {n, width}) && has_shape(totals, {width}) &&
                        0 <= columns && static_cast<std::size_t>(columns) <= width &&
                        all_in_range(rows, table.shape(0)),
                    "the arrays of add_rows do not fit together");
            const int all_columns = columns_of(table), threads = threads_for_each(n_threads, B, 8);
            const nb::gil_scoped_release released;
            add_rows<T>(table.data(), all_columns, rows.data(), static_cast<int64_t>(n), B.data(), sums.data(), columns,
                        scale, totals.data(), threads);
        },
        nb::arg("table").noconvert(), nb::arg("rows").noconvert(), nb::arg("B").noconvert(),
        nb::arg("sums").noconvert(), nb::arg("scale"), nb::arg("totals").noconvert(), nb::arg("columns"),
        nb::arg("n_threads"));
}

template <class T>
void bind_losses(nb::module_& module) {
    module.def(
        "reciprocal_sums",
        [](In2<T> x, In2<T> A, In2<T> weighted, In2<T> B, std::optional<In1<T>> row_floors,
           std::optional<In1<T>> column_floors, Out2<double> numerators, Out2<double> denominators,
           std::optional<Out1<double>> losses, int topics, int n_threads) {
            const std::size_t rows = x.shape(0), stride = x.shape(1), columns = B.shape(0), width = B.shape(1);
            require(has_shape(A, {rows, width}) && has_shape(weighted, {rows, width}) && columns <= stride &&
                        stride % static_cast<std::size_t>(tile_columns<T>) == 0 && has_shape(row_floors, {rows}) &&
                        has_shape(column_floors, {columns}) && has_shape(numerators, {columns, width}) &&
                        has_shape(denominators, {columns, width}) && has_shape(losses, {columns}) && 0 <= topics &&
                        static_cast<std::size_t>(topics) <= width,
                    "the arrays of reciprocal_sums do not fit together");
            const DenseProblem<T> problem{x.data(),
                                          A.data(),
                                          weighted.data(),
                                          B.data(),
                                          pointer_or_null(row_floors),
                                          pointer_or_null(column_floors),
                                          static_cast<int64_t>(rows),
                                          static_cast<int64_t>(columns),
                                          static_cast<int64_t>(stride),
                                          topics,
                                          columns_of(B)};
            double* const found = pointer_or_null(losses);
            const int threads = threads_for_each(n_threads, x, 3.0 * topics);
            const nb::gil_scoped_release released;
            reciprocal_sums<T>(problem, numerators.data(), denominators.data(), found, threads, chosen_isa());
        },
        nb::arg("x").noconvert(), nb::arg("A").noconvert(), nb::arg("weighted").noconvert(), nb::arg("B").noconvert(),
        nb::arg("row_floors").noconvert().none(), nb::arg("column_floors").noconvert().none(),
        nb::arg("numerators").noconvert(), nb::arg("denominators").noconvert(), nb::arg("losses").noconvert().none(),
        nb::arg("topics"), nb::arg("n_threads"));
    module.def(
        "multiplied",
        [](In2<T> factor, In2<double> numerators, In2<double> denominators, bool root, Out2<T> out, int n_threads) {
            const std::size_t rows = factor.shape(0), width = factor.shape(1);
            require(has_shape(numerators, {rows, width}) && has_shape(denominators, {rows, width}) &&
                        has_shape(out, {rows, width}),
                    "the arrays of multiplied do not fit together");
            const int threads = threads_for_each(n_threads, factor, 16);
            const nb::gil_scoped_release released;
            multiplied<T>(factor.data(), numerators.data(), denominators.data(), root,
                          static_cast<int64_t>(rows * width), out.data(), threads, chosen_isa());
        },
        nb::arg("factor").noconvert(), nb::arg("numerators").noconvert(), nb::arg("denominators").noconvert(),
        nb::arg("root"), nb::arg("out").noconvert(), nb::arg("n_threads"));
    module.def(
        "gram",
        [](In2<T> factor, std::optional<In1<double>> weights, Out2<double> G, int n_threads) {
            const std::size_t rows = factor.shape(0), width = factor.shape(1);
            require(has_shape(weights, {rows}) && has_shape(G, {width, width}),
                    "the arrays of gram do not fit together");
            const int columns = width_of(factor), threads = threads_for_each(n_threads, factor, columns / 2);
            const double* const by_row = pointer_or_null(weights);
            const nb::gil_scoped_release released;
            gram<T>(factor.data(), by_row, static_cast<int64_t>(rows), columns, G.data(), threads, chosen_isa());
        },
        nb::arg("factor").noconvert(), nb::arg("weights").noconvert().none(), nb::arg("G").noconvert(),
        nb::arg("n_threads"));
    module.def(
        "descend",
        [](In2<double> P, In2<T> G, Out2<T> F, int topics, int passes, double enough, int n_threads) {
            const std::size_t rows = F.shape(0), width = F.shape(1);
            require(has_shape(P, {rows, width}) && has_shape(G, {width, width}) && 0 <= topics &&
                        static_cast<std::size_t>(topics) <= width,
                    "the arrays of descend do not fit together");
            const int columns = width_of(F), threads = threads_for_each(n_threads, F, topics);
            const nb::gil_scoped_release released;
            descend<T>(P.data(), G.data(), static_cast<int64_t>(rows), columns, {topics, passes, enough}, F.data(),
                       threads, chosen_isa());
        },
        nb::arg("P").noconvert(), nb::arg("G").noconvert(), nb::arg("F").noconvert(), nb::arg("topics"),
        nb::arg("passes"), nb::arg("enough"), nb::arg("n_threads"));
}

template <class Index, class T>
void bind(nb::module_& module) {
    module.def(
        "sweep_rows",
        [](In1<Index> indptr, In1<Index> indices, In1<T> values, In2<T> A, In2<T> B, std::optional<Out2<T>> row_sums,
           std::optional<Out1<double>> logs, int n_threads, std::optional<nb::str> isa) {
            const Counts<Index, T> counts = counts_of<Index, T>(indptr, indices, values, A.shape(0), B.shape(0));
            require(A.shape(1) == B.shape(1) && has_shape(row_sums, {A.shape(0), A.shape(1)}) &&
                        has_shape(logs, {A.shape(0)}),
                    "the arrays of sweep_rows do not fit together");
            T* const sums = pointer_or_null(row_sums);
            double* const log = pointer_or_null(logs);
            const Isa chosen = isa_from(isa);
            const int width = width_of(B), threads = threads_for(n_threads, counts, width, 2, 1);
            const nb::gil_scoped_release released;
            sweep_rows<Index, T>(counts, A.data(), B.data(), width, sums, log, threads, chosen);
        },
        nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(), nb::arg("values").noconvert(),
        nb::arg("A").noconvert(), nb::arg("B").noconvert(), nb::arg("row_sums").noconvert().none(),
        nb::arg("logs").noconvert().none(), nb::arg("n_threads"), nb::arg("isa") = nb::none());
    module.def(
        "sweep_words",
        [](In1<Index> indptr, In1<Index> indices, In1<T> values, In2<T> A, In2<T> B, Out2<double> word_sums,
           int n_threads, std::optional<nb::str> isa) {
            const Counts<Index, T> by_word = counts_of<Index, T>(indptr, indices, values, B.shape(0), A.shape(0));
            require(A.shape(1) == B.shape(1) && has_shape(word_sums, {B.shape(0), B.shape(1)}),
                    "the arrays of sweep_words do not fit together");
            const Isa chosen = isa_from(isa);
            const int width = width_of(B), threads = threads_for(n_threads, by_word, width, 2, 2);
            const nb::gil_scoped_release released;
            sweep_words<Index, T>(by_word, A.data(), B.data(), width, word_sums.data(), threads, chosen);
        },
        nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(), nb::arg("values").noconvert(),
        nb::arg("A").noconvert(), nb::arg("B").noconvert(), nb::arg("word_sums").noconvert(), nb::arg("n_threads"),
        nb::arg("isa") = nb::none());
    module.def(
        "products",
        [](In1<Index> indptr, In1<Index> indices, In1<T> values, In2<T> A, In2<T> B, Out1<T> q, int n_threads) {
            const Counts<Index, T> counts = counts_of<Index, T>(indptr, indices, values, A.shape(0), B.shape(0));
            require(A.shape(1) == B.shape(1) && has_shape(q, {indices.shape(0)}),
                    "the arrays of products do not fit together");
            const int width = width_of(B), threads = threads_for(n_threads, counts, width, 1);
            const nb::gil_scoped_release released;
            products<Index, T>(counts, A.data(), B.data(), width, q.data(), threads, chosen_isa());
        },
        nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(), nb::arg("values").noconvert(),
        nb::arg("A").noconvert(), nb::arg("B").noconvert(), nb::arg("q").noconvert(), nb::arg("n_threads"));
    module.def(
        "multiply",
        [](In1<Index> indptr, In1<Index> indices, In1<T> values, In2<T> B, Out2<double> out, int n_threads) {
            const Counts<Index, T> counts = counts_of<Index, T>(indptr, indices, values, out.shape(0), B.shape(0));
            require(out.shape(1) == B.shape(1), "the arrays of multiply do not fit together");
            const int width = width_of(B), threads = threads_for(n_threads, counts, width, 1, 1);
            const nb::gil_scoped_release released;
            multiply<Index, T>(counts, B.data(), width, out.data(), threads, chosen_isa());
        },
        nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(), nb::arg("values").noconvert(),
        nb::arg("B").noconvert(), nb::arg("out").noconvert(), nb::arg("n_threads"));
    module.def(
        "descend_counts",
        [](In1<Index> indptr, In1<Index> indices, In1<T> values, In2<T> B, In2<T> G, In2<T> old, Out2<T> F,
           std::optional<Out1<double>> crosses, int topics, int passes, double enough, int n_threads,
           std::optional<nb::str> isa) {
            const std::size_t rows = F.shape(0), width = F.shape(1);
            const Counts<Index, T> counts = counts_of<Index, T>(indptr, indices, values, rows, B.shape(0));
            require(B.shape(1) == width && has_shape(old, {rows, width}) && has_shape(G, {width, width}) &&
                        has_shape(crosses, {rows}) && 0 <= topics && static_cast<std::size_t>(topics) <= width,
                    "the arrays of descend_counts do not fit together");
            const Isa chosen = isa_from(isa);
            const int columns = width_of(F), threads = threads_for(n_threads, counts, columns, 1, topics);
            double* const products = pointer_or_null(crosses);
            const nb::gil_scoped_release released;
            descend_counts<Index, T>(counts, B.data(), G.data(), columns, {topics, passes, enough}, old.data(),
                                     F.data(), products, threads, chosen);
        },
        nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(), nb::arg("values").noconvert(),
        nb::arg("B").noconvert(), nb::arg("G").noconvert(), nb::arg("old").noconvert(), nb::arg("F").noconvert(),
        nb::arg("crosses").noconvert().none(),
        nb::arg("topics"), nb::arg("passes"), nb::arg("enough"), nb::arg("n_threads"), nb::arg("isa") = nb::none());
    module.def(
        "fold_in",
        [](In1<Index> indptr, In1<Index> indices, In1<T> values, In2<T> B, In1<double> u, In1<T> empty, Out2<T> theta,
           Out1<int32_t> steps, double background, double temperature, double tol, int max_iter, bool by_coordinates,
           int n_threads, std::optional<nb::str> isa) {
            const std::size_t rows = theta.shape(0), topics = theta.shape(1);
            const Counts<Index, T> counts = counts_of<Index, T>(indptr, indices, values, rows, B.shape(0));
            require(topics >= 1 && topics + (background > 0 ? 1 : 0) <= B.shape(1) && has_shape(u, {topics}) &&
                        has_shape(empty, {topics}) && has_shape(steps, {rows}),
                    "the arrays of fold_in do not fit together");
            const int width = width_of(B);
            const FoldInSettings settings{
                static_cast<int>(topics), background, temperature, tol, max_iter, by_coordinates};
            const Isa chosen = isa_from(isa);
            constexpr int usual_steps = 16;
            const int threads = threads_for(n_threads, counts, width, 2.0 * std::min(max_iter, usual_steps));
            const nb::gil_scoped_release released;
            fold_in<Index, T>(counts, B.data(), width, u.data(), settings, empty.data(), theta.data(), steps.data(),
                              threads, chosen);
        },
        nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(), nb::arg("values").noconvert(),
        nb::arg("B").noconvert(), nb::arg("u").noconvert(), nb::arg("empty").noconvert(), nb::arg("theta").noconvert(),
        nb::arg("steps").noconvert(), nb::arg("background"), nb::arg("temperature"), nb::arg("tol"),
        nb::arg("max_iter"), nb::arg("by_coordinates"), nb::arg("n_threads"), nb::arg("isa") = nb::none());
    module.def(
        "coordinate",
        [](In1<Index> indptr, In1<Index> indices, In1<T> values, In2<T> B, In1<double> u, Out2<T> theta,
           Out1<double> gains, std::optional<Out1<double>> logs, int passes, double enough, double negligible,
           int n_threads) {
            const std::size_t rows = theta.shape(0);
            const Counts<Index, T> counts = counts_of<Index, T>(indptr, indices, values, rows, B.shape(0));
            require(theta.shape(1) == B.shape(1) && u.shape(0) <= B.shape(1) && has_shape(gains, {rows}) &&
                        has_shape(logs, {rows}),
                    "the arrays of coordinate do not fit together");
            const int width = width_of(B), threads = threads_for(n_threads, counts, width, 6);
            const CoordinateSettings settings{static_cast<int>(u.shape(0)), passes, enough, negligible};
            double* const log = pointer_or_null(logs);
            const nb::gil_scoped_release released;
            coordinate(counts, B.data(), width, u.data(), settings, theta.data(), theta.data(), gains.data(), log,
                                 threads, chosen_isa());
        },
        nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(), nb::arg("values").noconvert(),
        nb::arg("B").noconvert(), nb::arg("u").noconvert(), nb::arg("theta").noconvert(), nb::arg("gains").noconvert(),
        nb::arg("logs").noconvert().none(), nb::arg("passes"), nb::arg("enough"), nb::arg("negligible"),
        nb::arg("n_threads"));
}

// Calls the handlers of signals, which may raise an exception in Python, at most every twentieth of a second.
class SignalChecks {
  public:
    void operator()() {
        const auto now = std::chrono::steady_clock::now();
        if (now < next_) return;
        next_ = now + std::chrono::milliseconds(50);
        const nb::gil_scoped_acquire held;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }

  private:
    std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
};

template <class Index, class T>
void bind_coordinate_fit(nb::module_& module) {
    module.def(
        "coordinate_fit",
        [](In1<Index> indptr, In1<Index> indices, In1<T> values, In1<Index> word_indptr, In1<Index> word_indices,
           In1<T> word_values, In1<double> totals, In1<double> weights, Out2<T> docs, Out2<T> words,
           Out2<T> extrapolated, Out2<T> new_docs, Out1<double> numbers, int topics, int passes, bool extrapolate,
           double enough, int max_iter, double tol, In1<uint8_t> stop, int n_threads) {
            const std::size_t rows = docs.shape(0), columns = words.shape(0), wide = words.shape(1);
            const FitCounts<Index, T> counts{
                counts_of<Index, T>(indptr, indices, values, rows, columns),
                counts_of<Index, T>(word_indptr, word_indices, word_values, columns, rows), totals.data(),
                weights.data()};
            require(docs.shape(1) == wide && has_shape(extrapolated, {columns, wide}) &&
                        has_shape(new_docs, {rows, wide}) && has_shape(totals, {rows}) &&
                        has_shape(weights, {rows}) && has_shape(numbers, {kFitNumbers}) && has_shape(stop, {1}) &&
                        1 <= topics && static_cast<std::size_t>(topics) <= wide,
                    "the arrays of coordinate_fit do not fit together");
            const FitSettings settings{topics, passes, extrapolate, enough};
            const int width = width_of(words);
            auto& state = *reinterpret_cast<FitState*>(numbers.data());
            const volatile uint8_t& stopped = *stop.data();
            int iterations = 0;
            const nb::gil_scoped_release released;
            SignalChecks check_signals;
            const FitFactors<T> factors{docs.data(), words.data(), extrapolated.data(), new_docs.data()};
            CoordinateFit<Index, T> fit(counts, settings, factors, width, state, n_threads, chosen_isa());
            if (std::isnan(state.log_likelihood)) fit.begin();
            std::vector<double> history{state.log_likelihood};
            const auto remaining = [&] {
                const double gain = remaining_gain(history.data(), static_cast<int64_t>(history.size()));
                return state.exhausted == 0 ? gain : std::min(gain, state.gap);
            };
            while (iterations < max_iter && state.exhausted == 0 && !(remaining() < tol) && stopped == 0) {
                fit.advance();
                history.push_back(state.log_likelihood);
                ++iterations;
                check_signals();
            }
            return std::make_pair(iterations, remaining());
        },
        nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(), nb::arg("values").noconvert(),
        nb::arg("word_indptr").noconvert(), nb::arg("word_indices").noconvert(), nb::arg("word_values").noconvert(),
        nb::arg("totals").noconvert(), nb::arg("weights").noconvert(), nb::arg("docs").noconvert(),
        nb::arg("words").noconvert(), nb::arg("extrapolated").noconvert(), nb::arg("new_docs").noconvert(),
        nb::arg("numbers").noconvert(), nb::arg("topics"), nb::arg("passes"), nb::arg("extrapolate"),
        nb::arg("enough"), nb::arg("max_iter"), nb::arg("tol"), nb::arg("stop").noconvert(), nb::arg("n_threads"));
}

}  // namespace

NB_MODULE(_kernels, module) {
    module.doc() = "Compiled kernels of polyseme; use them through polyseme.kernels.";
    module.def("best_isa", [] { return isa_name(best_isa()); });
    module.def("chosen_isa", [] { return isa_name(chosen_isa()); });
    module.def("remaining_gain", [](In1<double> values, int64_t least) {
        return remaining_gain(values.data(), static_cast<int64_t>(values.size()), least);
    }, nb::arg("values").noconvert(), nb::arg("least"));
    module.def(
        "entropic_rows",
        [](In2<double> counts, In2<double> factor, Out2<double> out, double beta, int n_threads) {
            const std::size_t rows = counts.shape(0), columns = counts.shape(1);
            require(has_shape(factor, {rows, columns}) && has_shape(out, {rows, columns}),
                    "the arrays of entropic_rows do not fit together");
            const int threads = threads_for_each(n_threads, counts, 500);
            const nb::gil_scoped_release released;
            entropic_rows(counts.data(), factor.data(), beta, static_cast<int64_t>(rows), static_cast<int64_t>(columns),
                          out.data(), threads);
        },
        nb::arg("counts").noconvert(), nb::arg("factor").noconvert(), nb::arg("out").noconvert(), nb::arg("beta"),
        nb::arg("n_threads"));
    module.def("threads_started", [] { return threads_started().load(); });
    bind_mstep<float>(module);
    bind_mstep<double>(module);
    bind_table_rows<float>(module);
    bind_table_rows<double>(module);
    bind_losses<float>(module);
    bind_losses<double>(module);
    bind<int32_t, float>(module);
    bind_coordinate_fit<int32_t, float>(module);
    bind<int32_t, double>(module);
    bind_coordinate_fit<int32_t, double>(module);
    bind<int64_t, float>(module);
    bind_coordinate_fit<int64_t, float>(module);
    bind<int64_t, double>(module);
    bind_coordinate_fit<int64_t, double>(module);
    bind_normal(module);
    bind_variational(module);
}
