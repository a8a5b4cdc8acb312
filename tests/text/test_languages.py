"""Vectorizer with a language: words, stop words and stems; language detection; phrases; conversion to JSON."""

import json
import re
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from polyseme import InputError, MissingExtraError, ModelFileError, UnsupportedError
from polyseme.text import LANGUAGES, Vectorizer, tokens
from polyseme.text.languages import detect_language, document_language, get_language, name_stems, npmi

Stemmer = pytest.importorskip("Stemmer")


def words(text, language="other", **parameters):
    """Return the words of one text in the order of the vocabulary, repeated as often as they occur."""
    counter = Vectorizer(language=language, **{"keep_numbers": True, **parameters})
    counts = counter.fit_transform([text]).toarray()[0]
    return [name for name, count in zip(counter.get_feature_names_out(), counts, strict=True) for _ in range(count)]


# words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Cafe\u0301 CAFÉ café", ["café"] * 3),  # composed or not
        ("นะครับ ค่ะ", ["ค่ะ", "นะครับ"]),  # Thai words are not cut at their marks
        ("हिन्दी में पढ़ें", ["पढ़ें", "में", "हिन्दी"]),
        ("தமிழ் மொழி", ["தமிழ்", "மொழி"]),
        ("ﬁnance １２３ Ｈｅｌｌｏ", ["123", "finance", "hello"]),
        ("co\u00adop\u00aderate", ["cooperate"]),
        ("می\u200cخواهم \u200cx\u200c", ["می\u200cخواهم"]),
        ("snake_case_name", ["case", "name", "snake"]),
        ("東京都", ["京都", "東京"]),
        ("東 in 東京", ["in", "東", "東京"]),
        ("ビールを飲む", ["ビー", "ルを", "を飲", "ール", "飲む"]),
        ("한국어 단어", ["단어", "한국어"]),
        ("ΟΔΟΣ οδός", ["οδος", "οδός"]),
        ("a I x 7", []),
    ],
)
def test_words_of_any_language(text, expected):
    expected = sorted(expected)
    if not expected:
        with pytest.raises(ValueError, match="empty vocabulary"):
            words(text)
        return
    assert words(text, stem=False) == expected


def test_rules_of_single_languages():
    assert words("Don’t can't l'eau", "english", stem=False, stop_words=[]) == ["can't", "don't", "l'eau"]
    assert words("l'eau d’or", "french", stem=False, stop_words=[]) == ["eau", "or"]
    assert words("ISPARTA İzmir", "turkish", stem=False) == ["izmir", "ısparta"]
    assert words("col·legi", "catalan", stem=False) == ["col·legi"]
    assert words("한국어", "korean") == ["국어", "한국"]


@pytest.mark.filterwarnings("ignore:The parameter 'token_pattern' will not be used")
def test_a_tokenizer_replaces_the_rules_of_the_language():
    cut = {"東京都に": ["東京", "都", "に"]}
    assert words("東京都に", "japanese", tokenizer=cut.__getitem__) == sorted(["東京", "都", "に"])
    assert words("Running|runs|THE", "english", tokenizer=lambda text: text.split("|")) == ["runs", "runs"]


def test_strip_accents_and_case():
    assert words("École ÉCOLE été", "french", strip_accents="unicode", stem=False) == ["ecole", "ecole"]
    assert words("Paris paris", "french", lowercase=False, stem=False) == ["Paris", "paris"]


# stop words and stems


def test_every_stemmer_has_its_language():
    assert set(Stemmer.algorithms()) <= set(LANGUAGES)
    for name in Stemmer.algorithms():
        assert LANGUAGES[name].stemmer == name
        assert LANGUAGES[name].stop_words


def test_languages_have_codes():
    assert get_language("en") is LANGUAGES["english"]
    assert get_language("zh") is LANGUAGES["chinese"]
    codes = [language.code for language in LANGUAGES.values() if language.code]
    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize("name", sorted(name for name in LANGUAGES if LANGUAGES[name].stop_words))
