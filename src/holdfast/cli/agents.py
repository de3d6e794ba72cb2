"""What the verbs of keys and agents do: make a secret or a key, publish a slice, join the slices."""

from __future__ import annotations

from pathlib import Path

from holdfast.cli import showing
from holdfast.cli.verbs import job_of
from holdfast.progress import command


def secret(file: Path, quiet: bool) -> None:
    """Write a fresh secret."""
    from holdfast.release.agents.secret import write_secret

    write_secret(file)
    if not quiet:
        showing.sentence(f"wrote {file}; give it to the agents of one release, over a channel that keeps secrets")


def key(file: Path, passphrase: bool, quiet: bool) -> None:
    """Write a fresh key and its public part."""
    import typer

    from holdfast.release.signing.keys import SUFFIX, write_key

    phrase = typer.prompt("passphrase", hide_input=True, confirmation_prompt=True, err=True) if passphrase else None
    signer = write_key(file, phrase)
    if not quiet:
        showing.sentence(f"wrote {file}, and {file}{SUFFIX} for your readers; its fingerprint is {signer.fingerprint}")


def agent(
    spec: Path, name: str, secret_file: Path | None, source: Path | None, output: Path | None, json: bool, quiet: bool
) -> None:
    """Publish the slice of an agent."""
    from holdfast.release.agents.distributed import agent as published
    from holdfast.release.agents.secret import read_secret

    keys = read_secret(secret_file)
    job = job_of(spec, quiet or json)
    with command(quiet=quiet or json) as step:
        folder = published(job, name, keys, source=source, output=output, step=step)
    if json:
        showing.data({"agent": name, "folder": str(folder), "statement": job.guarantee.as_mapping()})
    elif not quiet:
        showing.sentence(f"agent {name} published its slice into {folder}")


def gather(spec: Path, folders: list[Path] | None, output: Path | None, json: bool, quiet: bool) -> None:
    """Join the slices of all agents."""
    from holdfast.release.agents.distributed import gather as gathered

    job = job_of(spec, quiet or json)
    with command(quiet=quiet or json) as step:
        folder = gathered(job, folders or None, output=output, step=step)
    if json:
        showing.data({"folder": str(folder), "report": str(folder / "report.html")})
    elif not quiet:
        showing.sentence(f"joined all slices into {folder}; read {folder / 'report.html'}")
