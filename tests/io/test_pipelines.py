"""A vectorizer and a model in one file: the loaded pipeline gives the same results, and hostile files are one error."""

import json

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import CountVectorizer

import polyseme
from polyseme import LDA, LSA, PLSA, ModelFileError, TopicClassifier, UnsupportedError
from polyseme.text import Vectorizer, make_pipeline
from polyseme.text.vectorizer import TopicPipeline
from sealed_files import rewrite_model

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
TEXTS = [
    "The red wine of San Francisco was served with cheeses.",
    "A cheese and some bread, and wines from San Francisco",
    "Guitars, drums and a bass guitar",
    "Drummers like drums; guitarists like guitars",
] * 4
NEW = ["A guitar and wine in San Francisco", "Nothing of this is known: xyzzy", "cheeses drums 1999"]
VECTORIZERS = {
    "plain": Vectorizer(),
    "language": Vectorizer(language="english", min_df=2),
    "detected": Vectorizer(language="auto", phrases=0.3, dtype=np.float32),
    "n-grams": Vectorizer(ngram_range=(1, 2), stop_words=["the", "a"], token_pattern=r"\b[a-z]{3,}\b"),
    "characters": Vectorizer(analyzer="char_wb", ngram_range=(2, 3), max_features=40),
}


@pytest.fixture
def path(tmp_path):
    make_pipeline(Vectorizer(language="english"), PLSA(2, random_state=0, max_iter=5)).fit(TEXTS).save(
        tmp_path / "file"
    )
    return tmp_path / "file"


@pytest.mark.parametrize("vectorizer", VECTORIZERS.values(), ids=VECTORIZERS)
def test_a_loaded_pipeline_counts_and_transforms_as_before(vectorizer, tmp_path):
    pipeline = TopicPipeline([("count", vectorizer), ("topics", PLSA(2, random_state=0, max_iter=5))]).fit(TEXTS)
    pipeline.save(tmp_path / "file")
    loaded = polyseme.load(tmp_path / "file")
    assert type(loaded) is TopicPipeline
    assert [name for name, _ in loaded.steps] == ["count", "topics"]
    assert (loaded[:-1].transform(NEW) != pipeline[:-1].transform(NEW)).nnz == 0
    assert np.array_equal(loaded.transform(NEW), pipeline.transform(NEW))
    assert list(loaded[-1].topics()["words"]) == list(pipeline[-1].topics()["words"])
    for name, value in loaded.get_params().items():
        if name not in ("steps", "memory", "verbose", "count", "topics"):
            assert value == pipeline.get_params()[name], name
    assert np.array_equal(loaded.fit(TEXTS)[-1].components_, pipeline[-1].components_)


@pytest.mark.parametrize("model", [LDA(2, random_state=0, max_iter=5), LSA(2)])
def test_other_models(model, tmp_path):
    pipeline = make_pipeline(Vectorizer(), model).fit(TEXTS)
    pipeline.save(tmp_path / "file")
    assert np.array_equal(polyseme.load(tmp_path / "file").transform(NEW), pipeline.transform(NEW))


def test_a_classifier(tmp_path):
    pipeline = make_pipeline(Vectorizer(), TopicClassifier(random_state=0)).fit(TEXTS, ["food", "food", "m", "m"] * 4)
    pipeline.save(str(tmp_path / "file"))
    assert list(polyseme.load(str(tmp_path / "file")).predict(NEW)) == list(pipeline.predict(NEW))


def test_the_file_is_plain_data(path):
    content = path.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    vectorizer = json.loads(header["__metadata__"]["polyseme"])["pipeline"]["vectorizer"]
    assert Vectorizer.from_dict(vectorizer).transform(NEW).shape == (3, len(vectorizer["vocabulary"]))


@pytest.mark.parametrize(
    "pipeline",
    [
        make_pipeline(CountVectorizer(), PLSA(2)),
        make_pipeline(Vectorizer(), PCA(2)),
        make_pipeline(Vectorizer(), LSA(3), PCA(2)),
        make_pipeline(PLSA(2)),
    ],
)
def test_other_steps_are_refused(pipeline, tmp_path):
    with pytest.raises(UnsupportedError, match="two steps"):
        pipeline.save(tmp_path / "file")
    assert not list(tmp_path.iterdir())


def test_what_load_would_refuse_is_not_saved(tmp_path):
    slow = make_pipeline(Vectorizer(token_pattern=r"(?:[a-z]+)+ ?"), PLSA(2, max_iter=2)).fit(TEXTS)
    with pytest.raises(UnsupportedError, match="token_pattern"):
        slow.save(tmp_path / "file")
    own = make_pipeline(Vectorizer(tokenizer=str.split, token_pattern=None), PLSA(2, max_iter=2)).fit(TEXTS)
    with pytest.raises(polyseme.InputError, match="tokenizer"):
        own.save(tmp_path / "file")
    assert not list(tmp_path.iterdir())


def of_vectorizer(**changes):
    return lambda pipeline: pipeline["vectorizer"].update(changes)


def of_parameters(**changes):
    return lambda pipeline: pipeline["vectorizer"]["parameters"].update(changes)


HOSTILE = {
    "no names": lambda pipeline: pipeline.pop("names"),
    "one name": lambda pipeline: pipeline.update(names=["a"]),
    "equal names": lambda pipeline: pipeline.update(names=["a", "a"]),
    "names of a wrong type": lambda pipeline: pipeline.update(names=[{}, []]),
    "no vectorizer": lambda pipeline: pipeline.pop("vectorizer"),
    "a list": lambda pipeline: pipeline.update(vectorizer=[]),
    "a third field": lambda pipeline: pipeline.update(memory="/tmp/cache"),
    "fewer words": lambda pipeline: pipeline["vectorizer"]["vocabulary"].pop(),
    "more words": lambda pipeline: pipeline["vectorizer"]["vocabulary"].append("more"),
    "numbers as words": of_vectorizer(vocabulary=[1, 2]),
    "a newer vectorizer": of_vectorizer(format_version=99),
    "forms of a wrong type": of_vectorizer(forms=["a"]),
    "an unknown language": of_parameters(language="os.system"),
    "a function": of_parameters(tokenizer="builtins.eval"),
    "files": of_parameters(input="filename"),
    "a slow pattern": of_parameters(language=None, token_pattern=r"(?:[a-z]+)+ "),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_hostile_files_are_one_error(path, change):
    rewrite_model(path, lambda header, _: change(header["pipeline"]) and None)
    with pytest.raises(ModelFileError) as error:
        polyseme.load(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("value", [None, [], "pipeline", 3])
def test_a_pipeline_of_a_wrong_type_is_refused(path, value):
    rewrite_model(path, lambda header, _: header.update(pipeline=value))
    with pytest.raises(ModelFileError, match="damaged"):
        polyseme.load(path)


def test_a_flipped_bit_in_the_vectorizer_is_noticed(path):
    content = bytearray(path.read_bytes())
    content[content.index(b"shown") + 10] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(ModelFileError):
        polyseme.load(path)