def test_stop_words_are_words_of_their_language(name):
    stops = LANGUAGES[name].stop_words
    long = sorted(word for word in stops if len(word) > 1)
    assert words(" ".join(long), name, stem=False, stop_words=[]) == long
    with pytest.raises(ValueError, match="only contain stop words"):
        words(" ".join(stops), name)


def test_stop_words_can_be_chosen():
    text = "the cat and the dog"
    assert words(text, "english") == ["cat", "dog"]
    assert words(text, "english", stop_words=[]) == ["and", "cat", "dog", "the", "the"]
    assert words(text, "english", stop_words=["cat"]) == ["and", "dog", "the", "the"]
    assert words(text, "english", stop_words="english") == ["cat", "dog"]


def test_a_stem_is_shown_by_its_most_frequent_form():
    counter = Vectorizer(language="english")
    counts = counter.fit_transform(["network networks", "networks networking", "model"])
    assert list(counter.get_feature_names_out()) == ["model", "networks"]
    assert counts.toarray().tolist() == [[0, 2], [0, 2], [1, 0]]
    assert counter.shown_ == {"model": "model", "network": "networks"}
    assert counter.forms_ == {"network": "network", "networks": "network", "networking": "network", "model": "model"}
    assert counter.transform(["networked models", "unknown"]).toarray().tolist() == [[1, 1], [0, 0]]


def test_of_equally_frequent_forms_the_shorter_then_the_first_is_shown():
    naming = name_stems(["aa", "ab", "abc", "b"], np.array([2, 2, 2, 1]), ["x", "x", "x", "y"])
    assert naming.names == ["aa", "b"]
    assert naming.numbers.tolist() == [0, 0, 0, 1]
    assert naming.stems == ["x", "y"]
    assert name_stems(["abc", "b"], np.array([2, 2]), ["x", "x"]).names == ["b"]


def oracle(texts):
    """Count English stems with regular expressions, one document after another."""
    stems = Stemmer.Stemmer("english").stemWord
    stops = LANGUAGES["english"].stop_words
    rows = []
    for text in texts:
        found = re.findall(r"[^\W_]+(?:'[^\W_]+)*", text.lower())
        found = [word for word in found if len(word.replace("'", "")) > 1 and word not in stops]
        rows.append(Counter(map(stems, found)))
    return rows


SOME_WORDS = ["the", "use", "used", "users", "run", "running", "don't", "n't", "'tis", "ox", "oxen", "12", "x_y", "Bee"]


@given(st.lists(st.lists(st.sampled_from(SOME_WORDS)).map(" ".join), min_size=1))
@settings(max_examples=100, deadline=None)
def test_counts_of_stems_are_those_of_a_naive_loop(texts):
    expected = oracle(texts)
    if not any(expected):
        return
    counter = Vectorizer(language="english", keep_numbers=True)
    counts = counter.fit_transform(texts).toarray()
    stem_of = {name: stem for stem, name in counter.shown_.items()}
    names = counter.get_feature_names_out()
    for row, wanted in zip(counts, expected, strict=True):
        assert {stem_of[name]: count for name, count in zip(names, row, strict=True) if count} == wanted


def test_min_df_and_max_features_apply_to_stems():
    texts = ["runs", "running", "run", "cat cats", "dog"]
    counter = Vectorizer(language="english", min_df=2).fit(texts)
    assert list(counter.vocabulary_) == ["run"]
    assert set(counter.forms_) == {"run", "runs", "running"}
    assert list(Vectorizer(language="english", max_features=2).fit(texts).vocabulary_) == ["cat", "run"]


