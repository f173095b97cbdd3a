"""Storage that does not answer for a while: which failures are transient, and trying again after them."""

from __future__ import annotations

import errno
import logging
import re
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

Answer = TypeVar("Answer")

PATIENCE_SECONDS = 90.0  # while a run works: a storage server may take half a minute to come back
FIRST_PATIENCE_SECONDS = 30.0  # before it starts: a wrong address looks like an outage and should be reported soon
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
TRANSIENT_ERRNOS = {
    errno.ECONNABORTED, errno.ECONNREFUSED, errno.ECONNRESET, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN,
    errno.ENETRESET, errno.ENETUNREACH, errno.EPIPE, errno.ESTALE, errno.ETIMEDOUT,
}  # fmt: skip
# the libraries under fsspec share no base class; their names for a lost connection are alike
TRANSIENT_NAMES = re.compile(
    r"Connect|Timeout|Disconnected|IncompleteRead|PayloadError|HTTPClientError|ResponseParserError|"
    r"ServiceRequestError|ServiceResponseError|RemoteProtocol"
)
FINAL = (FileNotFoundError, FileExistsError, PermissionError, IsADirectoryError, NotADirectoryError)


def retry_transient(action: Callable[[], Answer], patience: float = PATIENCE_SECONDS) -> Answer:
    """Do something that needs the storage; after transient failures try again, with growing pauses, until patience ends."""
    pause, end = FIRST_PAUSE, time.monotonic() + patience
    while True:  # tenacity would import asyncio and Tornado for this
        try:
            return action()
        except Exception as error:
            if not is_transient(error) or time.monotonic() + pause >= end:
                raise
            logging.getLogger("dit_dask").info("storage does not answer (%s); trying again", type(error).__name__)
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


def is_transient(error: BaseException) -> bool:
    """Tell whether the same request may succeed later: the server is away, or says that it is overloaded."""
    for link in causes(error):
        if isinstance(link, FINAL):
            return False
        status = http_status(link)
        if status is not None:
            return status >= 500 or status == 429
        if isinstance(link, ConnectionError | TimeoutError) or TRANSIENT_NAMES.search(type(link).__name__):
            return True
        if isinstance(link, OSError) and link.errno in TRANSIENT_ERRNOS:
            return True
    return False


def causes(error: BaseException) -> Iterator[BaseException]:
    """Walk from an error to what caused it."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__


def http_status(error: BaseException) -> int | None:
    """The status of an HTTP answer, wherever the library keeps it."""
    response = getattr(error, "response", None)
    held = response.get("ResponseMetadata", {}).get("HTTPStatusCode") if isinstance(response, dict) else None
    for status in (held, *(getattr(error, name, None) for name in ("status_code", "status", "code"))):
        if isinstance(status, int) and 400 <= status < 600:
            return status
    return None


def error_code(error: BaseException) -> str:
    """The code that an S3 server gave, such as NoSuchBucket, or nothing."""
    for link in causes(error):
        response = getattr(link, "response", None)
        if isinstance(response, dict):
            return str(response.get("Error", {}).get("Code", ""))
    return ""
