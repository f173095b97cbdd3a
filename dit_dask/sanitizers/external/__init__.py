"""Sanitizers that are black boxes: functions, commands, and releases made elsewhere."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dit_dask.config.constraints import Anything, Choice, Field, Flag, Integer, ListOf, MapOf, Number, Record, Text
from dit_dask.config.document import STORAGE_OPTIONS
from dit_dask.config.registry import Context, Kind
from dit_dask.errors import InputError
from dit_dask.sanitizers.claims import AllOf, Claim, KAnonymity, LDiversity
from dit_dask.sanitizers.external.calls import RECORD, Command, Function, Precomputed
from dit_dask.sanitizers.external.published_values import parse_mapping
from dit_dask.sanitizers.external.sanitizer import Caller, ExternalSanitizer, Policy

__all__ = ["KINDS", "ExternalSanitizer"]

COMMON = {
    "columns": Field(ListOf(Text()), [], description="other columns of the data that the sanitizer also sees"),
    "mapping": Field(
        Text(), None, description="file of lines column;published value;original value;… for values of your own", file=True
    ),
    "claim": Field(
        Record({"k": Field(Integer(2), None), "l": Field(Integer(2), None)}),
        {},
        description="what every published class must satisfy",
    ),
    "order_matters": Field(Flag(), None, description="whether the order of rows can change the release; found out by default"),
    "on_error": Field(
        Choice(("fail", "skip")),
        "fail",
        description="what a record whose release cannot be made does to the run",
        affects_result=False,
    ),
    "allow_skipped": Field(
        Integer(0), 0, description="so many skipped records still make a complete run", affects_result=False
    ),
    "retries": Field(Integer(0), 1, description="further tries of a call that failed", affects_result=False),
    "cache": Field(
        Text(),
        None,
        description="folder or URL for releases, none to keep nothing; beside the runs if they are local",
        affects_result=False,
    ),
}
HOSTED = {
    "timeout": Field(Number(above=0), 60.0, description="seconds for one call", affects_result=False),
    "show_stderr": Field(
        Flag(), False, description="put the last line of its stderr, which may hold values, into errors", affects_result=False
    ),
}
NO_CACHE = "none"


def _function(parameters: Mapping[str, Any], context: Context) -> Caller:
    columns = (*(attribute.name for attribute in context.schema.quasi_identifiers), context.schema.sensitive.name)
    hosted = (parameters["timeout"], parameters["show_stderr"])
    return Function(*hosted, parameters["target"], parameters["params"], columns, (context.folder,))


def _command(parameters: Mapping[str, Any], context: Context) -> Caller:
    where, argv = f"{context.where}.sanitizer.argv", parameters["argv"]
    for mark in ("{input}", "{output}"):
        if not any(mark in part for part in argv):
            raise InputError(f"{where} must name {mark}, the file to {'read' if mark == '{input}' else 'write'}; got {argv}")
    hosted = (parameters["timeout"], parameters["show_stderr"])
    found = tuple(_beside(part, context.folder) for part in argv)
    return Command(*hosted, found, parameters["format"], parameters["env"])


def _beside(part: str, folder: str) -> str:
    """A relative path is relative to the config, as every input is; a call has a folder of its own."""
    path = Path(folder) / part
    return str(path) if not Path(part).is_absolute() and path.is_file() else part


def _precomputed(parameters: Mapping[str, Any], context: Context) -> Caller:
    if RECORD not in parameters["without"]:
        raise InputError(f"{context.where}.sanitizer.without must hold {RECORD}, the position of the row left out")
    full, without = (_located(parameters[key], context.folder) for key in ("full", "without"))
    return Precomputed(full, without, parameters["storage_options"])


def _located(url: str, folder: str) -> str:
    return url if "://" in url else str(Path(folder) / Path(url).expanduser())


def _kind(own: Mapping[str, Field], build: Callable[[Mapping[str, Any], Context], Caller]) -> Kind[ExternalSanitizer]:
    fields = {**own, **COMMON}

    def built(parameters: Mapping[str, Any], context: Context) -> ExternalSanitizer:
        where = f"{context.where}.sanitizer"
        mapping = {} if parameters["mapping"] is None else _mapping(parameters["mapping"], context, where)
        asked = {key: value for key, value in parameters.items() if key != "claim" and _affects_result(fields, key)}
        if context.frame is None:
            raise InputError(f"{where}: {parameters['name']} needs the rows themselves")
        names = (*(attribute.name for attribute in context.schema.quasi_identifiers), context.schema.sensitive.name)
        identity = json.dumps([asked, mapping, sys.version_info[:2]], sort_keys=True, default=str)
        return ExternalSanitizer(
            schema=context.schema,
            frame=context.frame[list(dict.fromkeys([*names, *parameters["columns"]]))],
            caller=build(parameters, context),
            policy=Policy(parameters["retries"], parameters["on_error"] == "skip", parameters["allow_skipped"]),
            where=where,
            identity=hashlib.sha256(identity.encode()).hexdigest(),
            mapping=mapping,
            claim=_claim(parameters["claim"]),
            order_matters=parameters["order_matters"],
        )

    return Kind(Record(fields), built, sees_rows=True)


def _affects_result(fields: Mapping[str, Field], key: str) -> bool:
    return key not in fields or fields[key].affects_result


def _mapping(path: str, context: Context, where: str) -> dict[str, dict[str, list[str]]]:
    mapping = parse_mapping(context.read(path, f"{where}.mapping"), path)
    known = [attribute.name for attribute in context.schema.quasi_identifiers]
    for column in mapping:
        if column not in known:
            raise InputError(f"{where}.mapping: {path} speaks of {column!r}, which is not among the quasi_identifiers")
    return mapping


def _claim(stated: Mapping[str, int | None]) -> Claim | None:
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
            "params": Field(MapOf(Anything()), {}, description="further arguments of the function, or those of the class"),
            **HOSTED,
        },
        _function,
    ),
    "command": _kind(
        {
            "argv": Field(
                ListOf(Text(), 1), description="the program and its arguments; {input}, {output} and {seed} are filled in"
            ),
            "format": Field(Choice(("csv", "parquet")), "csv"),
            "env": Field(
                MapOf(Text()), {}, description="environment variables for it; it gets PATH, locale and little else", secret=True
            ),
            **HOSTED,
        },
        _command,
    ),
    "precomputed": _kind(
        {
            "full": Field(Text(), description="the release of the whole table: .csv, .csv.gz or .parquet"),
            "without": Field(Text(), description="the releases without each record; {record} is the row's position"),
            "storage_options": STORAGE_OPTIONS,
        },
        _precomputed,
    ),
}
