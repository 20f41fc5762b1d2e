"""Deleting a checkpoint of a run at rest: its logs, and the files that no other one needs."""

from __future__ import annotations

from headgate.base.errors import RefusedError
from headgate.home.layout import RunHome
from headgate.snapshots.closure import DamagedError, closure
from headgate.snapshots.spark_log import committed_batches, latest_committed, pending_batch


def delete_checkpoint(run: RunHome, batch: int, *, newest: bool) -> int:
    """Delete a checkpoint and what only it needs; gives the number of files that went.

    ``newest`` keeps the newest checkpoint: the run is the one that the job goes on with.
    """
    files, folder = run.files, run.spark_path
    batches = committed_batches(run)
    if batch not in batches:
        return 0  # only a pin was left of it
    if newest and batch == latest_committed(run):
        raise RefusedError(
            f"ck:{batch} is the newest checkpoint of run {run.id}, from which job "
            f"'{run.job.name}' goes on",
            remedy="delete an older one, or start the job from nothing with --fresh first",
        )
    files.withdraw(f"{folder}/commits/{batch}")
    files.delete(f"{folder}/commits/.{batch}.crc")
    run.checkpoint_log.forget(batch)
    needed: set[str] = set()
    for other in batches:
        if other != batch:
            try:
                needed.update(closure(files, folder, other).files)
            except DamagedError:
                return 1  # what is damaged may need anything: nothing more is deleted
    if pending_batch(run) is not None:
        return 1
    gone = [path for path in files.walk(f"{folder}/state") if f"state/{path}" not in needed]
    for path in gone:
        files.delete(f"{folder}/state/{path}")
    return 1 + len(gone)
