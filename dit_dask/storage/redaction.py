"""Documents, URLs and messages without secrets."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

MASK = "***"
SHORTEST_SECRET = 4
DIGEST_LENGTH = 8
LONGEST_NAME = 20  # of a folder or file with digits in a command; what is longer may be a key

NAMES = (
    r"passw|passphrase|passcode|pwd|secret|token|credential|api_?key|access_?key|private_?key|account_?key|authorization|bearer"
)
CREDENTIAL = re.compile(
    rf"(?i){NAMES}|(?<![a-z])(?:key(?![-_]?col)|pass|sas|auth|cookies?|headers?|sig|pin|sid|otp)(?![a-z])|connection_?string|signature"
)
NAMED_CREDENTIAL = re.compile(rf"(?i){NAMES}")
REFERENCE = re.compile(r"\$\{\w+\}")
HIDDEN = re.compile(rf"\*\*\*([0-9a-f]{{{DIGEST_LENGTH}}})?")
FREE_FORM = ("storage_options", "env")  # what people call such mappings inside parameters of their own

# user and password of a URL, also one inside a chain or a sentence; a password may hold a slash, a port does not;
# what Azure's URLs have in the place of a user is a container
USER = re.compile(
    r"(://)(?:(?<!\babfs://)(?<!\babfss://)(?<!\bwasb://)(?<!\bwasbs://)[^/?#\s\"'<>]*@|[^/?#\s\"'<>:@]+:(?!\d+(?:[/\s]|$))[^\s\"'<>]*@)"
)
QUERY = re.compile(r"(://[^\s\"'<>?#]*)([?#])(?!\*\*\*)[^\s\"'<>]+")
TOKENS = re.compile(
    r"(?i:\bbearer\s+)(?!\*\*\*)[^\s\"',]{4,}|\bBasic\s+[A-Za-z0-9+/]{8,}={0,2}|\b(?:AKIA|ASIA)[A-Z0-9]{12,}|\bgh[pousr]_\w{20,}"
    r"|\bxox[abprs]-[\w-]{10,}|\bsk-[\w-]{16,}|\beyJ[\w-]{5,}\.[\w-]+\.[\w-]*|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*"
)
ASSIGNED = re.compile(
    rf"(?i)([\w-]*(?:{NAMES})[\w-]*(?:\s*=\s*|[\"']\s*:\s*)[\"']?)(?!\$\{{|\*\*\*|…)([^\s\"',;&]+)"
)  # password=…, 'token': '…'

ORDINARY = re.compile(
    r"activation|algorithm|bins|categorical|closeness|columns?|continuous|cp|criterion|delta|delimiter|depth|device|direction"
    r"|distance|distribution|drop|dtype|encoding|epsilon|estimator|features?|format|generalization|generator|hierarch(?:y|ies)|jar"
    r"|k|kernel|kind|l|lang|language|lc_all|levels?|library|locale|loss|m|mechanism|method|metric|missing|mode|model|noise|numeric"
    r"|objective|optimizer|order|plugin|policy|precision|program|quasi_identifiers|random_state|rounding|seed|sensitive|separator"
    r"|solver|sort|strategy|subcommand|suppression|synthesizer|t|target|tz|unit|units|variant|version|width"
)
"""Names of parameters whose texts are columns, files and choices; all other texts of a secret field are hidden."""
PLACEHOLDERS = re.compile(r"(?:\{\w+\})+")
FLAG = re.compile(r"-[A-Za-z]|-cp|-jar|--[a-z]+(?:[-_][a-z]+)*")
ASSIGNMENT = re.compile(r"(-{0,2}[A-Za-z][\w.-]*)=(.*)", re.DOTALL)
MODULE = re.compile(r"[a-z_]\w*(?:\.[a-z_]\w*)+")
NUMBER = re.compile(r"[+-]?\d{1,8}(?:\.\d{1,8})?(?:[eE][+-]?\d{1,3})?")
FILE = re.compile(
    r"[~.]{0,2}/[\w./+-]*|(?:[\w+-]+/)*[\w+-]+\.(?:py|R|jar|sh|pl|js|class|json|csv|csv\.gz|parquet|ya?ml|toml|txt)"
)


def is_reference(value: object) -> bool:
    """Tell whether a value is a ${NAME} reference and nothing else."""
    return isinstance(value, str) and REFERENCE.fullmatch(value) is not None


def is_credential_name(name: str) -> bool:
    """Tell whether an option of this name usually holds a credential."""
    return CREDENTIAL.search(name) is not None


def public_url(url: str) -> str:
    """Show a URL, or a chain of URLs, without user, password and query, where tokens are."""
    without_user = USER.sub(r"\1", url)
    return QUERY.sub(lambda found: found[1] + ("?" + MASK if found[2] == "?" else ""), without_user)


def mask_text(text: str) -> str:
    """Hide what looks like a credential in any text: in URLs, after `Bearer`, after `password=`, and tokens by their form."""
    shown = TOKENS.sub(MASK, public_url(text) if "://" in text else text)
    return ASSIGNED.sub(rf"\1{MASK}", shown)


def secret_digest(value: Any, key: bytes | None) -> str:
    """Show a secret as a short keyed digest, equal for equal values; without a key only that there is one."""
    if key is None:
        return MASK
    content = json.dumps(value, sort_keys=True, default=str).encode()
    return MASK + hmac.new(key, content, hashlib.sha256).hexdigest()[:DIGEST_LENGTH]


def without_digests(value: Any) -> Any:
    """Copy a document that was shown with a key as it would be shown without one."""
    if isinstance(value, Mapping):
        return {name: without_digests(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_digests(item) for item in value]
    return re.sub(rf"(\*\*\*)[0-9a-f]{{{DIGEST_LENGTH}}}", r"\1", value) if isinstance(value, str) else value


def hide(value: Any, key: bytes | None = None, *, keep_ordinary: bool = False) -> Any:
    """Hide the values of a field that may hold secrets; names and ${NAME} references stay.

    `keep_ordinary`: numbers, files, flags and the parameters that ORDINARY names stay readable, unless they are called like a
    credential or look like one.
    """

    def show(item: Any, names: tuple[str, ...]) -> Any:
        if is_reference(item) or (isinstance(item, str) and HIDDEN.fullmatch(item)):
            return item
        if not keep_ordinary or is_ordinary(item, names):
            return item if keep_ordinary else secret_digest(item, key)
        assigned = ASSIGNMENT.fullmatch(item) if isinstance(item, str) else None
        if assigned:
            return f"{assigned[1]}={show(assigned[2], (*names, assigned[1]))}"
        return secret_digest(item, key)

    return _rewrite(value, show)


def _rewrite(value: Any, show: Any, names: tuple[str, ...] = ()) -> Any:
    if isinstance(value, Mapping):
        return {name: _rewrite(item, show, (*names, str(name))) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rewrite(item, show, item_names) for item, item_names in _name_items(value, names)]
    return show(value, names)


def _name_items(values: Sequence[Any], names: tuple[str, ...]) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Items of a list with their names: a flag names the argument after it; the first argument of a command is its program."""
    flag: tuple[str, ...] = () if names else ("program",)
    for item in values:
        yield item, (*names, *flag)
        flag = (item,) if isinstance(item, str) and FLAG.fullmatch(item) else ()


