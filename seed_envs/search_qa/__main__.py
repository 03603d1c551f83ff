"""Commands of Search QA: `import`, `index`, `serve`, `coverage` and `manifests`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seed_envs.command_line import Parser, run
from seed_envs.redaction import redact
from seed_envs.search_qa.collection import open_collection
from seed_envs.search_qa.corpus import Corpus
from seed_envs.search_qa.knowledge.world import SIZES
from seed_envs.search_qa.retrievers.base import Retriever, collection_sha256, open_now
from seed_envs.search_qa.retrievers.factory import holds_passages, open_retriever


def _manifests(args: argparse.Namespace) -> int:
    from seed_envs.search_qa.tasks import SPLITS, make_manifest, manifest_name

    for split in (name for name in SPLITS if name != "eval"):
        manifest = make_manifest(args.size, args.seed, split)
        path = Path(args.output) / manifest_name(args.size, args.seed, split)
        manifest.save(path)
        print(f"{path}: {len(manifest)} questions, sha256 {manifest.sha256}")
    return 0


def _open(args: argparse.Namespace) -> tuple[Corpus | None, Retriever]:
    """Passages and retriever from the common arguments; engines that hold passages need no collection."""
    named = args.collection if args.collection or holds_passages(args.retriever) else "default"
    corpus = open_collection(named, args.seed).open() if named else None
    options: dict[str, Any] = {"progress": True} if getattr(args, "progress", False) else {}
    for pair in args.option:
        key, equals, value = pair.partition("=")
        if not equals:
            raise ValueError(f"--option {pair!r}: expected NAME=VALUE")
        options[key] = _value(value)
    return corpus, open_retriever(args.retriever, corpus, **options)


def _value(text: str) -> Any:
    """A number or true/false as such, everything else as text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _serve(args: argparse.Namespace) -> int:
    from seed_envs.search_qa.retrievers.cache import CachedRetriever
    from seed_envs.search_qa.server import RetrievalServer, ServerOptions, serve
    from seed_envs.search_qa.server_api import Limits
    from seed_envs.search_qa.server_http import PATIENCE, Patience

    options = ServerOptions(
        host=args.host,
        port=args.port,
        token=os.environ.get("SEED_SEARCHQA_TOKEN", ""),
        default_topk=args.topk,
        fastapi_errors=args.fastapi_errors,
        seconds=args.seconds,
        max_waiting=args.max_waiting,
        max_connections=args.max_connections,
        limits=Limits(args.max_body_mib << 20, args.max_queries, args.max_query_characters),
        patience=Patience(args.idle_seconds, min(args.idle_seconds, PATIENCE.started)),
    )
    corpus, retriever = _open(args)
    if args.cache_mib:
        retriever = CachedRetriever(retriever, args.cache_mib << 20)
    server = RetrievalServer(retriever, options, len(corpus) if corpus is not None else 0, args.retriever)
    what = f"{len(corpus):,} passages" if corpus is not None else redact(args.retriever)
    serve(server, lambda address: print(f"serving {what} at {address}", flush=True))
    return 0


def _index(args: argparse.Namespace) -> int:
    local = args.retriever.partition(":")[0] in ("bm25", "flat")
    shown, args.progress = args.progress, args.progress and local
    args.collection = args.collection or "default"
    corpus, retriever = _open(args)
    assert corpus is not None
    ingest, discard = getattr(retriever, "ingest", None), getattr(retriever, "discard", None)
    if ingest is not None:
        count = ingest(corpus, progress=shown, replace=args.replace)
        print(f"{count:,} passages are in {redact(args.retriever)}")
    else:
        if args.replace and discard is not None:
            discard()
        open_now(retriever)
        retriever.search(["ready"], 1)
        where = getattr(retriever, "index_dir", None) or getattr(retriever, "vectors_dir", redact(args.retriever))
        print(f"{len(corpus):,} passages are indexed in {where}")
    print(f"fingerprint {retriever.fingerprint}")
    print(f"collection {collection_sha256(retriever)}")
    return 0