@pytest.mark.parametrize("parameters", [{}, {"stem": False}, {"min_df": 3, "max_df": 0.4}, {"max_features": 5}])
@pytest.mark.parametrize("at_once", [70, 300, 1 << 23])
def test_fit_by_batches_learns_the_words_of_fit_transform(parameters, at_once, monkeypatch):
    monkeypatch.setattr(tokens, "_CHARACTERS_AT_ONCE", at_once)
    forms = np.array(["run", "runs", "running", "runner", "walk", "walked", "cat", "cats", "dog", "hopes", "hoped"])
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(forms, 4)) for _ in range(40)]
    whole, by_parts = (Vectorizer(language="english", **parameters) for _ in range(2))
    counts = whole.fit_transform(texts)
    by_parts.fit(iter(texts))
    assert by_parts.to_dict() == whole.to_dict()
    assert (by_parts.transform(texts) != counts).nnz == 0


def test_n_grams_are_of_stems():
    texts = ["neural network and deep learning", "neural networks", "deep learning of neural networks"]
    counter = Vectorizer(language="english", ngram_range=(1, 2))
    counts = counter.fit_transform(texts)
    names = list(counter.get_feature_names_out())
    assert "neural networks" in names
    assert "neural network" not in names
    assert counts.toarray()[:, names.index("neural networks")].tolist() == [1, 1, 1]
    assert (counter.transform(texts) != counts).nnz == 0
    known = counter.transform(["neural networking unseen deep learning"]).toarray()[0]
    assert {name for name, count in zip(names, known, strict=True) if count} == {
        "neural", "networks", "neural networks", "deep", "learning", "deep learning",
    }  # fmt: skip


def test_a_given_vocabulary_is_matched_by_stems():
    counter = Vectorizer(language="english", vocabulary=["houses", "cat"])
    assert counter.fit_transform(["a house", "cats of the housing", "dog"]).toarray().tolist() == [
        [1, 0],
        [1, 1],
        [0, 0],
    ]
    assert counter.transform(["housed"]).toarray().tolist() == [[1, 0]]
    with pytest.raises(InputError, match="vocabulary has several forms of one stem, such as 'house'"):
        Vectorizer(language="english", vocabulary=["house", "houses"]).fit(["text"])


def test_a_second_fit_replaces_the_first():
    counter = Vectorizer(language="english").fit(["running shoes"])
    counter.set_params(language="german").fit(["Häuser laufen"])
    assert counter.language_ == "german"
    assert "running" not in counter.forms_
    counter.set_params(language=None).fit(["plain words"])
    assert not hasattr(counter, "forms_")
    assert counter.language_ is None


# language detection