def named_values(value: Any, names: tuple[str, ...] = (), place: str = "") -> Iterator[tuple[str, tuple[str, ...], Any]]:
    """Place, names and value of everything inside a field; `--name=value` is named by itself."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from named_values(item, (*names, str(name)), f"{place}.{name}")
    elif isinstance(value, list | tuple):
        for index, (item, item_names) in enumerate(_name_items(value, names)):
            yield from named_values(item, item_names, f"{place}[{index}]")
    else:
        assigned = ASSIGNMENT.fullmatch(value) if isinstance(value, str) else None
        yield (place, (*names, assigned[1]), assigned[2]) if assigned else (place, names, value)


def is_ordinary(value: Any, names: Sequence[str]) -> bool:
    """Tell whether a parameter of these names, from the outermost to its own, is readable without doubt."""
    if value is None or isinstance(value, bool):
        return True
    if any(is_credential_name(name) or name in FREE_FORM for name in names):
        return False
    if not isinstance(value, str):
        return isinstance(value, int | float)
    if mask_text(value) != value:
        return False
    is_plain = any(form.fullmatch(value) for form in (PLACEHOLDERS, FLAG, NUMBER)) or _is_file(value)
    own = [name.strip("-").lower().replace("-", "_") for name in names]
    is_plain = is_plain or (names[-1:] == ("-m",) and MODULE.fullmatch(value) is not None)
    return is_plain or any(len(name) > 1 and ORDINARY.fullmatch(name) for name in own)  # -k and the like have numbers


def _is_file(text: str) -> bool:
    """Tell whether a text is a path and no key in base64, which may have slashes too."""
    parts = re.split(r"[/.]", text)
    return FILE.fullmatch(text) is not None and not any(len(part) > LONGEST_NAME and re.search(r"\d", part) for part in parts)


def may_be_secret(value: Any, names: Sequence[str]) -> bool:
    """Tell whether a value of a field that may hold secrets is a literal that is not ordinary without doubt."""
    return not is_reference(value) and not is_ordinary(value, names)


def mask_credentials(value: Any, key: str = "") -> Any:
    """Hide what looks like a credential anywhere in a document: in texts, and in options of parameters."""
    if key in FREE_FORM:
        return hide(value)
    if isinstance(value, Mapping):
        return {name: mask_credentials(item, str(name)) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [mask_credentials(item) for item in value]
    return mask_text(value) if isinstance(value, str) else value


def mask_named(value: Any) -> Any:
    """Hide what free-form parameters call a password, token or key."""

    def show(item: Any, names: tuple[str, ...]) -> Any:
        plain = item is None or isinstance(item, bool) or is_reference(item)
        return item if plain or not any(NAMED_CREDENTIAL.search(name) for name in names) else MASK

    return _rewrite(value, show, ("",))


def texts(value: Any) -> Iterator[str]:
    """Every text inside a value."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from texts(item)
    elif isinstance(value, str):
        yield value


