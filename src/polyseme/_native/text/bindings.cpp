// Python bindings of the counter and of the sequences of words. They check the sizes of arrays; the caller checks the
// settings (text/tokens.py).
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <stdexcept>

#include "duplicates.hpp"
#include "sequences.hpp"

namespace nb = nanobind;
using namespace polyseme::text;

namespace {

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr std::size_t kCodes = 0x110000;  // entries of a table of characters, one per code point

void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

// Returns the largest number plus one. Negative numbers are ignored.
std::size_t past_largest(const In<int32_t>& numbers) {
    int64_t past = 0;
    for (std::size_t i = 0; i < numbers.shape(0); ++i) past = std::max<int64_t>(past, int64_t{numbers.data()[i]} + 1);
    return static_cast<std::size_t>(past);
}

Text text_of(nb::handle object) {
    PyObject* const string = object.ptr();
    if (!PyUnicode_Check(string)) {
        PyErr_Format(PyExc_TypeError, "a string was expected, not %.100s", Py_TYPE(string)->tp_name);
        throw nb::python_error();
    }
#if PY_VERSION_HEX < 0x030C0000
    if (PyUnicode_READY(string) < 0) throw nb::python_error();
#endif
    return {PyUnicode_DATA(string), static_cast<int64_t>(PyUnicode_GET_LENGTH(string)),
            static_cast<int>(PyUnicode_KIND(string))};
}

bool contains(const Text& text, const std::vector<uint32_t>& characters) {
    bool found = false;
    with_characters(text, [&](const auto* data) {
        using Character = std::decay_t<decltype(*data)>;
        for (const uint32_t character : characters) {
            const auto wanted = static_cast<Character>(character);
            if (static_cast<uint32_t>(wanted) != character) continue;
            found |= std::find(data, data + text.length, wanted) != data + text.length;
        }
    });
    return found;
}

// The texts of a batch of documents. A document with a character of `peculiar`, whose lower case is more than one
// character or depends on its context, is replaced by the result of str.lower.
std::vector<Text> texts_of(nb::list documents, const std::vector<uint32_t>& peculiar) {
    std::vector<Text> texts;
    texts.reserve(documents.size());
    for (std::size_t i = 0; i < documents.size(); ++i) {
        Text text = text_of(documents[i]);
        if (text.width > 1 && contains(text, peculiar)) {
            documents[i] = documents[i].attr("lower")();
            text = text_of(documents[i]);
        }
        texts.push_back(text);
    }
    return texts;
}

std::vector<std::vector<Text>> words_of(const nb::list& documents) {
    std::vector<std::vector<Text>> words(documents.size());
    for (std::size_t i = 0; i < documents.size(); ++i)
        for (nb::handle word : nb::cast<nb::list>(documents[i])) words[i].push_back(text_of(word));
    return words;
}

WordTable table_of(const nb::list& words) {
    WordTable table;
    Buffer buffer;
    for (nb::handle word : words) {
        buffer.cut(0);
        put_text(buffer, text_of(word));
        buffer.put(0);
        table.add(buffer.at(0), buffer.size() - 1);
    }
    return table;
}

nb::list strings_of(const std::vector<std::string_view>& words) {
    nb::list strings;
    for (const std::string_view word : words) {
        PyObject* const string =
            PyUnicode_DecodeUTF8(word.data(), static_cast<Py_ssize_t>(word.size()), "surrogatepass");
        if (!string) throw nb::python_error();
        strings.append(nb::steal(string));
    }
    return strings;
}

// A counter with the table of characters, which belongs to Python and must outlive the counter. `numbers` is an upper
// limit for the numbers of words; it is 0 until `words` has numbered them.
struct BoundCounter {
    In<uint32_t> characters;
    std::vector<uint32_t> peculiar;
    Counter counter;
    std::size_t numbers = 0;
};

struct BoundSequences {
    In<uint32_t> characters;
    std::vector<uint32_t> peculiar;
    Sequences sequences;
    std::size_t numbers = 0;
};

template <class Value>
void bind_write(nb::class_<BoundCounter>& type) {
    type.def(
        "write",
        [](BoundCounter& self, Out<int64_t> indptr, Out<int32_t> indices, Out<Value> values, int n_threads) {
            const auto rows = static_cast<std::size_t>(self.counter.rows());
            const auto nonzeros = static_cast<std::size_t>(self.counter.nonzeros());
            require(indptr.shape(0) == rows + 1 && indices.shape(0) == nonzeros && values.shape(0) == nonzeros,
                    "the arrays of write do not fit the counts");
            const nb::gil_scoped_release released;
            self.counter.write<Value>(indptr.data(), indices.data(), values.data(), n_threads);
        },
        nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(), nb::arg("values").noconvert(),
        nb::arg("n_threads"));
}

void bind_counter(nb::module_& module) {
    nb::class_<BoundCounter> type(module, "Counter");
    type.def(
            "__init__",
            [](BoundCounter* self, In<uint32_t> characters, std::vector<uint32_t> peculiar, int unit,
               int64_t min_length, std::size_t least, std::size_t most, nb::list stops, bool keep) {
                require(characters.shape(0) == kCodes, "the table of characters has the wrong size");
                require(0 <= unit && unit <= 2 && 1 <= least && least <= most, "unit or the range of n-grams is wrong");
                const Shape shape{static_cast<Unit>(unit), min_length, least, most};
                new (self) BoundCounter{characters, std::move(peculiar),
                                        Counter(characters.data(), shape, table_of(stops), keep)};
            },
            nb::arg("characters").noconvert(), nb::arg("peculiar"), nb::arg("unit"), nb::arg("min_length"),
            nb::arg("least"), nb::arg("most"), nb::arg("stops"), nb::arg("keep"))
        .def("add",
             [](BoundCounter& self, nb::list documents, int n_threads) {
                 const std::vector<Text> texts = texts_of(documents, self.peculiar);
                 const nb::gil_scoped_release released;
                 self.counter.add(texts, n_threads);
             })
        .def("add_words",
             [](BoundCounter& self, nb::list documents, int n_threads) {
                 const std::vector<std::vector<Text>> words = words_of(documents);
                 const nb::gil_scoped_release released;
                 self.counter.add_words(words.size(), n_threads, [&](std::size_t i, auto put) {
                     Buffer buffer;
                     for (const Text& word : words[i]) {
                         buffer.cut(0);
                         put_text(buffer, word);
                         put(buffer.at(0), buffer.size());
                     }
                 });
             })
        .def("words",
             [](BoundCounter& self, int n_threads) {
                 const std::vector<std::string_view>* words;
                 {
                     const nb::gil_scoped_release released;
                     words = &self.counter.merge(n_threads);
                 }
                 self.numbers = words->size();
                 return strings_of(*words);
             })
        .def(
            "totals",
            [](BoundCounter& self, Out<int64_t> tokens, Out<int64_t> documents) {
                require(tokens.shape(0) >= self.numbers && documents.shape(0) >= self.numbers,
                        "totals needs an entry for each word");
                self.counter.totals(tokens.data(), documents.data());
            },
            nb::arg("tokens").noconvert(), nb::arg("documents").noconvert())
        .def(
            "renumber",
            [](BoundCounter& self, In<int32_t> column, int n_threads) {
                require(column.shape(0) >= self.numbers, "renumber needs a number for each word");
                const std::size_t numbers = past_largest(column);
                {
                    const nb::gil_scoped_release released;
                    self.counter.renumber(column.data(), n_threads);
                }
                self.numbers = numbers;
            },
            nb::arg("column").noconvert(), nb::arg("n_threads"))
        .def_prop_ro("rows", [](const BoundCounter& self) { return self.counter.rows(); })
        .def_prop_ro("nonzeros", [](const BoundCounter& self) { return self.counter.nonzeros(); });
    bind_write<int32_t>(type);
    bind_write<int64_t>(type);
    bind_write<float>(type);
    bind_write<double>(type);
}

void bind_sequences(nb::module_& module) {
    nb::class_<BoundSequences>(module, "Sequences")
        .def(
            "__init__",
            [](BoundSequences* self, In<uint32_t> characters, std::vector<uint32_t> peculiar, int64_t min_length,
               nb::list stops) {
                require(characters.shape(0) == kCodes, "the table of characters has the wrong size");
                new (self) BoundSequences{characters, std::move(peculiar),
                                          Sequences(characters.data(), min_length, table_of(stops))};
            },
            nb::arg("characters").noconvert(), nb::arg("peculiar"), nb::arg("min_length"), nb::arg("stops"))
        .def("add",
             [](BoundSequences& self, nb::list documents, int n_threads) {
                 const std::vector<Text> texts = texts_of(documents, self.peculiar);
                 const nb::gil_scoped_release released;
                 self.sequences.add(texts, n_threads);
             })
        .def("add_words",
             [](BoundSequences& self, nb::list documents, int) { self.sequences.add_words(words_of(documents)); })
        .def("words",
             [](BoundSequences& self, int n_threads) {
                 const std::vector<std::string_view>* words;
                 {
                     const nb::gil_scoped_release released;
                     words = &self.sequences.merge(n_threads);
                 }
                 self.numbers = words->size();
                 return strings_of(*words);
             })
        .def(
            "totals",
            [](BoundSequences& self, Out<int64_t> tokens) {
                require(tokens.shape(0) >= self.numbers, "totals needs an entry for each word");
                self.sequences.totals(tokens.data());
            },
            nb::arg("tokens").noconvert())
        .def(
            "renumber",
            [](BoundSequences& self, In<int32_t> to, int n_threads) {
                require(to.shape(0) >= self.numbers, "renumber needs a number for each word");
                const std::size_t numbers = past_largest(to);
                {
                    const nb::gil_scoped_release released;
                    self.sequences.renumber(to.data(), n_threads);
                }
                self.numbers = numbers;
            },
            nb::arg("to").noconvert(), nb::arg("n_threads"))
        .def(
            "size", [](BoundSequences& self, bool barriers) { return self.sequences.size(barriers); },
            nb::arg("barriers"))
        .def(
            "write",
            [](BoundSequences& self, Out<int32_t> numbers, Out<int64_t> indptr, bool barriers) {
                require(numbers.shape(0) == self.sequences.size(barriers) &&
                            indptr.shape(0) == self.sequences.documents() + 1,
                        "the arrays of write do not fit the documents");
                const nb::gil_scoped_release released;
                self.sequences.write(numbers.data(), indptr.data(), barriers);
            },
            nb::arg("numbers").noconvert(), nb::arg("indptr").noconvert(), nb::arg("barriers"))
        .def("pairs",
             [](BoundSequences& self, int64_t min_count, int n_threads) {
                 std::vector<PairCount> found;
                 {
                     const nb::gil_scoped_release released;
                     found = self.sequences.pairs(min_count, n_threads);
                 }
                 nb::list rows;
                 for (const PairCount& pair : found) rows.append(nb::make_tuple(pair.first, pair.second, pair.count));
                 return rows;
             })
        .def(
            "join",
            [](BoundSequences& self, In<int32_t> first, In<int32_t> second, In<int32_t> joined, int n_threads) {
                require(second.shape(0) == first.shape(0) && joined.shape(0) == first.shape(0),
                        "the arrays of join differ in length");
                self.numbers = std::max(self.numbers, past_largest(joined));
                const nb::gil_scoped_release released;
                self.sequences.join(first.data(), second.data(), joined.data(), first.shape(0), n_threads);
            },
            nb::arg("first").noconvert(), nb::arg("second").noconvert(), nb::arg("joined").noconvert(),
            nb::arg("n_threads"))
        .def("count_into", [](BoundSequences& self, BoundCounter& counter, nb::list names, int n_threads) {
            const WordTable table = table_of(names);
            require(table.size() >= self.numbers, "count_into needs a different name for each word");
            const nb::gil_scoped_release released;
            self.sequences.count_into(counter.counter, table, n_threads);
        });
}

struct BoundNearDuplicates {
    In<uint32_t> characters;
    NearDuplicates finder;
};

void bind_near_duplicates(nb::module_& module) {
    nb::class_<BoundNearDuplicates>(module, "NearDuplicates")
        .def(
            "__init__",
            [](BoundNearDuplicates* self, In<uint32_t> characters, std::size_t words, double least,
               const nb::bytes& path) {  // a file name may have bytes that are not valid in UTF-8
                require(characters.shape(0) == kCodes, "the table of characters has the wrong size");
                require(words > 0, "a shingle has at least one word");
                new (self) BoundNearDuplicates{
                    characters, NearDuplicates(characters.data(), words, least, std::string(path.c_str(), path.size()))};
            },
            nb::arg("characters").noconvert(), nb::arg("words"), nb::arg("least"), nb::arg("path"))
        .def("add",
             [](BoundNearDuplicates& self, nb::list documents, int n_threads) {
                 const std::vector<Text> texts = texts_of(documents, {});
                 const nb::gil_scoped_release released;
                 return self.finder.add(texts, n_threads);
             })
        .def("skip", [](BoundNearDuplicates& self, int64_t n) { self.finder.skip(n); })
        .def("close", [](BoundNearDuplicates& self) { self.finder.close(); })
        .def_prop_ro("compared", [](const BoundNearDuplicates& self) { return self.finder.compared(); });
}

}  // namespace

NB_MODULE(_counting, module) {
    module.doc() = "Compiled counting of words; use it through polyseme.text.";
    module.def("threads_started", [] { return polyseme::threads_started().load(); });
    bind_counter(module);
    bind_sequences(module);
    bind_near_duplicates(module);
}
