"""Distance covariance by whole-array operations: the definition, the compiled loops, and what CuPy would not allow."""

import operator
from itertools import pairwise
from types import MappingProxyType

import numpy as np
import pytest

import lambda_objectives as lo
from lambda_objectives.kernels import arrayform


def naive(x, y):
    """Value and slope by the definition, on n x n matrices."""
    n = len(x)
    a, b, sign = abs(x[:, None] - x), abs(y[:, None] - y), np.sign(x[:, None] - x)
    rows = b.sum(1)
    value = (a * b).sum() - 2 * (a.sum(1) @ rows) / (n - 2) + a.sum() * b.sum() / ((n - 1) * (n - 2))
    slope = 2 * (sign * b).sum(1) - 2 * (sign * (rows[:, None] + rows)).sum(1) / (n - 2)
    slope += 2 * sign.sum(1) * b.sum() / ((n - 1) * (n - 2))
    return value / (n * (n - 3)), slope / (n * (n - 3))


def standard(c):
    return (c - c.mean()) / (c.std() or 1.0)


def by_place(control, group, groups):
    """The rows by group and control, the control of each place standardised within its group, the borders."""
    rows = np.lexsort((control, group))
    ptr = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=groups))])
    scaled = control[rows] * 1.0
    for a, b in pairwise(ptr):
        if a < b:
            scaled[a:b] = standard(scaled[a:b])
    return rows, scaled, ptr


def found(scores, control, group=None, factor=(1.0,), xp=np):
    group = np.zeros(len(scores), int) if group is None else group
    rows, scaled, ptr = by_place(control, group, len(factor))
    plan = arrayform.plan(xp, rows, scaled, np.array(factor), ptr)
    slopes = arrayform.slopes(xp, plan, scores)
    return slopes, arrayform.values(xp, plan, slopes, scores)


def drawn(n, ties, seed):
    """Scores and control that depend on each other; "scores", "control" or "both" have few values."""
    rng = np.random.default_rng(seed)
    control = rng.normal(size=n)
    scores = 0.5 * control + rng.normal(size=n)
    if ties in ("scores", "both"):
        scores = np.round(2 * scores) / 2
    if ties in ("control", "both"):
        control = np.round(2 * control) / 2
    return scores, control


@pytest.mark.parametrize("n", [4, 5, 7, 8, 9, 31, 32, 33, 100, 1000, 1024, 1025, 3000])
@pytest.mark.parametrize("ties", ["none", "scores", "control", "both"])
def test_the_definition(n, ties):
    scores, control = drawn(n, ties, n)
    for repeat in range(20 if n < 40 else 1):
        scores, control = drawn(n, ties, n + repeat) if repeat else (scores, control)
        wanted, slope = naive(scores, standard(control))
        grad, value = found(scores, control, factor=[n])
        assert value == pytest.approx(wanted, abs=1e-12)
        np.testing.assert_allclose(grad, n * slope, atol=1e-11)
    if n > 9:
        assert (len(set(scores)) < n) == (ties in ("scores", "both"))
        assert (len(set(control)) < n) == (ties in ("control", "both"))


def test_ragged_groups():
    """Sizes from 1, an empty group; small groups and those of factor 0 have neither a gradient nor a value."""
    rng = np.random.default_rng(0)
    sizes = np.array([1, 2, 3, 4, 5, 0, 130, 4, 64, 1, 33, 200, 3, 0])
    group = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    factor = rng.random(len(sizes)) + 0.5
    factor[[8, 10]] = 0.0
    for ties in ("none", "scores", "control", "both"):
        scores, control = drawn(len(group), ties, 1)
        grad, value = found(scores, control, group, factor)
        for g, size in enumerate(sizes):
            mine = group == g
            if size < 4 or factor[g] == 0:
                assert value[g] == 0
                assert not grad[mine].any()
                continue
            wanted, slope = naive(scores[mine], standard(control[mine]))
            assert value[g] == pytest.approx(wanted, abs=1e-12)
            np.testing.assert_allclose(grad[mine], factor[g] * slope, atol=1e-12)
    grad, value = found(scores, control, group, np.zeros(len(sizes)))
    assert not grad.any()
    assert not value.any()