def hidden_texts(value: Any) -> Iterator[str]:
    """The texts inside a field that may hold secrets, without those that are ordinary."""
    for _, names, item in named_values(value):
        if isinstance(item, str) and not is_ordinary(item, names):
            yield item


def url_secrets(text: str) -> Iterator[str]:
    """The passwords and the values of queries in the URLs of a text."""
    for found in USER.finditer(text):
        user = found[0].removeprefix("://").removesuffix("@")
        yield from (user, user.partition(":")[2])
    for found in QUERY.finditer(USER.sub(r"\1", text)):
        query = found[0][len(found[1]) + 1 :]
        yield from (query, *(part.partition("=")[2] for part in query.split("&")))


_known: set[str] = set()


def remember_secrets(secrets: Iterable[str]) -> None:
    """Take these texts out of every message and log line of this process; those of an earlier config are forgotten."""
    _known.clear()
    _known.update(spelled_secrets(secrets))


def spelled_secrets(secrets: Iterable[str]) -> set[str]:
    """Secrets as URLs and representations may spell them."""
    long = {secret for secret in secrets if len(secret) >= SHORTEST_SECRET}
    return {
        form for secret in long for form in (secret, quote(secret), quote(secret, safe=""), unquote(secret), repr(secret)[1:-1])
    }


def scrub(text: str, secrets: Iterable[str] = ()) -> str:
    """Take known secrets, and what looks like a credential, out of a message or a trace."""
    for secret in sorted({*_known, *spelled_secrets(secrets)}, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return mask_text(text)
