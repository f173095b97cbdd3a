"""Sanitizers alone, with scikit-learn's manners: parameters in the constructor, fit, transform, fit_transform."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.audit.build import build_tests
from dit_dask.audit.grammar import check_config
from dit_dask.errors import InputError, describe_value
from dit_dask.inputs.load import load
from dit_dask.inputs.source import read_text
from dit_dask.releasing.labels import LabelledColumn
from dit_dask.releasing.sanitized import tabulate
from dit_dask.sanitizers.claims import recheck

if TYPE_CHECKING:
    import pandas as pd

    from dit_dask.values.release import Release

ALTERNATING = "no sensitive attribute"  # k-anonymity does not look at it, but a table has one


class FrameSanitizer:
    """What all sanitizers of frames share; a subclass names its parameters in its constructor and stores each as it is."""

    quasi_identifiers: Sequence[str] | None
    sensitive: str | None
    hierarchies: Mapping[str, Any] | None

    def sanitizer(self) -> dict[str, Any]:
        """The sanitizer as a config writes it."""
        raise NotImplementedError

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - scikit-learn's signature
        """The parameters of the constructor."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> FrameSanitizer:
        """Set parameters of the constructor."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise ValueError(f"Invalid parameter {name!r} for {type(self).__name__}. Valid parameters are: {list(known)!r}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        """As scikit-learn prints estimators: parameters that are not None."""
        shown = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items() if value is not None)
        return f"{type(self).__name__}({shown})"

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks of estimators that are not built on its own base class."""
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(string=True, categorical=True),
        )

    def __sklearn_is_fitted__(self) -> bool:
        """Whether fit was called."""
        return hasattr(self, "release_")

    def fit(self, frame: pd.DataFrame, y: Any = None) -> FrameSanitizer:  # noqa: ARG002 - scikit-learn's signature
        """Sanitise a frame; every row must be complete."""
        names = self._names(frame)
        kinds = {name: self._described(frame[name], name) for name in names}
        secret = self.sensitive or ALTERNATING
        table = frame[names].assign(**{secret: self._secrets(frame)})
        document = {
            "version": 1,
            "data": {"source": "frame"},
            "schema": {"quasi_identifiers": kinds, "sensitive": secret},
            "tests": [{"sanitizer": self.sanitizer()}],
        }
        config = check_config(document, ".")
        rows = load(config, table)
        if rows.dropped:
            raise InputError(f"fit: {rows.dropped:,} rows have empty cells; fill or drop them first")
        (test,) = build_tests(config, rows, lambda path, where: read_text(path, config, where))
        self.release_: Release = test.procedure.publish(test.rows.table)
        claim: Any = getattr(test.procedure, "sanitizer").claim  # noqa: B009 - procedures of counts have none
        self.claim_holds_ = recheck(self.release_, claim, test.rows.table).holds
        self._published = tabulate(self.release_, test.rows, None).columns
        self._fitted = {key: place for place, key in reversed(list(enumerate(_keys(frame, names))))}
        self.feature_names_in_ = np.array(list(frame.columns), object)
        return self

    def transform(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Publish rows that the fitted table has; a table is sanitised as a whole, so others are refused."""
        if not self.__sklearn_is_fitted__():
            raise InputError(f"{type(self).__name__} is not fitted yet: call fit or fit_transform")
        names = self._names(frame)
        places = [self._fitted.get(key) for key in _keys(frame, names)]
        missing = sum(place is None for place in places)
        if missing:
            raise InputError(
                f"transform: {missing:,} rows were not in the table that was fitted: sanitise them together with it"
            )
        chosen = np.array(places, np.int64)
        return frame.assign(**{name: _texts(self._published[name], chosen) for name in names})

    def fit_transform(self, frame: pd.DataFrame, y: Any = None) -> pd.DataFrame:
        """Sanitise a frame and return it: generalised quasi-identifiers as text, other columns as they are."""
        return self.fit(frame, y).transform(frame)

    def _names(self, frame: pd.DataFrame) -> list[str]:
        if not hasattr(frame, "columns"):
            raise InputError(f"{type(self).__name__} takes a DataFrame; got {describe_value(frame)}")
        names = [name for name in frame.columns if name != self.sensitive]
        chosen = names if self.quasi_identifiers is None else list(self.quasi_identifiers)
        for name in [*chosen, *([] if self.sensitive is None else [self.sensitive])]:
            if name not in frame.columns:
                raise InputError(f"the frame has no column {name!r}")
        return chosen

    def _described(self, cells: pd.Series[Any], name: str) -> dict[str, Any]:
        import pandas as pd

        hierarchy = (self.hierarchies or {}).get(name)
        if hierarchy is not None:
            return {"kind": "categorical", "hierarchy": hierarchy}
        if pd.api.types.is_datetime64_any_dtype(cells.dtype):
            return {"kind": "date"}
        is_number = pd.api.types.is_numeric_dtype(cells.dtype) and not pd.api.types.is_bool_dtype(cells.dtype)
        return {"kind": "numeric" if is_number else "categorical"}

    def _secrets(self, frame: pd.DataFrame) -> Any:
        return [str(row % 2) for row in range(len(frame))] if self.sensitive is None else frame[self.sensitive]


class Mondrian(FrameSanitizer):
    """Mondrian k-anonymity or l-diversity of a frame.

    Parameters
    ----------
    k, l
        At least k rows in every class; or, with `sensitive`, no value of it with a share above 1 / l.
    quasi_identifiers
        The columns to generalise; all but `sensitive` by default.
    sensitive
        The column that l is about; it is published as it is.
    hierarchies
        For labels: a file of lines leaf;parent;…;*, or a rule such as {"prefix": [3, 2]}, by column.
    variant
        "strict", or "basic" as published.

    Examples
    --------
    >>> import dit_dask as dit, pandas as pd
    >>> people = pd.DataFrame({"age": [20, 21, 60, 61], "ill": ["flu", "none", "flu", "none"]})
    >>> dit.Mondrian(k=2, sensitive="ill").fit_transform(people)["age"].tolist()
    ['[20, 21]', '[20, 21]', '[60, 61]', '[60, 61]']
    """

    def __init__(
        self,
        k: int | None = None,
        *,
        l: int | None = None,  # noqa: E741 - the name of the parameter in the literature
        quasi_identifiers: Sequence[str] | None = None,
        sensitive: str | None = None,
        hierarchies: Mapping[str, Any] | None = None,
        variant: str = "strict",
    ) -> None:
        self.k, self.l = k, l
        self.quasi_identifiers, self.sensitive, self.hierarchies, self.variant = (
            quasi_identifiers,
            sensitive,
            hierarchies,
            variant,
        )

    def sanitizer(self) -> dict[str, Any]:
        """The sanitizer as a config writes it."""
        if self.l is not None and self.sensitive is None:
            raise InputError("l is about a sensitive column: name it with sensitive=")
        given = {"k": self.k, "l": self.l, "variant": self.variant}
        return {"name": "mondrian"} | {name: value for name, value in given.items() if value is not None}


def _keys(frame: pd.DataFrame, names: Sequence[str]) -> list[tuple[Any, ...]]:
    return list(frame[list(names)].itertuples(index=False, name=None))


def _texts(column: LabelledColumn, chosen: Any) -> Any:
    return np.array(column.labels, object)[column.codes(chosen)]
