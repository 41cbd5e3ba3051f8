"""What is known about each data set: the card, where it comes from, how to recognise it.

The addresses are those of the public homes (UCI, LIBSVM, OpenML). The order of rows and the sign of
labels in the public files are not taken on trust: both signs, and every order of the parts where
there are several, are compared with the fingerprint.
"""

from __future__ import annotations

from ..errors import nearest_name
from .cards import Card, Entry
from .homes import LIBSVM_TERMS as _LIBSVM_TERMS
from .homes import describe as _entry
from .homes import from_libsvm as _libsvm
from .homes import from_openml as _openml
from .homes import from_uci as _uci
from .homes import from_uci_archive as _zip

__all__ = ["CATALOGUE", "card", "find", "list_datasets"]

_ENTRIES = (
    _entry(
        "australian",
        (690, 14),
        (307, 383),
        "+1 approved, -1 refused (UCI: 1 and 0)",
        [
            _libsvm("australian"),
            _uci("table-single", "statlog/australian/australian.dat"),
            _zip("table-single", "143/statlog+australian+credit+approval", "australian.dat"),
        ],
        (
            "384d5afb3677945b85c821a2d81bf8479c78fde761983f9b431e0ca3ed093b4e",
            "69ff6ce7bb3528f48c5be0fb26c425c1b47980ed157e65abd981089544b7c7ce",
            "e00312fd3b7694519932604cb0d452c0825a3c66428f5c61e4d576a27b343be8",
        ),
        source="LIBSVM data page, from UCI, Statlog (Australian Credit Approval)",
        notes="LIBSVM's file went through single precision: 190 cells differ from UCI's by 2e-6.",
    ),
    _entry(
        "breast-cancer",
        (683, 10),
        (444, 239),
        "+1 benign, -1 malignant (raw: 2 and 4)",
        [_libsvm("breast-cancer")],
        (
            "decf24680d3e9efedc3440d50de51610b0f2b50b07c0ab23b67833cb1de7d4ce",
            "a3af2d8d189dd4b9972885c36286f905e442c616187508a5faa070a9ab1fab8c",
            "43662100726c372cece8f0dadec10c8d15281900e749c70b808cc8ccc37bbd73",
        ),
        source="LIBSVM data page, from UCI Breast Cancer Wisconsin (Original)",
        notes="f1 is the sample id, which the authors kept; rows with missing cells are left out.",
    ),
    _entry(
        "diabetes",
        (768, 8),
        (500, 268),
        "+1 no diabetes, -1 diabetes",
        [_libsvm("diabetes")],
        (
            "cb3b21a4352547753d310345f1ce16eceff3f0f783e57f223d0bd791ed2a630d",
            "1f175ded5c9055c3e3198a85c2c7d3c11e143abdbdb884ba79f08be0f17f4622",
            "e89fe4517dec8e02641a87d3e6c05b8ac6c8ed7f711bc51b99fe5c06c3e21208",
        ),
        source="LIBSVM data page, from the Pima Indians diabetes study",
        license=_LIBSVM_TERMS,
    ),
    _entry(
        "fourclass",
        (862, 2),
        (555, 307),
        "two classes of an artificial plane set, made from four regions",
        [_libsvm("fourclass")],
        (
            "a9f60f851444d030bf9fe4b7763f17a5b9686a81dfe8e4dda0e56bc081b7ae19",
            "fadcae0740b7431072474e535cc09ae1ecb24309e6eea590fa601c7aa93d8404",
            "3c54c0aad18993c935fb67fe1e0bff078c95ae7f586339837a5ede3efdebce97",
        ),
        source="LIBSVM data page, from Ho and Kleinberg (1996)",
        license=_LIBSVM_TERMS,
        notes="The sign of the public file may be the other one; the fingerprint decides.",
    ),
    _entry(
        "german",
        (1000, 24),
        (700, 300),
        "+1 good credit, -1 bad credit (raw: 1 and 2)",
        [
            _uci("table", "statlog/german/german.data-numeric"),
            _libsvm("german.numer"),
            _zip("table", "144/statlog+german+credit+data", "german.data-numeric"),
        ],
        (
            "f239119450602853117ef678e3e40a7637e75a8d80abe791477217c98d753910",
            "79e30555d0ceadbc5ed3efef30064c720190af85ab14ee237e76803b5074fa5c",
            "39ef72e3383c8c425beb1daf62602e73b7dae6eb24d8c7af1d976f8286f38e6b",
        ),
        source="UCI, Statlog (German Credit Data), numeric form",
    ),
    _entry(
        "haberman",
        (306, 3),
        (225, 81),
        "+1 survived 5 years or longer, -1 died within (raw: 1 and 2)",
        [
            _uci("table", "haberman/haberman.data"),
            _openml("43/dataset_43_haberman.arff"),
            _zip("table", "43/haberman+s+survival", "haberman.data"),
        ],
        (
            "0ac131cd25f106810183c6865104b467311b35bdf987fe283c8289d90f1f8447",
            "0f5f0aeba78d20e9bb007a122a4905d8827fbf3faf01c5f4cb6521f52a12ab88",
            "0ebdc187caeb5dda9e17737e846f43ba6965847a9f04cf106121677417bbc9c4",
        ),
        source="UCI, Haberman's Survival",
    ),
    _entry(
        "heart",
        (270, 13),
        (150, 120),
        "+1 no heart disease, -1 heart disease (raw: 1 and 2)",
        [
            _uci("table", "statlog/heart/heart.dat"),
            _openml("53/dataset_53_heart-statlog.arff"),
            _libsvm("heart"),
            _zip("table", "145/statlog+heart", "heart.dat"),
        ],
        (
            "73f23bc33423120b1ed66b7f5f3ac94b7ba64865ef571a18983e8b104c23962f",
            "d44557b0b0871dcd247210652fdd3c7d01a75629ac52372910544d01d7274e96",
            "392c6c93ac747350f9209b1cfef56bf49a76e9b2d4f2a6255cd3b1c9b8e7fdf3",
        ),
        source="UCI, Statlog (Heart)",
    ),
    _entry(
        "ILPD",
        (583, 10),
        (416, 167),
        "+1 liver patient, -1 not (raw: 1 and 2)",
        [
            _uci("table", "00225/Indian%20Liver%20Patient%20Dataset%20(ILPD).csv"),
            _zip(
                "table",
                "225/ilpd+indian+liver+patient+dataset",
                "Indian Liver Patient Dataset (ILPD).csv",
            ),
        ],
        (
            "934d637b128f0be8487151cd244937f219f4d3a985615670da6d24016ea1363d",
            "f62089f28d955bfd6160800268cdc12e0da1568574ba883accc4a7914636cda9",
            "615aa6fed40e933a6fae2e6498cff00b6baaf63de4a91b49ac22bd76ffb2d2e2",
        ),
        source="UCI, Indian Liver Patient Dataset",
        notes="f2 is 1 for female and 2 for male; 4 missing cells of f10 are 0.",
    ),
    _entry(
        "liver-disorders",
        (145, 5),
        (90, 55),
        "+1 at most 3 drinks a day, -1 more",
        [
            _libsvm("liver-disorders"),
            _uci("bupa", "liver-disorders/bupa.data"),
            _zip("bupa", "60/liver+disorders", "bupa.data"),
        ],
        (
            "f1192a3f9a9c9743ace9b76d60407754c58755176b3bf0cf9ac0b4bd61acc371",
            "ec8e147435a026c6ad2a785111eebbc5c7f93254d486506dda9c80c6749d8e67",
            "5af19ce3dea80ea74082c51d30f085bd105b6cee2eb7e575e7149aa59651982b",
        ),
        source="LIBSVM data page (training part), from UCI Liver Disorders (BUPA)",
        notes="The training part only (selector 1), without the drinks column, which is the label.",
    ),
    _entry(
        "monk1",
        (556, 6),
        (278, 278),
        "+1 in the concept (a1 = a2 or a5 = 1), -1 not",
        [
            _uci("monks", "monks-problems/monks-1.train", "monks-problems/monks-1.test"),
            _zip("monks", "70/monk+s+problems", "monks-1.train", "monks-1.test"),
        ],
        (
            "071f17b9af2b49ac53e4e59b15c9c1f03f7d0268506f127a329d59f86531efe5",
            "a0afe7f6d3c6be9ad633fe1051d5f6928cbd4ed385ab87020cfe2097189ddf40",
            "e43959a8720cfa5d43e043ac917ebbcdd98b11266b5a6953ddcff40618fbc464",
        ),
        source="UCI, MONK's Problems, first problem",
        notes="Training part, then test part; the training samples occur in the test part too.",
    ),
    _entry(
        "pima",
        (768, 8),
        (268, 500),
        "+1 diabetes, -1 no diabetes",
        [_libsvm("diabetes_scale", format="libsvm-packed")],
        (
            "e8f3fd8ed1236cd42c975a86eedc50f31d1cce3c86d81bf03db0045f4a4a0064",
            "1f79e51065f4bc9ba06cd50afe6bcc47ec84a8411b8e847940f7bd6263922d04",
            "569965e2ea8d7e191c27dd80db355df3455788d87bc44b24a98916da55cff503",
        ),
        source="LIBSVM data page (diabetes_scale), from the Pima Indians diabetes study",
        license=_LIBSVM_TERMS,
        notes="The diabetes set scaled to [-1, 1] with labels inverted. A value that scales to "
        "exactly 0 is left out of the public file: f8 of eight rows, and f3 of row 402, whose "
        "later values the authors' file has one column to the left, with the 0 at the end.",
    ),
    _entry(
        "planning",
        (182, 12),
        (130, 52),
        "+1 planning, -1 relaxed (raw: 1 and 2)",
        [
            _uci("table-3-digits", "00230/plrx.txt"),
            _zip("table-3-digits", "230/planning+relax", "plrx.txt"),
        ],
        (
            "02f05daaa0b10d5227312e4382e5b7861be129df8fe6f142ff2e05ad0ce6993d",
            "86c2b87f241b25d2a71a390ed3d3a228ad51c04e978dba3634022188b6e6f92f",
            "c2901081c3c7968914f30c4de641b8a3619607593acbec914ad6b9cf9a0e07f3",
        ),
        source="UCI, Planning Relax",
        notes="The authors' file has three significant digits, halves rounded away from zero.",
    ),
    _entry(
        "voting",
        (435, 16),
        (168, 267),
        "+1 republican, -1 democrat",
        [
            _uci("votes", "voting-records/house-votes-84.data"),
            _openml("56/dataset_56_vote.arff"),
            _zip("votes", "105/congressional+voting+records", "house-votes-84.data"),
        ],
        (
            "a0e4037186314d2e9d6d022d81e687513d3977daef54896f0f62b6f6921780a8",
            "c36615a491111c56a513c4df403c4a3799f6d56178c33da293be0607cbc981a5",
            "d12020044317b3a60cf86e7cc279e8a0d4ce04ef8f94d0d3925143883b43fc1c",
        ),
        source="UCI, Congressional Voting Records (1984)",
        notes="y is 1, n is -1, unknown is 0.",
    ),
    _entry(
        "WDBC",
        (569, 30),
        (212, 357),
        "+1 malignant, -1 benign",
        [],
        (
            "dcd09087b1ec770ffd5ad81880b3bf7972193d6d941589e039bc558f1e909c2f",
            "af207a1d81f37f55356784797002afdecaa1802e1b8b987b2afd45da6413a63c",
            "332f1ec29f75b9edbc66c1a38a4e6710632b90110850a05e92ec320e04f8c789",
        ),
        source="UCI, Breast Cancer Wisconsin (Diagnostic), as shipped with scikit-learn",
        notes="Comes with scikit-learn; no download.",
    ),
    _entry(
        "sonar",
        (208, 60),
        (97, 111),
        "+1 rock, -1 metal cylinder",
        [
            _uci("table", "undocumented/connectionist-bench/sonar/sonar.all-data"),
            _openml("40/dataset_40_sonar.arff"),
            _zip("table", "151/connectionist+bench+sonar+mines+vs+rocks", "sonar.all-data"),
        ],
        (
            "4df1d555232045450803fbef8415efff2bab45e176fa767a0136670feb97d281",
            "5cafa558f8370c26b752407226d87e3caa10d69c296d8addeb88acb3b27a59bf",
            "2f44731337524c4bdb0b4045d1a5d94b3903bff836c774a511d41ac5a698a501",
        ),
        source="UCI, Connectionist Bench (Sonar, Mines vs. Rocks)",
    ),
    _entry(
        "madelon",
        (2000, 500),
        (1000, 1000),
        "two classes of an artificial set with 20 useful features",
        [
            _libsvm("madelon"),
            _uci(
                "columns",
                "madelon/MADELON/madelon_train.data",
                "madelon/MADELON/madelon_train.labels",
            ),
            _zip("columns", "171/madelon", "madelon_train.data", "madelon_train.labels"),
        ],
        (
            "3d2410f7b9e3677d977943022bf566589f4c74fc1ea7f9339711376b8df3ccd7",
            "a4202a69a4fe7e3526f02558353fb7c2a0ba87a4dc4faf9d9bc593f6fd35f597",
            "8c36dd5d2bc9a9425b7dc0c1654d6cd871f493eec228503053dc9022fb65dad4",
        ),
        source="LIBSVM data page and UCI, Madelon (NIPS 2003 feature selection), training part",
    ),
    _entry(
        "colon-cancer",
        (62, 2000),
        (22, 40),
        "+1 normal tissue, -1 tumour",
        [_libsvm("colon-cancer.bz2")],
        (
            "ec887ef7ced8eff4ec218ad2461902782d5d1e7b04fd739ee6a4f3eb489a747e",
            "c0c57e310700b72f4484d403ee52c8c2bb92b83fa63e9b12ff719b8cce89431c",
            "a1c1040ab31482b20f01bea09c19d727e06dd4d8f79830d7ba9ea19ae73726d3",
        ),
        source="LIBSVM data page, from Alon et al. (1999)",
        license=_LIBSVM_TERMS,
        notes="Each sample was normalised by the LIBSVM authors; one fold only, being so small.",
    ),
    _entry(
        "cod-rna",
        (488565, 8),
        (162855, 325710),
        "+1 non-coding RNA, -1 other",
        [_libsvm("cod-rna", "cod-rna.t", "cod-rna.r")],
        (
            "4e531733b69f9f9f07f2fc3e21a1a3c69ab1e5bc3063779949ed298ebfca7d51",
            "8da5f5320833fa498b2bb5fa6ad899be8afde200e3d119808f641649f40f6bcc",
            "c39bd438269e098553765d2c81b03e4e95a016fd6fe9bcb822edf6f79188ec8d",
        ),
        source="LIBSVM data page, from Uzilov et al. (2006), all three parts",
        license=_LIBSVM_TERMS,
        notes="Used for the growth of run time with the number of samples.",
        compressed=True,
    ),
)

CATALOGUE: dict[str, Entry] = {entry.card.name: entry for entry in _ENTRIES}


def list_datasets() -> list[str]:
    """Names of all data sets, in the order of the paper's table, cod-rna last.

    Returns
    -------
    list of str
        The names.

    Examples
    --------
    >>> from gdpa.datasets import list_datasets
    >>> len(list_datasets())
    18
    """
    return list(CATALOGUE)


def find(name: str) -> Entry:
    """Entry of a data set; upper and lower case are the same.

    Raises
    ------
    ValueError
        If there is no such set; says which is nearest.
    """
    by_lower = {known.lower(): known for known in CATALOGUE}
    known = by_lower.get(name.lower()) if isinstance(name, str) else None
    if known is None:
        raise ValueError(
            f"there is no data set {name!r}; {nearest_name(str(name), list(CATALOGUE))}"
        )
    return CATALOGUE[known]


def card(name: str) -> Card:
    """Card of a data set: source, licence, shape, classes.

    Parameters
    ----------
    name : str
        Name of the set, see :func:`list_datasets`.

    Returns
    -------
    Card
        The card.

    Examples
    --------
    >>> from gdpa.datasets import card
    >>> card("sonar").shape
    (208, 60)
    """
    return find(name).card
