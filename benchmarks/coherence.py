"""Coherence of the same topics on 20 Newsgroups by polyseme and by gensim's CoherenceModel.

    python benchmarks/coherence.py

Both start with the texts as lists of words and an existing vocabulary, count the windows (for UMass the documents, from
counts) and compute the coherence of every topic. They alternate in one process. polyseme uses one thread, so gensim
uses processes=1; processes=2 is listed as well.

gensim 4.4 drops a word as soon as its first token leaves a window, even if another one is inside, so windowed measures
differ. "as defined" is the difference if its windows are counted according to the definition, which is slower and not
timed.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from common import NEWS_TEXTS, can_import, describe_machine, load_lines, report_ratio, skip, time_call
from polyseme import PLSA
from polyseme.metrics import coherence, top_words
from polyseme.metrics.coherence import token_sequences

MEASURES = {"umass": "u_mass", "uci": "c_uci", "npmi": "c_npmi", "c_v": "c_v"}


def sample_newsgroups(n: int) -> list[str]:
    texts = [row["text"] for row in load_lines(NEWS_TEXTS)]
    return [texts[i] for i in np.random.default_rng(0).permutation(len(texts))[:n]]


def polyseme_coherence(
    measure: str, topics: np.ndarray, words: list[list[str]], vocabulary: list[str], counts
) -> np.ndarray:
    reference = counts if measure == "umass" else token_sequences(words, vocabulary)
    return coherence(topics, reference, measure).topics


class Gensim:
    """CoherenceModel with everything prepared that does not depend on the measure."""

    def __init__(self, topics: np.ndarray, words: list[list[str]], vocabulary: list[str], counts) -> None:
        from gensim.corpora import Dictionary

        self.dictionary = Dictionary()
        self.dictionary.token2id = {word: column for column, word in enumerate(vocabulary)}
        self.dictionary.id2token = dict(enumerate(vocabulary))
        self.topics = [[vocabulary[word] for word in topic] for topic in topics]
        self.words = words
        rows = [slice(*bounds) for bounds in zip(counts.indptr[:-1], counts.indptr[1:], strict=True)]
        self.corpus = [list(zip(counts.indices[row].tolist(), counts.data[row].tolist(), strict=True)) for row in rows]

    def coherence(self, measure: str, processes: int) -> np.ndarray:
        from gensim.models import CoherenceModel

        reference = {"corpus": self.corpus} if measure == "umass" else {"texts": self.words}
        model = CoherenceModel(
            topics=self.topics, dictionary=self.dictionary, coherence=MEASURES[measure], processes=processes,
            topn=len(self.topics[0]), **reference,
        )  # fmt: skip
        return np.array(model.get_coherence_per_topic())

    def as_defined(self, measure: str) -> np.ndarray:
        """Return the coherence with the words of every window looked up again."""
        from gensim.topic_coherence.text_analysis import WordOccurrenceAccumulator as Accumulator

        original = Accumulator._slide_window

        def slide(self: Accumulator, window: np.ndarray, doc_num: int) -> None:
            self._uniq_words[:] = False
            self._uniq_words[window] = True

        try:
            Accumulator._slide_window = slide
            return self.coherence(measure, 1)
        finally:
            Accumulator._slide_window = original


def time_best(call, repeats: int) -> tuple[float, np.ndarray]:
    """Return the smallest time of several calls, and the result."""
    results: list[np.ndarray] = []
    seconds = min(time_call(lambda: results.append(call())) for _ in range(repeats))
    return seconds, results[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--topics", type=int, default=50)
    parser.add_argument("--words", type=int, default=10, help="top words of a topic")
    parser.add_argument("--measures", nargs="+", choices=list(MEASURES), default=list(MEASURES))
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    describe_machine("gensim")
    if not can_import("gensim"):
        skip("gensim is not installed.")
    texts = sample_newsgroups(options.documents)
    vectorizer = CountVectorizer(stop_words="english", min_df=2)
    counts = vectorizer.fit_transform(texts).tocsr()
    vocabulary = [str(word) for word in vectorizer.get_feature_names_out()]
    analyzer = vectorizer.build_analyzer()
    words = [analyzer(text) for text in texts]
    model = PLSA(options.topics, random_state=0, max_iter=30, dtype="float32").fit(counts)
    topics = top_words(model.components_, options.words)
    print(
        f"20 Newsgroups: {len(words)} documents, {sum(map(len, words))} tokens; "
        f"{options.topics} topics of {options.words} words"
    )
    peer = Gensim(topics, words, vocabulary, counts)
    print("measure   ours s   gensim s: 1 process  2 processes   difference   as defined")
    for measure in options.measures:
        seconds, values = time_best(
            lambda measure=measure: polyseme_coherence(measure, topics, words, vocabulary, counts), 3
        )
        one, theirs = time_best(lambda measure=measure: peer.coherence(measure, 1), 1)
        two, _ = time_best(lambda measure=measure: peer.coherence(measure, 2), 1)
        defined = theirs if measure == "umass" else peer.as_defined(measure)
        print(
            f"{measure:8} {seconds:7.3f} {one:20.3f} {two:12.3f}"
            f" {np.abs(values - theirs).max():12.1e} {np.abs(values - defined).max():12.1e}"
        )
        report_ratio(f"coherence {measure}, one thread", "gensim CoherenceModel", seconds, one)


if __name__ == "__main__":
    main()
