"""The numbers printed in the paper; what the authors stored of each run is in ``authors``."""

from __future__ import annotations

TABLE1_CELLS: tuple[tuple[int, int, float], ...] = tuple(
    (n, hops, sigma) for n in (100, 200) for hops in (1, 2) for sigma in (1.0, 1.5, 2.0)
)

# Error in percent, in the order of TABLE1_CELLS: (N, hops, sigma).
TABLE1: dict[str, tuple[float, ...]] = {
    "SPEC": (13.04, 23.24, 29.59, 10.02, 20.94, 28.06, 13.54, 23.38, 29.36, 11.19, 21.69, 28.20),
    "SDR": (2.45, 11.96, 20.82, 0.90, 4.82, 12.92, 1.76, 10.78, 19.16, 0.28, 3.01, 10.87),
    "GDPA": (2.78, 11.01, 19.57, 0.86, 3.57, 9.13, 2.46, 10.81, 18.67, 0.39, 2.83, 8.52),
    "SNS": (1.97, 11.01, 19.88, 0.63, 2.50, 8.32, 1.72, 10.92, 19.09, 0.20, 1.48, 7.36),
}

# Mean error in percent over the 17 sets: (min-max, standardization).
TABLE2_MEANS: dict[str, tuple[float, float]] = {
    "SeDuMi": (30.19, 32.60),
    "MOSEK": (30.31, 32.61),
    "CDCS": (30.76, 31.76),
    "CDCS (modified dual)": (30.08, 29.40),
    "BCR": (27.60, 26.24),
    "SDcut": (27.49, 26.81),
    "GLR-box": (28.63, 28.38),
    "SNS": (33.75, 30.50),
    "GDPA": (28.21, 26.94),
}

LEMMA1_MEAN = 1.1608e-7  # mean of lmin(H) - lmin(H_bar)
# Milliseconds of GDPA and SNS on the nine sizes of cod-rna, one labelled sample: what the authors
# stored for the right part of the runtime figure.
COD_RNA_SIZES = (4, 14, 48, 95, 488, 970, 4891, 9766, 24432)
COD_RNA_MS: dict[str, tuple[float, ...]] = {
    "GDPA": (60.8, 19.9, 15.4, 8.3, 34.5, 16.5, 281.0, 1142.0, 7288.0),
    "SNS": (25.2, 13.3, 13.4, 15.3, 28.4, 57.5, 4987.0, 24057.0, 219979.0),
}
LP_COUNT = 10  # "fewer than" so many linear programs until convergence