def _import(args: argparse.Namespace) -> int:
    from seed_envs.search_qa.importing.collect import import_files

    for line in import_files(args.files, args.output, args.renumber).lines():
        print(line)
    return 0


def _coverage(args: argparse.Namespace) -> int:
    from seed_envs.search_qa.coverage import answer_coverage, covered
    from seed_envs.search_qa.importing.collect import question_lines
    from seed_envs.search_qa.question_files import questions_sha256, read_questions
    from seed_envs.whole_files import whole_file

    _, retriever = _open(args)
    questions = [question for path in args.questions for question in read_questions(path)]
    found = covered(questions, retriever, args.topk)
    for row in answer_coverage(questions, found, args.topk):
        print(row)
    if args.output:
        kept = [question for question, shown in zip(questions, found, strict=True) if shown]
        with whole_file(Path(args.output)) as temporary:
            temporary.write_bytes(question_lines(kept))
        print(f"{args.output}: {len(kept):,} covered questions, sha256 {questions_sha256(kept)}")
    return 0


def _add_engine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--collection", help=f"one of {list(SIZES)} or a .jsonl[.gz] file")
    parser.add_argument("--seed", type=int, default=0, help="seed of a generated collection")
    parser.add_argument("--retriever", default="bm25", help="name or URL of the engine")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="option of the engine")
    parser.add_argument("--topk", type=int, default=3, help="passages per query")


def _parser() -> Parser:
    parser = Parser(prog="python -m seed_envs.search_qa", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    manifests = commands.add_parser("manifests", help="select the published questions of a generated world")
    manifests.add_argument("--size", choices=list(SIZES), default="default")
    manifests.add_argument("--seed", type=int, default=0)
    manifests.add_argument("--output", default=".", help="folder for the manifest files")
    manifests.set_defaults(run=_manifests)
    server = commands.add_parser("serve", help="serve POST /retrieve as Search-R1 does")
    _add_engine(server)
    server.add_argument("--host", default="127.0.0.1", help="others need a token in $SEED_SEARCHQA_TOKEN")
    server.add_argument("--port", type=int, default=8000)
    server.add_argument("--cache-mib", type=int, default=64, help="query cache; 0 switches it off")
    server.add_argument("--fastapi-errors", action="store_true", help="422 answers in FastAPI's shape")
    server.add_argument("--seconds", type=float, default=10.0, help="longest time for each 64 queries of a request")
    server.add_argument("--max-body-mib", type=int, default=64, help="longest body of a request")
    server.add_argument(
        "--max-queries", type=int, help="most queries of a request; as many as the body holds if not given"
    )
    server.add_argument("--max-query-characters", type=int, default=1 << 16, help="where longer queries are cut")
    server.add_argument("--max-waiting", type=int, default=8192, help="most queries in the queue")
    server.add_argument("--max-connections", type=int, default=1024, help="most connections")
    server.add_argument("--idle-seconds", type=float, default=60.0, help="how long an idle connection is kept")
    server.set_defaults(run=_serve)
    index = commands.add_parser("index", help="build an index, or load the passages into a service; resumable")
    _add_engine(index)
    index.add_argument("--progress", action="store_true", help="show a progress bar")
    index.add_argument("--replace", action="store_true", help="empty the index first, whatever it holds")
    index.set_defaults(run=_index)
    importer = commands.add_parser("import", help="read published questions and passages in any known form")
    importer.add_argument("files", nargs="+", metavar="FILE", help="files, or folders of files")
    importer.add_argument("--output", required=True, help="folder for passages.jsonl, questions.jsonl, receipt.json")
    importer.add_argument("--renumber", action="store_true", help="give passages new ids, for files whose ids collide")
    importer.set_defaults(run=_import)
    coverage = commands.add_parser("coverage", help="how many questions have an answer string in the top passages")
    _add_engine(coverage)
    coverage.add_argument("--questions", nargs="+", required=True, help="question files")
    coverage.add_argument("--output", metavar="FILE", help="write the covered questions to a question file")
    coverage.set_defaults(run=_coverage)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit code."""
    return run(_parser(), arguments, user_errors=(ValueError,))


if __name__ == "__main__":
    sys.exit(main())