@pytest.mark.parametrize("n", [4, 500, 3000])
def test_offsets_and_equal_scores(n):
    scores, control = drawn(n, "scores", 2)  # halves are exact at 1e9
    grad, value = found(scores, control, factor=[n])
    for offset in (1e6, -1e9):
        again, far = found(scores + offset, control, factor=[n])
        np.testing.assert_array_equal(again, grad)
        assert far == pytest.approx(value, rel=1e-12, abs=1e-15)
    grad, value = found(np.full(n, 1e9 + 0.1), control, factor=[n])
    assert not grad.any()
    assert not value.any()
    signs = np.where(np.arange(n) % 2 == 0, 0.0, -0.0)
    assert not found(signs, control)[0].any()


def test_values_of_what_rises_with_the_scores():
    scores, control = drawn(80, "both", 7)
    rows, scaled, ptr = by_place(control, np.zeros(80, int), 1)
    plan = arrayform.plan(np, rows, scaled, np.array([3.0]), ptr)
    value = arrayform.values(np, plan, arrayform.slopes(np, plan, scores), np.exp(scores))
    assert value == pytest.approx(naive(np.exp(scores), standard(control))[0], abs=1e-12)


def test_order_of_rows_does_not_matter():
    rng = np.random.default_rng(3)
    group, factor = rng.integers(0, 5, 700), [1.0, 2.0, 0.0, 3.0, 4.0]
    scores, control = drawn(700, "both", 3)
    grad, value = found(scores, control, group, factor)
    assert grad @ np.where(np.array(factor)[group] > 0, 1, 0) == pytest.approx(0, abs=1e-12)
    for _ in range(5):
        order = rng.permutation(700)
        again, same = found(scores[order], control[order], group[order], factor)
        np.testing.assert_allclose(again, grad[order], rtol=0, atol=1e-12)
        np.testing.assert_allclose(same, value, rtol=1e-12)


@pytest.mark.parametrize("within", [False, True, "era"])
def test_the_compiled_loops(within):
    rng = np.random.default_rng(4)
    sizes = rng.integers(4, 900, 40)
    sizes[7] = 20_000
    n = sizes.sum()
    queries, eras = np.repeat(np.arange(40), sizes), rng.integers(0, 6, n)
    group = {False: np.zeros(n, int), True: queries, "era": eras}[within]
    weights = rng.random(n) + 0.5
    scores, price = drawn(n, "none", 4)
    scores[::2] = np.round(scores[::2], 1)
    given = dict(group=sizes, price=np.exp(price), era=eras, weights=weights)
    term = lo.DistanceCovariance("price", within)
    wanted, slope = (f(term, scores, np.zeros(n), **given) for f in (lo.evaluate, lo.gradient))
    factor = np.bincount(group, weights)
    grad, value = found(scores, np.exp(price), group, factor)
    np.testing.assert_allclose(grad, slope[0], atol=1e-10 * abs(grad).max())
    assert factor @ value / weights.sum() == pytest.approx(wanted["price.dcov2"], rel=1e-10)
    single = found(scores.astype(np.float32), np.exp(price), group, factor)[0]
    assert single.dtype == np.float64
    np.testing.assert_array_equal(single, found(scores.astype(np.float32) * 1.0, np.exp(price), group, factor)[0])


# ------------------------------------------------------------------------------------------------ what CuPy would allow
class Device:
    """An array as far as CuPy's goes: it gives no value to the host, and does not mix with NumPy's."""

    def __init__(self, held):
        assert isinstance(held, np.ndarray)  # CuPy has no scalars of its own: they are arrays
        self.held = held

    shape, dtype, ndim = (property(operator.attrgetter(f"held.{name}")) for name in ("shape", "dtype", "ndim"))

    def __len__(self):
        return len(self.held)

    def __getitem__(self, key):
        return Device(self.held[index(key)])

    def __setitem__(self, key, value):
        value = inside(value)
        assert np.can_cast(getattr(value, "dtype", "b"), self.dtype, "same_kind")
        self.held[index(key)] = value

    def __array__(self, *args, **kwargs):
        raise TypeError("the host waits for the device")

    __bool__ = __int__ = __float__ = __index__ = __iter__ = __array__
    __array_ufunc__ = None  # NumPy's arrays shall not take it