SENTENCES = {
    "arabic": "كان الطقس جميلا في المدينة ولم يكن هناك أحد في الشارع الذي يمر من أمام البيت",
    "catalan": "El temps era molt bonic i no hi havia ningú al carrer, però els nens eren a casa amb la seva mare",
    "chinese": "今天的天气很好,我们一起去公园散步。",
    "czech": "Počasí bylo krásné a na ulici nebyl nikdo, protože všichni už byli doma a ještě něco jedli",
    "danish": "Vejret var smukt, og der var ikke nogen på gaden, fordi de alle sammen var hjemme hos deres mor",
    "dutch": "Het weer was mooi en er was niemand op straat, omdat zij allemaal thuis waren bij hun moeder",
    "english": "The weather was fine and there was nobody in the street, because they were all at home",
    "esperanto": "La vetero estis bela kaj neniu estis sur la strato, ĉar ili ĉiuj estis hejme kun sia patrino",
    "estonian": "Ilm oli ilus ja tänaval ei olnud kedagi, sest nad kõik olid kodus koos oma emaga",
    "finnish": "Sää oli kaunis eikä kadulla ollut ketään, koska he kaikki olivat kotona äitinsä kanssa",
    "french": "Il faisait beau et il n'y avait personne dans la rue, parce qu'ils étaient tous chez leur mère",
    "german": "Das Wetter war schön und es war niemand auf der Straße, weil sie alle zu Hause bei ihrer Mutter waren",
    "greek": "Ο καιρός ήταν ωραίος και δεν ήταν κανείς στον δρόμο, γιατί όλοι ήταν στο σπίτι με τη μητέρα τους",
    "hindi": "मौसम अच्छा था और सड़क पर कोई नहीं था क्योंकि वे सब अपने घर में माँ के साथ थे",
    "hungarian": "Szép idő volt, és nem volt senki az utcán, mert már mindenki otthon volt, és csak ettek valamit",
    "indonesian": "Cuaca sangat bagus dan tidak ada orang di jalan karena mereka semua sudah di rumah",
    "irish": "Bhí an aimsir go breá agus ní raibh aon duine ar an tsráid mar bhí siad go léir sa bhaile lena máthair",
    "italian": "Il tempo era bello e non c'era nessuno per la strada, perché erano tutti a casa con la loro madre",
    "japanese": "今日はとても天気がよかったので、みんなで公園に行きました。",
    "korean": "날씨가 좋아서 우리는 공원에 갔습니다",
    "lithuanian": "Oras buvo gražus ir gatvėje nieko nebuvo, nes jie visi jau buvo namie kartu su savo motina",
    "norwegian": "Været var fint og det var ikke noen på gaten, fordi alle var hjemme hos moren sin og hadde mye mat",
    "persian": "هوا خوب بود و هیچ کس در خیابان نبود زیرا همه آنها با مادر خود در خانه بودند",
    "polish": "Pogoda była ładna i nie było nikogo na ulicy, ponieważ wszyscy byli już w domu ze swoją matką",
    "portuguese": "O tempo estava bom e não havia ninguém na rua, porque eles estavam todos em casa com a sua mãe",
    "romanian": "Vremea era frumoasă și nu era nimeni pe stradă, pentru că toți erau acasă cu mama lor",
    "russian": "Погода была хорошая, и на улице никого не было, потому что все они были дома со своей матерью",
    "serbian": "Време је било лепо и није било никога на улици, јер су сви били код куће са својом мајком",
    "spanish": "Hacía buen tiempo y no había nadie en la calle, porque todos estaban en casa con su madre",
    "swedish": "Vädret var fint och det fanns inte någon på gatan, eftersom de alla var hemma hos sin mamma",
    "tamil": "வானிலை மிகவும் நன்றாக இருந்தது ஆனால் அவர்கள் எல்லாம் வீட்டில் இருந்த போது ஒரு பறவை வந்து பாடியது",
    "thai": "อากาศดีมากและไม่มีใครอยู่บนถนน",
    "turkish": "Hava çok güzeldi ve sokakta hiç kimse yoktu, çünkü herkes annesi ile birlikte evde idi",
}


@pytest.mark.parametrize("language", SENTENCES)
def test_the_language_of_a_sentence_is_detected(language):
    counter = Vectorizer(language="auto").fit([SENTENCES[language]])
    assert counter.language_ == language


def test_words_of_an_unknown_language_are_not_changed():
    counter = Vectorizer(language="auto").fit(["zxqv wrtk zxqv", "qqq a1b"])
    assert counter.language_ == "other"
    assert list(counter.vocabulary_) == ["a1b", "qqq", "wrtk", "zxqv"]


# phrases


def test_npmi_equals_its_formula():
    assert npmi(np.array([5]), np.array([5]), np.array([5]), 100)[0] == pytest.approx(1)
    assert npmi(np.array([4]), np.array([20]), np.array([20]), 100)[0] == pytest.approx(0)
    assert npmi(np.array([2]), np.array([10]), np.array([4]), 50)[0] == pytest.approx(np.log(2.5) / np.log(25))
    assert npmi(np.array([3]), np.array([3]), np.array([3]), 3)[0] == 1


PLACES = ["we saw san francisco in spring", "fish in the bay of san francisco", "new york city is large"] * 10
PLACES += ["spring fish, city bay", "large fish in spring"] * 10


