"""Third-party sanitizers: functions, commands, and releases that were made before."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dit_dask.config.constraints import Anything, Choice, Field, Flag, Integer, ListOf, MapOf, Number, OneOf, Record, Text
from dit_dask.config.data import STORAGE_OPTIONS
from dit_dask.config.registry import Context, Kind
from dit_dask.errors import InputError
from dit_dask.sanitizers.claims import AllOf, Claim, KAnonymity, LDiversity
from dit_dask.sanitizers.external.calls import RECORD, Command, Function, Precomputed, ProcessLimits
from dit_dask.sanitizers.external.process import SanitizerProcess
from dit_dask.sanitizers.external.published_values import parse_mapping
from dit_dask.sanitizers.external.sanitizer import Caller, CallPolicy, ExternalSanitizer
from dit_dask.storage.redaction import hide, public_url

__all__ = ["KINDS", "ExternalSanitizer"]

COMMON_FIELDS = {
    "columns": Field(ListOf(Text()), [], description="other columns of the data that the sanitizer also sees"),
    "mapping": Field(
        Text(), None, description="file of lines column;published value;original value;… for values of your own", file=True
    ),
    "claim": Field(
        Record({"k": Field(Integer(2), None), "l": Field(Integer(2), None)}),
        {},
        description="what every published class must satisfy",
    ),
    "order_matters": Field(Flag(), None, description="whether the order of rows can change the release; probed by default"),
    "on_error": Field(
        Choice(("fail", "skip")),
        "fail",
        description="what to do about a record whose release cannot be made: end the run, or skip the record",
        affects_result=False,
    ),
    "allow_skipped": Field(Integer(0), 0, description="how many skipped records a complete run may have", affects_result=False),
    "retries": Field(Integer(0), 1, description="how often a failed call is tried again", affects_result=False),
    "cache": Field(
        Text(),
        None,
        description="folder or URL for releases, none to keep nothing; beside the runs if they are local",
        affects_result=False,
    ),
}
PROCESS_FIELDS = {
    "timeout": Field(Number(above=0), 60.0, description="seconds for one call", affects_result=False),
    "show_stderr": Field(
        Flag(),
        False,
        description="quote the last line of its stderr, which may hold values, in errors",
        affects_result=False,
    ),
}
NO_CACHE = "none"


def _build_function(parameters: Mapping[str, Any], context: Context) -> Caller:
    target, process = parameters["target"], SanitizerProcess(parameters["target"], [context.folder])
    return Function(_limits(parameters), target, parameters["params"], context.columns, process)


def _build_function_by_value(parameters: Mapping[str, Any], context: Context) -> Caller:
    target = parameters["function"]
    process = SanitizerProcess(target, [context.folder], parameters["pickled"])
    return Function(_limits(parameters), target, parameters["params"], context.columns, process)


def _build_command(parameters: Mapping[str, Any], context: Context) -> Caller:
    where, argv = f"{context.where}.sanitizer.argv", parameters["argv"]
    for placeholder, purpose in (("{input}", "read"), ("{output}", "write")):
        if not any(placeholder in part for part in argv):
            raise InputError(f"{where} must name {placeholder}, the file to {purpose}; got {hide(argv, keep_ordinary=True)}")
    resolved = tuple(_resolve_argument(part, context.folder) for part in argv)
    return Command(_limits(parameters), resolved, parameters["format"], parameters["env"], SanitizerProcess())


def _limits(parameters: Mapping[str, Any]) -> ProcessLimits:
    return ProcessLimits(parameters["timeout"], parameters["show_stderr"])


def _resolve_argument(part: str, folder: str) -> str:
    """Make a file beside the config absolute, because every call runs in a folder of its own."""
    path = Path(folder) / part
    return str(path) if not Path(part).is_absolute() and path.is_file() else part


def _build_precomputed(parameters: Mapping[str, Any], context: Context) -> Caller:
    if parameters["without"] is None:
        return Precomputed(_resolve_url(parameters["full"], context.folder), "", parameters["storage_options"])
    if RECORD not in parameters["without"]:
        raise InputError(f"{context.where}.sanitizer.without must hold {RECORD}, the position of the row left out")
    full, without = (_resolve_url(parameters[key], context.folder) for key in ("full", "without"))
    return Precomputed(full, without, parameters["storage_options"])


def _resolve_url(url: str, folder: str) -> str:
    return url if "://" in url else str(Path(folder) / Path(url).expanduser())


def _kind(own: Mapping[str, Field], build_caller: Callable[[Mapping[str, Any], Context], Caller]) -> Kind[ExternalSanitizer]:
    """Describe one kind of sanitizer: its own fields and the common ones, and how it is built."""
    fields = {**own, **COMMON_FIELDS}

    def build_sanitizer(parameters: Mapping[str, Any], context: Context) -> ExternalSanitizer:
        where = f"{context.where}.sanitizer"
        mapping = {} if parameters["mapping"] is None else _read_mapping(parameters["mapping"], context, where)
        relevant = {key: value for key, value in parameters.items() if key != "claim" and _affects_result(fields, key)}
        if context.frame is None:
            raise InputError(f"{where}: {parameters['name']} needs the rows themselves")
        match = None
        if "without" in parameters and parameters["without"] is None:
            match = parameters["match"] or "none"
        elif parameters.get("match") is not None:
            raise InputError(f"{where}.match is for a release alone; got releases without each record, too")
        key = [match["key"]] if isinstance(match, Mapping) else []
        identity = json.dumps([relevant, mapping, sys.version_info[:2]], sort_keys=True, default=str)
        return ExternalSanitizer(
            schema=context.schema,
            frame=context.frame[list(dict.fromkeys([*context.columns, *parameters["columns"], *key]))],
            published=(*context.columns, *key),
            caller=build_caller(parameters, context),
            policy=CallPolicy(parameters["retries"], parameters["on_error"] == "skip", parameters["allow_skipped"]),
            where=where,
            identity=hashlib.sha256(identity.encode()).hexdigest(),
            mapping=mapping,
            claim=_build_claim(parameters["claim"]),
            order_matters=parameters["order_matters"],
            match=match,
        )

    return Kind(Record(fields), build_sanitizer, sees_rows=True)


def _affects_result(fields: Mapping[str, Field], key: str) -> bool:
    return key not in fields or fields[key].affects_result


def _read_mapping(path: str, context: Context, where: str) -> dict[str, dict[str, list[str]]]:
    mapping, shown = parse_mapping(context.read(path, f"{where}.mapping"), public_url(path)), public_url(path)
    known = [attribute.name for attribute in context.schema.quasi_identifiers]
    for column in mapping:
        if column not in known:
            raise InputError(f"{where}.mapping: {shown} has lines for {column!r}, which is not among the quasi_identifiers")
    return mapping


def _build_claim(stated: Mapping[str, int | None]) -> Claim | None:
    claims: list[Claim] = []
    if stated.get("k"):
        claims.append(KAnonymity(int(stated["k"] or 0)))
    if stated.get("l"):
        claims.append(LDiversity(int(stated["l"] or 0)))
    return AllOf(tuple(claims)) if claims else None


TARGET = Text(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*", "package.module:function")
KINDS: dict[str, Kind[ExternalSanitizer]] = {
    "python": _kind(
        {
            "target": Field(TARGET, description="a function or class that takes a DataFrame and returns one"),
            "params": Field(
                MapOf(Anything()), {}, description="further arguments of the function, or those of the class", secret=True
            ),
            **PROCESS_FIELDS,
        },
        _build_function,
    ),
    "function": _kind(
        {
            "function": Field(Text(), description="the name of a function that dit.audit was given by value"),
            "params": Field(MapOf(Anything()), {}, description="further arguments of the function", secret=True),
            "pickled": Field(
                Text(),
                description="the function itself, pickled by dit.audit; another run never counts as one of the same function",
                secret=True,
                affects_result=False,  # a pickle is no identity: Function.prepare gives every run one of its own
            ),
            **PROCESS_FIELDS,
        },
        _build_function_by_value,
    ),
    "command": _kind(
        {
            "argv": Field(
                ListOf(Text(), 1),
                description="the program and its arguments; {input}, {output} and {seed} are replaced",
                secret=True,
            ),
            "format": Field(Choice(("csv", "parquet")), "csv"),
            "env": Field(
                MapOf(Text()), {}, description="environment variables for it, beside PATH, locale and a few others", secret=True
            ),
            **PROCESS_FIELDS,
        },
        _build_command,
    ),
    "precomputed": _kind(
        {
            "full": Field(Text(), description="the release of the whole table: .csv, .csv.gz or .parquet"),
            "without": Field(
                Text(),
                None,
                description="the releases without each record; {record} is the row's position; left out: only full",
            ),
            "match": Field(
                OneOf(
                    [(str, Choice(("order", "none"))), (dict, Record({"key": Field(Text())}))],
                    "order, none, or a mapping {key: COLUMN}",
                ),
                None,
                description="how rows are found in the only release; none by default: by what covers them",
            ),
            "storage_options": STORAGE_OPTIONS,
        },
        _build_precomputed,
    ),
}
