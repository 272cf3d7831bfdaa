"""LETOR files, with every quirk and fault; the product search simulator."""

import bz2
import dataclasses
import gzip
import re
import sys
import tracemalloc

import numpy as np
import pytest

from lambda_objectives.tools import datasets

ROWS = (
    (2.0, 7, {1: 0.25, 2: -1.5, 4: 3.0}),
    (0.5, 7, {3: 1e-3}),
    (0.0, 123456789012, {}),
    (1.0, 3, {1: 1, 2: 2, 3: 3, 4: 4}),
    (3.0, 3, {4: -8}),
)
X = np.array([[0.25, -1.5, 0, 3], [0, 0, 1e-3, 0], [0, 0, 0, 0], [1, 2, 3, 4], [0, 0, 0, -8]])


def lines(comments=("",) * 5, blank=" "):
    """Write the rows as lines, without line ends."""
    words = [[f"{y:g}", f"qid:{q}", *(f"{j}:{v}" for j, v in features.items())] for y, q, features in ROWS]
    return [blank.join(w) + c for w, c in zip(words, comments, strict=True)]


@pytest.fixture
def put(tmp_path):
    """Write text or bytes into a file; return its path."""

    def write(content, name="train.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def fault(path, **options):
    """Return the line and the message of the error that reading raises, of the promised form."""
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}:") as caught:
        datasets.load_letor(path, **options)
    text = str(caught.value)
    assert "\n" not in text
    number, message = re.fullmatch(re.escape(str(path)) + r":(\d+): (.+)", text).groups()
    return int(number), message


PLAIN = "\n".join(lines()) + "\n"
FORMATS = {
    "plain": PLAIN,
    "comments": "\n".join(lines((" # first", " # qid:99 5:5", "# 9:9", " #", "#a # b"))) + "\n",
    "comments that are not UTF-8": PLAIN.encode().replace(b"\n", b" # caf\xe9\n"),
    "comment lines and blank lines": "# header\n\n" + "\n  \n#\n\t\n".join(lines()) + "\n\n# qid:1 end\n",
    "CRLF": "\r\n".join(lines()) + "\r\n",
    "no last line end": "\n".join(lines()),
    "blanks at the end": "  \t\n".join(lines()) + "  ",
    "blanks at the start": "  " + "\n   ".join(lines()),
    "tabs and more blanks": "\n".join(lines(blank=" \t ")),
    "byte order mark": b"\xef\xbb\xbf" + PLAIN.encode(),
    "signs and exponents": PLAIN.replace("2 qid:7 1:0.25", "+2.0 qid:7 1:+25e-2").replace("4:-8", "4:-.8E1"),
    "zeros written": PLAIN.replace("qid:123456789012", "qid:123456789012 2:0 4:0.0"),
}


