"""How every kernel is compiled."""

from numba import njit


def compiled(function=None, **options):
    """Njit with the settings of all kernels; without a cache where no folder for it can be written.

    error_model="numpy": Python's check for division by zero would keep the loops from being vectorised.
    fastmath: sums may be reordered; NaN and infinity stay what they are. Where the order matters: fastmath=False.
    """
    if function is None:
        return lambda f: compiled(f, **options)
    settings = dict(nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"}) | options
    try:
        return njit(cache=True, **settings)(function)
    except RuntimeError:  # numba: "no locator available", when neither the package nor the home can be written
        return njit(**settings)(function)
