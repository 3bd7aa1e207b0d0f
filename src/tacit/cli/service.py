"""``tacit serve``, ``tacit experiment`` and ``tacit token``: the decision service."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from tacit.cli.arguments import Json
from tacit.cli.output import show

app = typer.Typer()
experiment = typer.Typer(help="Create, change and inspect experiments of a running service.")
token = typer.Typer(help="Who may decide, report and administer.")
service = typer.Typer(help="Copies of the store of a service.")
app.add_typer(experiment, name="experiment")
app.add_typer(token, name="token")
app.add_typer(service, name="service")

Store = Annotated[str, typer.Option(help="What everything is kept in: a file, or postgresql://...")]
Beside = Annotated[
    Path | None,
    typer.Option(
        "--state-prefix",
        "--beside",
        help="With PostgreSQL: what the mark's and the key's file names begin with.",
    ),
]
Url = Annotated[str, typer.Option(envvar="TACIT_URL", help="Where the service is; also TACIT_URL.")]
Secret = Annotated[
    str | None,
    typer.Option("--token", help="An administrator's token; else the variable TACIT_TOKEN."),
]
Name = Annotated[str, typer.Argument(help="The experiment.")]
Option = Annotated[str, typer.Argument(help="The option.")]
_STORE = "tacit.db"
_URL = "http://127.0.0.1:8000"
_PATIENCE = 60.0
_LONGEST = 900.0
"""Seconds for an answer, and for an experiment: the first of its kind on a machine is compiled."""


@app.command()
def serve(
    store: Store = _STORE,
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8000,
    beside: Beside = None,
    peer_address: Annotated[
        str,
        typer.Option(
            "--peer-address",
            "--internal",
            help="With PostgreSQL: where other processes reach this one.",
        ),
    ] = "127.0.0.1:0",
    root_path: Annotated[
        str, typer.Option(help="What a proxy puts before every path, such as /tacit.")
    ] = "",
    trusted_proxies: Annotated[
        str,
        typer.Option(help="Whose X-Forwarded-For and -Proto are believed: addresses, networks."),
    ] = "127.0.0.1,::1",
    metrics: Annotated[
        str | None, typer.Option(help="HOST:PORT that tells metrics without a token.")
    ] = None,
    access_log: Annotated[
        bool, typer.Option("--access-log", help="Log each request, a line of JSON.")
    ] = False,
) -> None:
    """Run the decision service on a store, made if there is none, until Ctrl-C.

    The first start writes an administrator's token to a file beside the store. Open the address for the
    dashboard.

    Example: `tacit serve --store shop.db --port 8080`
    """
    try:
        from tacit.service import open_service
        from tacit.service import serve as run
        from tacit.service.connections import bind
        from tacit.serving.storage import StoreError
    except ImportError as error:
        raise ValueError(
            f"the service needs more parts ({error.name}); pip install 'tacit[service]'"
        ) from None
    # Where it cannot listen, nothing is made.
    sockets = bind(host, port)
    told = None
    if metrics is not None:
        name, _, number = metrics.rpartition(":")
        if not number.isdigit():
            raise ValueError(f"serve: expected metrics at HOST:PORT, got {metrics!r}")
        told = bind(name.strip("[]"), int(number))
    try:
        opened = open_service(store, beside=beside, peer_address=peer_address, root_path=root_path)
    except StoreError as error:
        raise ValueError(_said(error)) from None

    def ready(address: str) -> None:
        if (place := opened.write_first_token()) is not None:
            print(f"token    in {place}  (an administrator's, readable by you only)")
        if told is not None:
            where = told[0].getsockname()
            print(f"metrics  http://{where[0]}:{where[1]}/metrics")
        count = len(opened.manager.experiments)
        found = f"{count} experiment{'' if count == 1 else 's'} in {opened.manager.store.place}"
        print(f"serving  {address}  {found}", flush=True)

    run(
        opened,
        sockets=sockets,
        metrics=told,
        trusted=trusted_proxies,
        access_log=access_log,
        ready=ready,
    )


@app.command()
def demo(
    visitors: Annotated[int, typer.Option(min=1, max=1_000_000, help="How many come.")] = 3000,
    rate: Annotated[float, typer.Option(min=1, max=1000, help="How many a second.")] = 60.0,
    epsilon: Annotated[float, typer.Option(help="Privacy of every click.")] = 1.0,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 0,
) -> None:
    """Watch a service learn from a crowd whose clicks never leave their devices.

    Everything runs on this machine and ends by itself, or on Ctrl-C; nothing is left behind.

    Example: `tacit demo --visitors 20 --rate 20`
    """
    try:
        from tacit.cli.demo import run
    except ImportError as error:
        raise ValueError(
            f"the demonstration needs more parts ({error.name}); pip install 'tacit[service,client]'"
        ) from None
    run(
        visitors=visitors,
        rate=rate,
        epsilon=epsilon,
        port=port,
        tell=lambda line: print(line, flush=True),
    )


@experiment.command("create")
def create(
    file: Annotated[Path, typer.Argument(help="A description (TOML).")],
    url: Url = _URL,
    secret: Secret = None,
    as_json: Json = False,
) -> None:
    """Create an experiment from a TOML file, and say what it protects.

    The first experiment of its kind on a machine is compiled, which takes up to a minute or two.

    Example: `tacit experiment create front-page.toml`
    """
    try:
        wanted = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{file}: not a TOML file ({error})") from None
    wanted.setdefault("name", file.stem)
    made = _make(url, secret, wanted)
    print(json.dumps(made) if as_json else f"{made['name']}: {made['sentence']}")


@experiment.command("list")
def list_all(url: Url = _URL, secret: Secret = None, as_json: Json = False) -> None:
    """List the experiments of a service.

    Example: `tacit experiment list`
    """
    found = _ask(url, secret, "GET", "/v1/experiments")["experiments"]
    rows = [
        {
            "name": each["name"],
            "mode": each["mode"],
            "policy": each["policy"]["name"],
            "trust": each["trust"],
            "epsilon": each["guarantee"]["epsilon"],
            "options": len(each["options"]),
        }
        for each in found
    ]
    if rows or as_json:
        show(rows, as_json)
    else:
        print("no experiments yet; `tacit experiment create FILE.toml` makes one")


@experiment.command("show")
def show_one(name: Name, url: Url = _URL, secret: Secret = None, as_json: Json = False) -> None:
    """Show what an experiment protects and how its options do.

    Example: `tacit experiment show front-page`
    """
    described = _ask(url, secret, "GET", _path(name))
    numbers = _ask(url, secret, "GET", f"{_path(name)}/statistics")
    if as_json:
        print(json.dumps({**described, "statistics": numbers}))
        return
    print(described["sentence"])
    print()
    columns = ("option", "decided", "learned", "estimate", "low", "high")
    rows = [
        {column: "" if row[column] is None else row[column] for column in columns}
        | {"retired": "yes" if row["retired"] else ""}
        for row in numbers["options"]
    ]
    if rows:
        show(rows, False)


@experiment.command("mode")
def mode(
    name: Name,
    mode: Annotated[str, typer.Argument(help="learn, frozen, shadow or off.")],
    url: Url = _URL,
    secret: Secret = None,
) -> None:
    """Switch the mode of an experiment.

    Example: `tacit experiment mode front-page frozen`
    """
    _change(url, secret, name, f"mode {mode}", {"mode": mode})


@experiment.command("add-option")
def add_option(name: Name, option: Option, url: Url = _URL, secret: Secret = None) -> None:
    """Add an option; the others keep what was learned about them.

    Example: `tacit experiment add-option front-page pink`
    """
    _change(url, secret, name, f"added {option}", {"add_options": [option]})


@experiment.command("retire")
def retire(name: Name, option: Option, url: Url = _URL, secret: Secret = None) -> None:
    """Never choose an option again.

    Example: `tacit experiment retire front-page red`
    """
    _change(url, secret, name, f"retired {option}", {"retire_options": [option]})


@experiment.command("export")
def export(
    name: Name,
    out: Annotated[
        Path | None, typer.Option(help="FILE.json, .csv or .parquet; standard output unless given.")
    ] = None,
    url: Url = _URL,
    secret: Secret = None,
) -> None:
    """Write down what an experiment released: decisions, and reports that are private by themselves.

    Of a central experiment these are decisions and released values, never a reward. JSON has a line for
    each thing that happened, CSV and Parquet have a row for each decision.

    Example: `tacit experiment export front-page --out log.csv`
    """
    kinds = (".json", ".csv", ".parquet")
    if out is not None and out.suffix not in kinds:
        raise ValueError(f"export: expected a file that ends with {', '.join(kinds)}, got {out}")
    lines = _answered(url, secret, "GET", f"{_path(name)}/released").text.splitlines()
    if out is None:
        print("\n".join(lines))
        return
    from tacit.service.export import write

    write(out, lines)
    print(f"wrote {out}")


@service.command("backup")
def backup(
    file: Annotated[Path, typer.Argument(help="Where the copy goes.")],
    store: Store = _STORE,
) -> None:
    """Copy the store of a service, running or not; the mark stays where it is.

    Example: `tacit service backup copy.db --store shop.db`
    """
    from tacit.service.backups import back_up

    back_up(store, file)
    print(f"wrote {file}; it holds what the store does, keep it as safe")
    print(
        f"it opens only with the key of pseudonyms ({store}.key or TACIT_PSEUDONYM_KEY): keep that too"
    )


@service.command("restore")
def restore(
    file: Annotated[
        Path | None, typer.Argument(help="The copy; unless given the store itself is one.")
    ] = None,
    store: Store = _STORE,
    beside: Beside = None,
) -> None:
    """Put an old copy in place of the store: what was lost counts as spent, open sums are discarded.

    Example: `tacit service restore copy.db --store shop.db`
    """
    from tacit.service.backups import restore as go_on
    from tacit.serving.storage import StoreError

    try:
        said = go_on(store, file, beside=beside)
    except StoreError as error:
        raise ValueError(str(error)) from None
    for name, sentence in said.items():
        print(f"{name}: {sentence}")
    print("restored" if said else "restored; nothing was lost")


@service.command("reset-clock")
def reset_clock(store: Store = _STORE, beside: Beside = None) -> None:
    """Set experiments back to this machine's clock, after it was ahead and is right again.

    Stop the service first. What was spent stays spent, and counts in the windows of the right time too.
    Decisions that were made in the false time are closed.

    Example: `tacit service reset-clock --store shop.db`
    """
    from tacit.service.backups import reset_clocks
    from tacit.serving.storage import StoreError

    if "://" not in store and not Path(store).is_file():
        raise ValueError(f"reset-clock: expected the store of a service, found no file {store}")
    try:
        found = reset_clocks(store, beside=beside)
    except StoreError as error:
        raise ValueError(_said(error)) from None
    for name, seconds in found.items():
        print(f"{name}: set back by {seconds:,.0f} s")
    if not found:
        print("no experiment is ahead of this machine's clock")


@token.command("create")
def create_token(
    name: Annotated[str, typer.Argument(help="What to call it.")],
    scope: Annotated[
        list[str] | None, typer.Option(help="decide, report, metrics or admin; repeatable.")
    ] = None,
    origin: Annotated[
        list[str] | None, typer.Option(help="A page that may use it, https://...; repeatable.")
    ] = None,
    store: Store = _STORE,
) -> None:
    """Make a token and print it, once; by default it may decide and report.

    Example: `tacit token create shop --store shop.db --origin https://shop.example`
    """
    with _tokens(store) as tokens:
        print(tokens.create(name, scope or ["decide", "report"], origin or []))


@token.command("list")
def list_tokens(store: Store = _STORE, as_json: Json = False) -> None:
    """List the tokens: names and scopes, never the tokens themselves.

    Example: `tacit token list --store shop.db --json`
    """
    with _tokens(store) as tokens:
        rows = [
            {"name": each.name, "scopes": " ".join(each.scopes), "origins": " ".join(each.origins)}
            for each in tokens.known()
        ]
    if rows or as_json:
        show(rows, as_json)
    else:
        print(f"no tokens for {store}; `tacit token create NAME` makes one")


@token.command("revoke")
def revoke(
    name: Annotated[str, typer.Argument(help="The token's name.")], store: Store = _STORE
) -> None:
    """Make a token worthless, within a second.

    Example: `tacit token revoke first --store shop.db`
    """
    with _tokens(store) as tokens:
        tokens.revoke(name)
    print(f"revoked {name}")


@contextlib.contextmanager
def _tokens(store: str) -> Iterator[Any]:
    from tacit.service.server import tokens_of
    from tacit.serving.storage import StoreError, is_database

    if not is_database(store) and not Path(store).is_file():
        raise ValueError(f"token: expected the store of a service, found no file {store}")
    try:
        yield tokens_of(store)
    except StoreError as error:
        raise ValueError(str(error)) from None


def _said(error: Exception) -> str:
    hint = " (tacit service restore does so)" if "as restored" in str(error) else ""
    return f"{error}{hint}"


def _path(name: str) -> str:
    return f"/v1/experiments/{quote(name, safe='')}"


def _change(url: str, secret: str | None, name: str, done: str, wanted: dict[str, Any]) -> None:
    _ask(url, secret, "PATCH", _path(name), wanted)
    print(f"{name}: {done}")


def _make(url: str, secret: str | None, wanted: Any) -> Any:
    """Create an experiment, and say how long it takes while it does."""
    soon = {"prefer": "respond-async, wait=1"}
    answer = _answered(url, secret, "POST", "/v1/experiments", wanted, headers=soon)
    if answer.status_code != 202:
        return answer.json()
    begun, path = time.monotonic(), _path(wanted["name"])
    what, grows = f"compiling {wanted['name']}, once on this machine", sys.stderr.isatty()
    if not grows:
        print(what, file=sys.stderr, flush=True)
    while (seconds := time.monotonic() - begun) < _LONGEST:
        if grows:
            print(f"\r{what}: {seconds:.0f} s", end="", file=sys.stderr, flush=True)
        time.sleep(1.0)
        # Behind a proxy another process may be asked, which does not know of it.
        status = _answered(url, secret, "GET", f"{path}/creation", missing=True)
        said = status.json() if status.status_code == 200 else {"status": "elsewhere"}
        if said["status"] in ("ready", "failed"):
            if grows:
                print(file=sys.stderr)
            if said["status"] == "failed":
                raise ValueError(f"the service cannot make it: {said['detail']}")
            return _ask(url, secret, "GET", path)
    raise ValueError(f"{wanted['name']}: not ready after {_LONGEST:.0f} s; ask again later")


def _ask(url: str, secret: str | None, method: str, path: str, body: Any = None) -> Any:
    return _answered(url, secret, method, path, body).json()


def _answered(
    url: str,
    secret: str | None,
    method: str,
    path: str,
    body: Any = None,
    missing: bool = False,
    headers: dict[str, str] | None = None,
) -> Any:
    import httpx2

    secret = secret or os.environ.get("TACIT_TOKEN")
    if not secret:
        raise ValueError("expected --token or the variable TACIT_TOKEN, got neither")
    try:
        answer = httpx2.request(
            method,
            url.rstrip("/") + path,
            json=body,
            headers={"authorization": f"Bearer {secret}", **(headers or {})},
            timeout=_PATIENCE,
        )
    except httpx2.TransportError as error:
        raise ValueError(f"{url}: the service cannot be reached ({error})") from None
    if answer.is_error and not (missing and answer.status_code == 404):
        try:
            detail = answer.json()["detail"]
        except (ValueError, KeyError):
            detail = answer.reason_phrase
        raise ValueError(f"the service answered {answer.status_code}: {detail}")
    return answer