def test_phrases_are_found_and_joined():
    counter = Vectorizer(language="english", phrases=0.6)
    counts = counter.fit_transform(PLACES)
    assert "san_francisco" in counter.vocabulary_
    assert "new_york_city" in counter.vocabulary_
    assert "francisco" not in counter.vocabulary_
    assert "city_bay" not in counter.vocabulary_
    assert ("san", "francisco") in counter.phrases_[0]
    assert (counter.transform(PLACES) != counts).nnz == 0
    new = counter.transform(["San Francisco, San. Francisco"]).toarray()[0]
    assert new[counter.vocabulary_["san_francisco"]] == 1
    assert new.sum() == 1


def test_phrases_do_not_span_stop_words_or_punctuation():
    texts = ["bank of america", "bank, america"] * 20
    assert "bank_america" not in Vectorizer(language="english", phrases=0.0).fit(texts).vocabulary_
    assert "bank_america" in Vectorizer(language="english", phrases=0.0).fit(["bank-\namerica"] * 20).vocabulary_


def test_phrases_without_a_language():
    counter = Vectorizer(phrases=0.5, stop_words=["in", "the", "of"])
    counts = counter.fit_transform(PLACES)
    assert "san_francisco" in counter.vocabulary_
    assert (counter.transform(iter(PLACES)) != counts).nnz == 0
    both = Vectorizer(phrases=0.5).fit(["san francisco", "san_francisco"] * 12)
    assert list(both.vocabulary_) == ["san_francisco"]


def test_rare_pairs_are_not_joined():
    assert list(Vectorizer(phrases=0.0).fit(["san francisco"] * 9).vocabulary_) == ["francisco", "san"]


