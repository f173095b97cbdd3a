"""Large arrays on workers of other machines: sent once to each machine, and mapped by the workers that are there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import SystemRandom
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from dit_dask.execution.session import TICK_SECONDS, LostWorkError
from dit_dask.storage.packed import PackedFile, ReceivedArrays, SentArrays
from dit_dask.storage.scratch import MappedFile, own_place

if TYPE_CHECKING:
    from distributed import Client, Future, Worker

ANSWER_SECONDS = 10


def call_on_workers(
    client: Client, function: Callable[..., Any], *arguments: Any, workers: Collection[str] | None = None
) -> dict[str, Any]:
    """Call a short function on workers, all unless named; return what they answer: nothing if one does not answer soon."""
    options = {"workers": None if workers is None else list(workers), "on_error": "ignore"}
    try:
        answers: dict[str, Any] = client.sync(client._run, function, *arguments, **options, callback_timeout=ANSWER_SECONDS)
    except Exception:  # a worker died or is frozen: its loss is noticed when it has work
        return {}
    return answers


def find_owners(seen: Mapping[str, Collection[str]]) -> dict[str, str]:
    """Return for each worker the one whose file it maps, its own or that of one that it sees; owners map their own.

    Who is seen by most is chosen first: where all workers of a machine see each other, one of them is the owner.
    """
    viewers: dict[str, list[str]] = {worker: [] for worker in seen}
    for worker, others in seen.items():
        for other in {*others, worker} & seen.keys():
            viewers[other].append(worker)
    owners: dict[str, str] = {}
    for owner in sorted(viewers, key=lambda worker: (-len(viewers[worker]), worker)):
        if owner not in owners:
            owners |= {worker: owner for worker in viewers[owner] if worker not in owners}
    return owners


@dataclass(frozen=True)
class HostCopies:
    """Where a worker finds arrays of which each machine has a copy: under its own key, or in a file of another worker."""

    keys: Mapping[str, str]
    files: tuple[PackedFile, ...]

    def buffers(self) -> Sequence[Any]:
        """On a worker, in a task: the arrays that it has, or those of its machine, or a copy that another one sends."""
        from distributed import get_worker

        worker = get_worker()
        received = worker.data.get(self.keys.get(worker.address)) or ReceivedArrays.of_other(self.files)
        if received is None:  # it joined later, or those of its machine are gone
            fetching = fetch(worker, list(self.keys.values()))
            received = asyncio.run_coroutine_threadsafe(fetching, worker.loop.asyncio_loop).result()
        buffers: Sequence[Any] = received.buffers()
        return buffers


def share(
    client: Client, arrays: Sequence[NDArray[Any]], send: Callable[[Any, Collection[str]], Future]
) -> tuple[HostCopies, list[Future]] | None:
    """Send arrays once to each machine; return where workers find them, and what must live as long as they are used.

    None if each worker is alone on its machine, or some do not answer.
    """
    from distributed import Future

    tokens = {worker: place for worker, place in call_on_workers(client, own_place).items() if place is not None}
    owners = find_owners(call_on_workers(client, seen_of, tokens))
    shared = {owner for worker, owner in owners.items() if owner != worker}
    if not shared:
        return None
    first = sorted(set(owners.values()))
    sent = send(SentArrays(arrays, frozenset(tokens[owner].mark for owner in shared)), first)
    keys = {worker: f"{sent.key}-{number}" for number, worker in enumerate(sorted(owners))}
    kept = [Future(key, client) for key in keys.values()]
    answers = call_on_workers(client, keep, sent.key, keys, client.id, workers=first)
    if answers.keys() < set(first):
        return None
    files = [packed for packed in answers.values() if packed is not None]
    others = sorted(owners.keys() - first)
    answers = call_on_workers(client, keep, sent.key, keys, client.id, files, workers=others) if files else {}
    files += [packed for packed in answers.values() if packed is not None]
    return HostCopies(keys, tuple(files)), kept


def seen_of(tokens: Mapping[str, MappedFile]) -> list[str]:
    """On a worker: the workers whose scratch files it sees."""
    return [worker for worker, place in tokens.items() if place.is_seen()]


async def keep(
    sent: str, keys: Mapping[str, str], client: str, files: Sequence[PackedFile] = (), *, dask_worker: Worker
) -> PackedFile | None:
    """On a worker: keep arrays as long as the client wants its key, those that were sent to it or of a file that it sees.

    No other worker has this key: of what several have, Dask drops all but one when no task waits for it.
    """
    received = dask_worker.data.get(sent) or ReceivedArrays.of_other(files)
    if received is None and files:
        return None
    if received is None:  # dropped already
        received = await fetch(dask_worker, [sent])
    key = keys[dask_worker.address]
    sizes = dask_worker.update_data({key: received})["nbytes"]
    await dask_worker.scheduler.update_data(who_has={key: [dask_worker.address]}, nbytes=sizes, client=client)
    packed: PackedFile | None = received.packed
    return packed


async def fetch(worker: Worker, keys: Sequence[str]) -> Any:
    """On a worker: get the value of one of these keys from another worker, as Dask gets what a task needs."""
    from distributed.worker import get_data_from_worker

    is_busy = True
    while is_busy:
        is_busy = False
        holders = [(key, address) for key, some in (await worker.scheduler.who_has(keys=keys)).items() for address in some]
        SystemRandom().shuffle(holders)
        for key, address in holders:
            with suppress(OSError):  # it died, and the scheduler does not know yet
                answer = await get_data_from_worker(worker.rpc, [key], address, who=worker.address)
                if key in answer.get("data", ()):
                    return answer["data"][key]
                is_busy = is_busy or answer["status"] == "busy"
        await asyncio.sleep(TICK_SECONDS)
    raise LostWorkError("sending the data to a worker that joined: all that had it are gone")