def inside(value):
    if isinstance(value, Device):
        return value.held
    assert isinstance(value, int | float | str | type | None), f"{type(value)}: not on the device"
    return value


def index(key):
    """Slices, and whole numbers on the device; True and False would have to be counted first."""
    if isinstance(key, slice):
        return key
    assert isinstance(key, Device)
    assert key.dtype.kind == "i"
    return key.held


def _operator(function, swapped=False):
    def call(self, other):
        pair = (self.held, inside(other))
        return Device(np.asarray(function(*pair[::-1] if swapped else pair)))

    return call


def _in_place(function):
    def call(self, other):
        function(self.held, inside(other))
        return self

    return call


for _name in ("add", "sub", "mul", "and", "or", "rshift", "lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Device, f"__{_name}__", _operator(getattr(operator, f"__{_name}__")))
for _name in ("add", "sub", "mul"):
    setattr(Device, f"__r{_name}__", _operator(getattr(operator, f"__{_name}__"), swapped=True))
for _name in ("add", "sub", "mul", "or"):
    setattr(Device, f"__i{_name}__", _in_place(getattr(operator, f"__i{_name}__")))


class Allowed:
    """NumPy under the names, and with the arguments, that CuPy 13 documents with the same meaning."""

    float64, int32, int64 = np.float64, np.int32, np.int64
    ARGUMENTS = MappingProxyType({
        "argsort": {"kind"},  # CuPy's is always stable, and takes no other kind
        "cumsum": {"dtype"},
        "empty_like": set(),
        "searchsorted": {"side"},
        "where": set(),
        "zeros_like": set(),
    })  # fmt: skip

    def __init__(self):
        self.used = set()

    def asarray(self, values, dtype=None):
        """From the host or the device."""
        return Device(np.array(values.held if isinstance(values, Device) else values, dtype))

    def __getattr__(self, name):
        assert name in self.ARGUMENTS, f"{name} is not among what is known to be in CuPy"
        self.used.add(name)

        def call(*args, **options):
            assert options.keys() <= self.ARGUMENTS[name]
            assert options.get("kind", "stable") == "stable"
            if name == "argsort":
                assert "kind" in options, "NumPy's is not stable unless told"
            return Device(getattr(np, name)(*map(inside, args), **options))

        return call


@pytest.mark.parametrize("factor", [[30.0], [1.0, 0.0, 2.0]])
def test_only_what_cupy_can_do(factor):
    scores, control = drawn(333, "both", 5)
    group = np.random.default_rng(5).integers(0, len(factor), 333)
    xp = Allowed()
    grad, value = found(scores, control, group, factor, xp)
    wanted = found(scores, control, group, factor)
    np.testing.assert_array_equal(grad.held, wanted[0])
    np.testing.assert_array_equal(value.held, wanted[1])
    assert xp.used == xp.ARGUMENTS.keys()
    waits = (lambda: bool(grad), lambda: grad[0], lambda: grad[grad > 0], lambda: np.add(grad, 1))
    for wrong in (*waits, lambda: grad + scores, lambda: xp.median):
        with pytest.raises((TypeError, AssertionError)):
            wrong()


def test_indices_are_short():
    scores, control = drawn(50, "none", 6)
    rows, scaled, ptr = by_place(control, np.arange(50) % 2, 2)
    plan = arrayform.plan(np, rows, scaled, np.ones(2), ptr)
    assert all(getattr(plan, name).dtype == np.int32 for name in ("rows", "group", "place", "index", "size", "first"))
    assert (plan.bits, plan.longest) == (5, 25)
    assert arrayform.slopes(np, plan, scores).shape == (50,)
