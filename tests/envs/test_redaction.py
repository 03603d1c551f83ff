"""The redactor: what is hidden, what stays, and that a command prints no secret by any way out."""

from __future__ import annotations

import argparse
import io
import json
import logging
import subprocess
import sys

import pytest

from seed_envs import redaction
from seed_envs.command_line import Parser, run
from seed_envs.redaction import HIDDEN, conceal, guarded, is_secret, learn, redact

CANARY = "cAnArY-7f3e"


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch):
    monkeypatch.setattr(redaction, "_known", set())


@pytest.mark.parametrize(
    "value",
    [
        {"hub_token": CANARY},
        {"training": {"push_to_hub_token": CANARY, "seed": 1}},
        {"retriever_options": {"token": CANARY}},
        {"password": CANARY, "OPENAI_API_KEY": CANARY, "aws_secret_access_key": CANARY},
        {"client_secret": [CANARY, CANARY]},
        ["seed-train", "rl", "--hub_token", CANARY, "--seed", "1"],
        ["seed-train", "rl", f"--hub_token={CANARY}"],
        ["--env-arg", f"token={CANARY}"],
        ["--env-arg", f'retriever_options={{"token": "{CANARY}"}}'],
        ["--env_kwargs", json.dumps({"retriever_options": {"password": f'{CANARY}",}}'}})],
        f"redis://:{CANARY}@127.0.0.1:6379/0?index=wiki",
        f"openai:qwen@http://user:{CANARY}@127.0.0.1:8000/v1",
        f"http://{CANARY}@127.0.0.1:8000",
        f"http://a:1,http://user:{CANARY}@b:2/retrieve",
        f"postgresql://me:{CANARY}/with/slash@host/db",
        f"postgresql://host/db?user=me&password={CANARY}&table=t",
        f"host=db password={CANARY}, user=me",
        f"HTTP 401: Authorization: Bearer {CANARY} is wrong",
        f"{{'Authorization': 'Bearer {CANARY}'}}",
        f'"{{\\"api_key\\": \\"{CANARY}\\"}}"',
        ("nested", [{"deep": f"ftp://u:{CANARY}@h"}]),
    ],
    ids=str,
)
def test_hidden(value):
    hidden = redact(value)
    assert CANARY not in str(hidden) and HIDDEN in str(hidden)
    assert redact(hidden) == hidden, "a second pass changes nothing"


@pytest.mark.parametrize(
    "value",
    [
        {"hub_token": None, "password": "", "push_to_hub": True, "save_credentials": False},
        {
            "api_key_env": "OPENAI_API_KEY",
            "endpoint_key_env": "SEED_API_KEY",
            "eos_token": "</s>",
            "pad_token": "<pad>",
        },
        {"max_new_tokens": 512, "prompt_tokens": 3, "opd_tokens": "all", "tokens": ["a", "b"], "token_count": 4},
        ["seed-bench", "run", "--api-key-env", "MY_KEY", "--max-new-tokens", "5"],
        "openai:org/model@http://127.0.0.1:8000/v1",
        "http://127.0.0.1:8000/v1/models/a@b",
        "write to me@example.org or see https://example.org/a?b=c",
        "Victoria's Secret: new. The key to the token: a secret.",
        "expected Authorization: Bearer TOKEN",
        '{"split": "test",   "size": 6}',
        42,
        None,
    ],
    ids=str,
)
def test_untouched(value):
    assert redact(value) == value


def test_values_of_variables_that_look_like_keys_are_hidden_everywhere(monkeypatch):
    for name in ("OPENAI_API_KEY", "HF_TOKEN", "SEED_SEARCHQA_TOKEN", "DB_PASSWORD", "my_secret"):
        monkeypatch.setenv(name, f"{CANARY}-{name}")
        assert redact(f"the server said {CANARY}-{name}!") == f"the server said {HIDDEN}!"
        assert conceal({"reply": [f"{CANARY}-{name}"]}) == {"reply": [HIDDEN]}
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", CANARY)
    monkeypatch.setenv("HF_TOKEN", "short")
    assert redact(f"{CANARY} is a short word") == f"{CANARY} is a short word"


def test_what_was_learned_is_hidden_in_every_form_also_in_transcripts():
    learn(["--env-arg", "retriever=redis://user:p%40ss-w%22rd@host:1/0"])
    for text in ("p%40ss-w%22rd", 'p@ss-w"rd', json.dumps('p@ss-w"rd'), "dXNlcjpwQHNzLXcicmQ="):
        assert HIDDEN in redact(text) and HIDDEN in conceal(text), text


def test_transcripts_keep_what_only_looks_like_a_secret():
    words = "go to http://user:word@shop/?token=abcdef, password=swordfish"
    assert conceal({"observation": words}) == {"observation": words}


def test_hostile_text_takes_linear_time():
    for text in (
        "://" * 50_000,
        "://a:" + "b" * 100_000,
        "token=" * 30_000,
        "a" * 100_000,
        '"token": "' + "\\" * 100_000,
    ):
        assert len(redact(text)) > 0  # quadratic work would take hours


def test_secret_names():
    assert all(map(is_secret, ("token", "--hub-token", "API_KEY", "x-api-key", "redis_password", "credentials")))
    assert not any(map(is_secret, ("tokens", "eos_token", "keys", "api_key_env", "secretary", "key")))


def _command(parser, action):
    parser.add_argument("--env-arg", action="append")
    parser.set_defaults(run=action)
    return parser


@pytest.mark.parametrize("way", ["stdout", "stderr", "user error", "os error", "wrong option", "log"])
def test_a_command_prints_no_secret(way, capsys):
    def act(options: argparse.Namespace) -> int:
        if way == "stdout":
            print("engine", options.env_arg)
            sys.stdout.writelines([CANARY, "\n"])
        elif way == "stderr":
            sys.stderr.write(f"lost {CANARY}\n")
        elif way == "log":
            log = logging.Logger("here")
            log.addHandler(logging.StreamHandler())
            log.error("lost %s", CANARY)
        elif way == "user error":
            raise ValueError(f"{CANARY} is refused")
        elif way == "os error":
            raise FileNotFoundError(2, "no such file", f"/{CANARY}")
        return 0

    arguments = ["--env-arg", f"retriever=redis://:{CANARY}@h"] + ["--envarg"] * (way == "wrong option")
    try:
        run(_command(Parser(prog="x"), act), arguments, user_errors=(ValueError,))
    except SystemExit:
        assert way == "wrong option"
    out, err = capsys.readouterr()
    assert CANARY not in out + err and out + err


def test_a_traceback_prints_no_secret():
    code = (
        "import sys\nfrom seed_envs.redaction import guarded\n"
        f"with guarded(['--hub_token', '{CANARY}']):\n    raise RuntimeError('lost ' + sys.argv[1])\n"
    )
    done = subprocess.run([sys.executable, "-c", code, CANARY], capture_output=True, text=True)
    assert done.returncode == 1 and "RuntimeError: lost <hidden>" in done.stderr and CANARY not in done.stderr


def test_a_guarded_stream_is_still_the_stream():
    plain = io.StringIO()
    stream = redaction._Guarded(plain)
    assert stream.isatty() is False and stream.write("abc") == 3 and plain.getvalue() == "abc"
    before = sys.stdout
    with guarded():
        assert sys.stdout is not before
    assert sys.stdout is before