class TestLetorFormats:
    @pytest.mark.parametrize("sparse", [False, True])
    @pytest.mark.parametrize("text", FORMATS.values(), ids=FORMATS)
    def test_all_say_the_same(self, put, text, sparse):
        got = datasets.load_letor(put(text), sparse=sparse)
        assert got._fields == ("X", "y", "group")
        assert got.X.dtype == got.y.dtype == np.float64
        assert got.group.dtype == np.int64
        np.testing.assert_array_equal(got.X.toarray() if sparse else got.X, X)
        np.testing.assert_array_equal(got.y, [row[0] for row in ROWS])
        np.testing.assert_array_equal(got.group, [2, 1, 2])

    @pytest.mark.parametrize(
        ("name", "pack"), [("a.gz", gzip.compress), ("a.txt.GZ", gzip.compress), ("a.bz2", bz2.compress)]
    )
    def test_packed(self, put, name, pack):
        got = datasets.load_letor(put(pack(PLAIN.encode()), name))
        np.testing.assert_array_equal(got.X, X)
        np.testing.assert_array_equal(got.group, [2, 1, 2])

    def test_string_path(self, put):
        assert datasets.load_letor(str(put(PLAIN))).X.shape == (5, 4)

    def test_sparse_is_what_boosters_ask_for(self, put):
        scipy_sparse = pytest.importorskip("scipy.sparse")
        got = datasets.load_letor(put(PLAIN), sparse=True).X
        assert isinstance(got, scipy_sparse.csr_matrix)
        assert got.has_sorted_indices

    def test_same_query_id_sizes_of_one_row(self, put):
        got = datasets.load_letor(put("1 qid:1 1:1\n0 qid:2 1:2\n0 qid:-3 1:3\n"))
        np.testing.assert_array_equal(got.group, [1, 1, 1])

    def test_missing_feature_values_stay(self, put):
        got = datasets.load_letor(put("1 qid:1 1:nan 2:5\n"))
        np.testing.assert_array_equal(got.X, [[np.nan, 5]])

    def test_rows_without_features(self, put):
        assert datasets.load_letor(put("1 qid:1\n0 qid:1\n")).X.shape == (2, 0)
        np.testing.assert_array_equal(datasets.load_letor(put("1 qid:1\n"), n_features=2).X, [[0, 0]])

    def test_many_blocks(self, put):
        # Longer than the blocks that are read at a time, the widest row last, a query across the first boundary.
        n = 10_000
        text = (
            "".join(f"{i % 3} qid:{i // 7} {1 + i % 2}:{i}\n" + "# note\n" * (i % 5 == 0) for i in range(n))
            + "0 qid:-1 5:1"
        )
        for sparse in (False, True):
            got = datasets.load_letor(put(text), sparse=sparse)
            dense = got.X.toarray() if sparse else got.X
            want = np.zeros((n + 1, 5))
            want[np.arange(n), np.arange(n) % 2] = np.arange(n)
            want[n, 4] = 1
            np.testing.assert_array_equal(dense, want)
            np.testing.assert_array_equal(got.y, [*(np.arange(n) % 3), 0])
            np.testing.assert_array_equal(got.group, [7] * (n // 7) + [n % 7, 1])


class TestLetorColumns:
    def test_late_first_feature_keeps_its_column(self, put):
        np.testing.assert_array_equal(
            datasets.load_letor(put("1 qid:1 3:5\n0 qid:1 4:6\n")).X, [[0, 0, 5, 0], [0, 0, 0, 6]]
        )

    @pytest.mark.parametrize("sparse", [False, True])
    def test_widened(self, put, sparse):
        got = datasets.load_letor(put("1 qid:1 2:5\n"), n_features=np.int64(4), sparse=sparse).X
        np.testing.assert_array_equal(got.toarray() if sparse else got, [[0, 5, 0, 0]])

    def test_feature_0_means_counting_from_0(self, put):
        path = put("1 qid:1 1:5\n0 qid:1 0:6 2:7\n")
        np.testing.assert_array_equal(datasets.load_letor(path).X, [[0, 5, 0], [6, 0, 7]])
        np.testing.assert_array_equal(datasets.load_letor(path, n_features=4).X, [[0, 5, 0, 0], [6, 0, 7, 0]])

    def test_feature_0_of_value_0_means_it_too(self, put):
        np.testing.assert_array_equal(datasets.load_letor(put("1 qid:1 0:0 1:5\n")).X, [[0, 5]])

    def test_counting_from_0_by_request(self, put):
        path = put("1 qid:1 1:5\n")
        np.testing.assert_array_equal(datasets.load_letor(path, zero_based=True).X, [[0, 5]])
        np.testing.assert_array_equal(datasets.load_letor(path, zero_based=False).X, [[5]])

    def test_feature_0_refused_by_request(self, put):
        number, message = fault(put("1 qid:1 1:5\n\n1 qid:1 0:5\n"), zero_based=False)
        assert number == 3
        assert "zero_based=False" in message

    @pytest.mark.parametrize(
        ("n_features", "text"), [(3, "1 qid:1 1:1\n0 qid:1 5:1\n0 qid:1 7:1\n"), (6, "\n0 qid:1 0:0 6:1")]
    )
    def test_too_many_features(self, put, n_features, text):
        number, message = fault(put(text), n_features=n_features)
        assert number == 2
        assert f"n_features={n_features};" in message
        assert "7 features" in message

    @pytest.mark.parametrize("value", [0, -1, 2.0, "3", True])
    def test_n_features_is_checked(self, put, value):
        with pytest.raises(ValueError, match=f"n_features must be a whole number from 1, found {value!r}"):
            datasets.load_letor(put(PLAIN), n_features=value)

    def test_mistaken_feature_number_does_not_fill_memory(self, put):
        path = put("1 qid:1 1:1\n1 qid:1 2000000000:1\n")
        number, message = fault(path)
        assert number == 2
        assert "2000000000" in message
        assert "sparse=True" in message
        assert datasets.load_letor(path, sparse=True).X.shape == (2, 2_000_000_000)


GOOD = "0 qid:4 1:1\n"
FAULTS = {
    "label is text": ("good qid:4 1:1", "'good'"),
    "two labels": ("1,2 qid:4 1:1", "'1,2'"),
    "label is nan": ("nan qid:4 1:1", "nan"),
    "label is infinite": ("-inf qid:4 1:1", "-inf"),
    "label overflows": ("1e400 qid:4 1:1", "inf"),
    "no qid": ("1 1:1", "no qid"),
    "label alone": ("1", "no qid"),
    "qid in the comment only": ("1 # qid:4 1:1", "no qid"),
    "qid not second": ("1 1:1 qid:4", "no qid"),
    "qid is empty": ("1 qid: 1:1", "'qid:'"),
    "qid is text": ("1 qid:q4 1:1", "'qid:q4'"),
    "qid is a fraction": ("1 qid:4.5 1:1", "'qid:4.5'"),
    "qid is too large": ("1 qid:99999999999999999999 1:1", "64 bits"),
    "value without feature": ("1 qid:4 1:1 0.5", "'0.5' has no colon"),
    "ragged": ("1 qid:4 1:1 2", "'2' has no colon"),
    "blank around the colon": ("1 qid:4 1 :1", "'1' has no colon"),
    "feature is text": ("1 qid:4 a:1", "'a:1'"),
    "feature is a fraction": ("1 qid:4 1.0:1", "'1.0:1'"),
    "feature is negative": ("1 qid:4 -1:1", "'-1:1'"),
    "feature is too large": ("1 qid:4 3000000000:1", "'3000000000:1'"),
    "value is missing": ("1 qid:4 1:", "'1:'"),
    "value is text": ("1 qid:4 1:NULL", "nan"),
    "value with a second colon": ("1 qid:4 1:1:1", "'1:1:1'"),
    "features repeated": ("1 qid:4 2:1 2:1", "feature 2 after feature 2"),
    "features going down": ("1 qid:4 2:1 1:1", "feature 1 after feature 2"),
    "NUL": ("1 qid:4 1:1\0", r"\x00"),
    "long word": ("1 qid:4 " + "x" * 10_000, "xxx...'"),
}


class TestLetorFaults:
    @pytest.mark.parametrize(("bad", "said"), FAULTS.values(), ids=FAULTS)
    def test_line_and_reason(self, put, bad, said):
        # Comments and blank lines count as lines; of two faults the first is named.
        number, message = fault(put(f"# top\n\n{GOOD}{bad}\n{GOOD}{bad}\n"))
        assert number == 4
        assert said in message
        assert len(message) < 160

    @pytest.mark.parametrize("bad", ["1 1:1", "x qid:4", "nan qid:4", "1 qid:4 1:x"])
    def test_line_far_down(self, put, bad):
        assert fault(put(GOOD * 9000 + "#\n" + bad))[0] == 9002

    @pytest.mark.parametrize("content", ["", "\n\n", "# only\n  # comments\n"])
    def test_no_rows(self, put, content):
        assert "no rows" in fault(put(content))[1]

    def test_scattered_queries(self, put):
        number, message = fault(put("# c\n1 qid:8 1:1\n0 qid:8 1:1\n1 qid:9 1:1\n\n0 qid:8 1:1\n0 qid:9 1:1\n"))
        assert number == 6
        assert "qid 8" in message
        assert "line 2" in message
        assert "sort" in message

    def test_scattered_queries_far_apart(self, put):
        number, message = fault(put("".join(f"0 qid:{i} 1:1\n" for i in range(9000)) + "0 qid:17 1:1\n"))
        assert number == 9001
        assert "line 18)" in message

    def test_missing_file(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"none\.txt"):
            datasets.load_letor(tmp_path / "none.txt")

    def test_directory(self, tmp_path):
        assert "directory" in fault(tmp_path)[1]

    @pytest.mark.parametrize("name", ["a.gz", "a.bz2"])
    def test_packed_by_name_only(self, put, name):
        number, message = fault(put(PLAIN, name))
        assert number == 1
        assert "rename" in message

    def test_cut_short(self, put):
        whole = gzip.compress((GOOD * 50_000).encode())
        number, message = fault(put(whole[: len(whole) // 2], "a.gz"))
        assert 1000 < number < 50_000
        assert "unpacked" in message

    def test_damaged(self, put):
        whole = gzip.compress(PLAIN.encode())
        assert "unpacked" in fault(put(whole[:12] + b"\xff" * 8 + whole[20:], "a.gz"))[1]

    def test_without_scikit_learn(self, put, monkeypatch):
        monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
        with pytest.raises(ImportError, match="pip install scikit-learn"):
            datasets.load_letor(put(PLAIN))


def arrays(data):
    """Name every array of a simulation."""
    return {"X": data.X, "y": data.y, "group": data.group, **data.columns}


def assert_same(a, b):
    """Check two simulations bit for bit."""
    assert a.feature_names == b.feature_names
    for (name, x), z in zip(arrays(a).items(), arrays(b).values(), strict=True):
        assert x.dtype == z.dtype, name
        np.testing.assert_array_equal(x, z, err_msg=name)


def starts(data):
    """Return the first row of each impression."""
    return np.cumsum(data.group) - data.group


def within(data, values):
    """Return values less their mean in each impression."""
    return values - np.repeat(np.add.reduceat(values, starts(data)) / data.group, data.group)


@pytest.fixture(scope="module")
def shop():
    """Simulate enough impressions for frequencies to be near what they are in the long run."""
    return datasets.product_search(2500, seed=3)


class TestProductSearch:
    def test_shapes(self, shop):
        n = len(shop.y)
        assert shop.X.shape == (n, len(shop.feature_names))
        assert {name: a.dtype.name for name, a in arrays(shop).items()} == {
            "X": "float32", "y": "float64", "group": "int64",
            "t1": "float64", "t2": "float64", "t3": "float64", "t4": "float64", "price": "float64",
        }  # fmt: skip
        assert all(len(column) == n for column in shop.columns.values())
        assert shop.group.sum() == n
        assert np.isfinite(shop.X).all()

    def test_names(self, shop):
        assert len(set(shop.feature_names)) == len(shop.feature_names)
        assert all(re.fullmatch(r"[a-z_]+", name) for name in shop.feature_names)

    def test_frozen(self, shop):
        with pytest.raises(dataclasses.FrozenInstanceError):
            shop.y = None

    def test_sizes(self, shop):
        assert abs(shop.group.mean() - 24) < 0.5
        assert (shop.group.min(), shop.group.max()) == (18, 30)

    @pytest.mark.parametrize("products", [1, 2, 3, 5, 200, 20_000])
    def test_other_sizes(self, products):
        data = datasets.product_search(3, products=products)
        assert data.group.min() >= 2
        assert data.group.max() <= max(2, 1.25 * products)

    def test_purchases(self, shop):
        assert set(np.unique(shop.y)) == {0, 1}
        share = np.bincount(np.add.reduceat(shop.y, starts(shop)).astype(int), minlength=3) / len(shop.group)
        assert len(share) == 3
        assert 0.05 < share[0] < 0.3
        assert 0.5 < share[1] < 0.85
        assert 0.05 < share[2] < 0.25

    def test_products_differ_within_an_impression_and_come_back_over_impressions(self, shop):
        traits = [shop.feature_names.index(name) for name in ("price", "rating", "reviews", "sales", "days_on_sale")]
        product = np.unique(shop.X[:, traits], axis=0, return_inverse=True)[1].ravel()
        query = np.repeat(np.arange(len(shop.group)), shop.group)
        assert len(np.unique(query * (product.max() + 1) + product)) == len(product)
        assert np.bincount(product).mean() > 5

    def test_the_query_is_one(self, shop):
        for name in ("query_words", "query_volume", "segment", "usual_price"):
            assert not within(shop, shop.X[:, shop.feature_names.index(name)].astype(float)).round(3).any()

    def test_order_of_rows_says_nothing(self, shop):
        place = np.arange(len(shop.y)) - np.repeat(starts(shop), shop.group)
        for values in (shop.y, *shop.columns.values()):
            r = np.corrcoef(within(shop, place.astype(float)), within(shop, values))[0, 1]
            assert abs(r) < 4 / np.sqrt(len(shop.y))

    def test_price_is_a_feature(self, shop):
        price = shop.X[:, shop.feature_names.index("price")]
        np.testing.assert_array_equal(price, shop.columns["price"].astype(np.float32))
        assert price.min() > 0

    @pytest.mark.parametrize("seed", [0, 1, 2])
    def test_sub_objectives(self, seed):
        data = datasets.product_search(1000, seed)
        t1, t2, t3, t4 = (data.columns[name] for name in ("t1", "t2", "t3", "t4"))
        for t in (t1, t2, t3, t4):
            assert set(np.unique(t)) == {0, 1}
        for inner, outer in ((t4, t3), (t3, t2), (t1, t2)):
            assert (inner <= outer).all()
            assert inner.mean() < 0.7 * outer.mean()
        # With t1 more is bought, with t2 not much more, with t4 less than that; less of what costs more.
        lift = [data.y[t == 1].mean() / data.y.mean() for t in (t1, t2, t4)]
        assert lift[0] > 1.7
        assert 0.9 < lift[1] < 1.4
        assert lift[2] < lift[1]
        assert np.corrcoef(within(data, data.columns["price"]), within(data, data.y))[0, 1] < -0.02

    def test_t1_is_about_quality_and_popularity_in_the_segment(self, shop):
        t1 = shop.columns["t1"] == 1
        for name in ("rating", "segment_sales"):
            feature = shop.X[:, shop.feature_names.index(name)]
            assert np.median(feature[t1]) > np.quantile(feature[~t1], 0.6)

    def test_seeds(self):
        assert_same(datasets.product_search(40, seed=5), datasets.product_search(40, seed=5))
        assert not np.array_equal(
            datasets.product_search(40, seed=5).X[:500], datasets.product_search(40, seed=6).X[:500]
        )

    def test_leaves_the_global_generator_alone(self):
        before = np.random.get_state()[1].copy()
        datasets.product_search(10)
        np.testing.assert_array_equal(np.random.get_state()[1], before)

    def test_boosting_learns_it(self):
        lightgbm = pytest.importorskip("lightgbm")
        data = datasets.product_search(3000, seed=1)
        cut = int(data.group[:2000].sum())
        X, y, group = data.X[cut:], data.y[cut:], data.group[2000:]
        first = np.cumsum(group) - group
        query = np.repeat(np.arange(len(group)), group)
        rank = np.arange(len(y)) - first[query]
        discount = np.where(rank < 10, 1 / np.log2(rank + 2), 0)

        def dcg(scores):
            return np.add.reduceat(y[np.lexsort((-scores, query))] * discount, first)

        def ndcg(scores):
            ideal = dcg(y)
            return (dcg(scores)[ideal > 0] / ideal[ideal > 0]).mean()

        train = lightgbm.Dataset(data.X[:cut], data.y[:cut], group=data.group[:2000])
        parameters = {"objective": "lambdarank", "min_data_in_leaf": 50, "verbosity": -1, "num_threads": 1, "seed": 0}
        model = ndcg(lightgbm.train(parameters, train, 100).predict(X))
        chance = ndcg(np.random.default_rng(0).random(len(y)))
        single = max(ndcg(sign * column) for column in X.T for sign in (1, -1))
        assert single > chance + 0.1
        assert model > single + 0.1
        assert model < 0.75


class TestProductSearchChunks:
    @pytest.mark.parametrize("chunk", [1, 7, 100, 512, 513, 10_000])
    def test_pieces_are_the_whole(self, chunk):
        queries = 40 if chunk == 1 else 1100
        whole = datasets.product_search(queries, seed=2)
        pieces = list(datasets.product_search_chunks(queries, seed=2, chunk=chunk))
        assert [len(piece.group) for piece in pieces[:-1]] == [chunk] * (len(pieces) - 1)
        for name, column in arrays(whole).items():
            np.testing.assert_array_equal(
                np.concatenate([arrays(piece)[name] for piece in pieces]), column, err_msg=name
            )

    @pytest.mark.parametrize("products", [5, 24, 3000])
    def test_prefix(self, products):
        queries = {5: 3000, 24: 600, 3000: 9}[products]
        long = datasets.product_search(queries, seed=4, products=products)
        for m in (1, queries // 2, queries - 1):
            short = datasets.product_search(m, seed=4, products=products)
            rows = len(short.y)
            np.testing.assert_array_equal(short.group, long.group[:m])
            for name, column in arrays(short).items():
                if name != "group":
                    np.testing.assert_array_equal(column, arrays(long)[name][:rows], err_msg=name)

    def test_blocks_differ(self):
        data = datasets.product_search(1024, seed=0)
        assert not np.array_equal(data.group[:512], data.group[512:])

    def test_pieces_own_their_memory(self):
        piece = next(datasets.product_search_chunks(20, chunk=10))
        assert all(a.base is None and a.flags.writeable for a in arrays(piece).values())

    def test_memory_is_that_of_a_piece(self):
        def peak(queries):
            tracemalloc.start()
            rows = sum(len(piece.y) for piece in datasets.product_search_chunks(queries, chunk=300))
            top = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            return rows, top

        few, low = peak(600)
        many, high = peak(6000)
        assert many > 9 * few
        assert high < 1.2 * low

    @pytest.mark.parametrize(
        ("name", "value", "least"),
        [
            *(("queries", value, 1) for value in (0, -3, 2.5, "10", None, True)),
            *(("products", value, 1) for value in (0, 24.0, [24])),
            *(("seed", value, 0) for value in (-1, 0.5, None)),
            *(("chunk", value, 1) for value in (0, 1.5)),
        ],
    )
    def test_arguments_are_checked_when_called(self, name, value, least):
        message = re.escape(f"{name} must be a whole number from {least}, found {value!r}")
        with pytest.raises(ValueError, match=message):
            datasets.product_search_chunks(**{"queries": 5, name: value})
        if name != "chunk":
            with pytest.raises(ValueError, match=message):
                datasets.product_search(**{name: value})

    def test_numpy_integers(self):
        a = datasets.product_search(np.int32(5), np.uint8(3), products=np.int64(6))
        assert_same(a, datasets.product_search(5, 3, products=6))


class TestSizesInAFileBeside:
    """Rows without qid, as the boosters' own readers take them."""

    TEXT = "1 1:0.5\n0 2:1\n2 1:3\n"

    @pytest.mark.parametrize(
        ("name", "beside"),
        [("a.txt", "a.txt.query"), ("a.txt", "a.query"), ("a.txt", "a.txt.group"), ("rank.train", "rank.train.query")],
    )
    def test_is_found_and_used(self, tmp_path, name, beside):
        (tmp_path / name).write_text(self.TEXT)
        (tmp_path / beside).write_text("1\n2\n")
        X, y, group = datasets.load_letor(tmp_path / name)
        assert X.tolist() == [[0.5, 0], [0, 1], [3, 0]]
        assert y.tolist() == [1, 0, 2]
        assert group.tolist() == [1, 2]

    def test_beside_a_packed_file_and_over_many_blocks(self, tmp_path):
        import gzip

        with gzip.open(tmp_path / "rank.train.gz", "wt") as file:
            file.writelines(f"{i % 3} 1:{i}\n" for i in range(10_000))
        (tmp_path / "rank.train.query").write_text("\n".join(["2500"] * 4))
        X, _, group = datasets.load_letor(tmp_path / "rank.train.gz")
        assert group.tolist() == [2500] * 4
        assert X[:, 0].tolist() == list(range(10_000))

    def test_is_not_wanted_where_rows_have_their_qid(self, tmp_path):
        (tmp_path / "a.txt").write_text("1 qid:3 1:1\n0 qid:3 1:2\n")
        (tmp_path / "a.txt.query").write_text("nonsense")
        assert datasets.load_letor(tmp_path / "a.txt").group.tolist() == [2]

    @pytest.mark.parametrize(
        ("sizes", "words"),
        [
            ("1\n1\n", "query:2: the sizes end here, and there are more rows"),
            ("1\n3\n", "query:2: the sizes add up to more rows"),
            ("3\n1\n", "query:1: the sizes add up to more rows"),
            ("1\n0\n2\n", "query:2: '0' is not the size of a query"),
            ("1 x 2", "query:2: 'x' is not the size"),
        ],
    )
    def test_must_fit(self, tmp_path, sizes, words):
        (tmp_path / "a.txt").write_text(self.TEXT)
        (tmp_path / "a.txt.query").write_text(sizes)
        with pytest.raises(ValueError, match=words):
            datasets.load_letor(tmp_path / "a.txt")

    def test_none_is_an_error_that_says_so(self, tmp_path):
        (tmp_path / "a.txt").write_text(self.TEXT)
        with pytest.raises(ValueError, match=r"a.txt:1: no qid.*\.query"):
            datasets.load_letor(tmp_path / "a.txt")