# errors


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"language": "klingon"}, "language must be 'auto', None or one of 'arabic'"),
        ({"language": "english", "analyzer": "char"}, "language and phrases are for words: keep analyzer='word'"),
        ({"phrases": True, "analyzer": str.split}, "language and phrases are for words"),
        ({"language": "english", "token_pattern": r"\w+"}, "A language has its own rules for words"),
        ({"language": "english", "vocabulary": ["a"], "phrases": True}, "a given vocabulary is for single words"),
        ({"phrases": 1.5}, "phrases"),
        ({"language": 3}, "language"),
    ],
)
def test_parameters_that_cannot_be_combined_are_refused(parameters, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Vectorizer(**parameters).fit(["some text"])


def test_a_language_needs_a_fit_and_has_no_analyzer():
    with pytest.raises(NotFittedError, match="must be fitted first"):
        Vectorizer(language="english", vocabulary=["cat"]).transform(["cats"])
    with pytest.raises(UnsupportedError, match="use transform"):
        Vectorizer(language="english").build_analyzer()


def test_stemming_without_pystemmer_names_the_extra(monkeypatch):
    fitted = Vectorizer(language="english").fit(["cats"])
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    with pytest.raises(MissingExtraError, match=r"Stemming needs the extra 'text': pip install 'polyseme\[text\]'"):
        Vectorizer(language="english").fit(["cats"])
    assert words("cats", "english", stem=False) == ["cats"]
    assert fitted.transform(["cats"]).sum() == 1  # a form of the fit needs no stemmer


# conversion to JSON


@pytest.mark.parametrize(
    "parameters",
    [
        {"min_df": 2, "ngram_range": (1, 2), "dtype": np.float32},
        {"language": "english", "stop_words": ["spring"]},
        {"language": "auto", "phrases": True, "ngram_range": (1, 2)},
        {"phrases": 0.4},
        {"vocabulary": {"san", "york"}},
    ],
)
def test_json_restores_a_vectorizer(parameters):
    fitted = Vectorizer(**parameters).fit(PLACES)
    again = Vectorizer.from_dict(json.loads(json.dumps(fitted.to_dict())))
    assert again.vocabulary_ == fitted.vocabulary_
    new = [*PLACES, "seeing the large cities of San Francisco"]
    assert (again.transform(new) != fitted.transform(new)).nnz == 0
    assert again.transform(new).dtype == fitted.transform(new).dtype
    assert again.to_dict() == fitted.to_dict()
    assert again.fit(PLACES).vocabulary_ == fitted.vocabulary_


def test_functions_cannot_be_converted():
    fitted = Vectorizer(preprocessor=str.lower).fit(PLACES)
    with pytest.raises(InputError, match="preprocessor is a method_descriptor, which cannot be saved"):
        fitted.to_dict()
    with pytest.raises(NotFittedError):
        Vectorizer().to_dict()


@pytest.mark.parametrize("data", [{}, {"format_version": "x"}, [], None, {"format_version": 1, "parameters": {}}])
def test_data_of_another_kind_is_refused(data):
    with pytest.raises(ModelFileError, match="not a saved Vectorizer"):
        Vectorizer.from_dict(data)


def test_a_newer_format_is_refused():
    data = Vectorizer().fit(PLACES).to_dict()
    with pytest.raises(ModelFileError, match="newer polyseme"):
        Vectorizer.from_dict({**data, "format_version": 99})


# several languages

HALF = "the letters were written in the winter and are still in his house. le lettere sono state scritte nella neve e ora sono nella sua casa."  # noqa: E501


@pytest.mark.parametrize("language", SENTENCES)
def test_the_language_of_a_document_is_found(language):
    assert document_language(SENTENCES[language]) == [language]


def test_a_text_in_two_languages_is_in_both():
    assert sorted(document_language(HALF)) == ["english", "italian"]
    assert document_language("") == document_language("42, 17") == document_language("xyzzy plugh " * 20) == []


def test_languages_have_shares_of_a_corpus():
    english, italian = "the letters were written in the winter", "le lettere sono state scritte nella neve"
    language, shares = detect_language([english] * 80 + [italian] * 20)
    assert (language.name, shares) == ("english+italian", {"english": 0.8, "italian": 0.2})
    assert {"the", "nella"} < language.stop_words
    assert language.stemmer == "english"
    assert detect_language([english] * 97 + [italian] * 3)[0].name == "english"


def test_one_frequent_word_is_no_language():
    subjects = ["Re: the drives of a Quadra", "Re: Clipper chip", "Re: looking for the monitor", "Re: gun control"]
    language, shares = detect_language([subject for subject in subjects for _ in range(20)])
    assert "sesotho" not in shares
    assert language.name == "english"


def test_half_of_a_corpus_does_not_name_it():
    english, italian = "the letters were written in the winter", "le lettere sono state scritte nella neve"
    assert detect_language([english, italian] * 50)[0].name == "other+english+italian"
    assert detect_language([HALF] * 50)[0].name == "other+english+italian"
    assert detect_language([english, "xyzzy plugh " * 20] * 50)[0].name == "other+english"


def test_the_last_documents_count_as_well():
    english, italian = "the letters were written in the winter", "le lettere sono state scritte nella neve"
    counter = Vectorizer(language="auto").fit([english] * 5000 + [italian] * 5000)
    assert counter.language_ == "other+english+italian"
    assert counter.languages_ == {"english": 0.5, "italian": 0.5}
    assert not {"the", "nella"} & set(counter.vocabulary_)


def test_several_languages_are_stored():
    counter = Vectorizer(language="en+it").fit(["the letters nella neve", "letter neve"])
    assert counter.language_ == "english+italian"
    assert list(counter.vocabulary_) == ["letter", "neve"]
    stored = Vectorizer.from_dict(counter.to_dict())
    assert (stored.transform(["the neve nella letter"]) != counter.transform(["the neve nella letter"])).nnz == 0
    with pytest.raises(InputError, match="language must be"):
        Vectorizer(language="en+klingon").fit(["a letter"])
    data = counter.to_dict()
    for damaged in ("english+english", "english+", "+".join(["english"] * 1000), "en+it", 3):
        with pytest.raises(ModelFileError, match="language"):
            Vectorizer.from_dict({**data, "language": damaged})
