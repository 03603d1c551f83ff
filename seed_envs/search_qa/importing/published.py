"""What is known about published files: numbers of questions per set and split, and checksums of whole files."""

from __future__ import annotations

QUESTIONS: dict[tuple[str, str], tuple[int, ...]] = {
    ("nq", "train"): (79168, 87925), ("nq", "dev"): (8757, 3610), ("nq", "test"): (3610,),
    ("triviaqa", "train"): (78785,), ("triviaqa", "dev"): (8837,), ("triviaqa", "test"): (11313,),
    ("popqa", "test"): (14267,),
    ("hotpotqa", "train"): (90447,), ("hotpotqa", "dev"): (7405,),
    ("2wikimultihopqa", "train"): (15000, 167454), ("2wikimultihopqa", "dev"): (12576,),
    ("musique", "train"): (19938,), ("musique", "dev"): (2417,),
    ("bamboogle", "test"): (125,), ("simpleqa", "test"): (4326,), ("browsecomp-plus", "test"): (830,),
}  # fmt: skip
"""Questions per set and split as FlashRAG publishes them, then as the sets' own authors do where they differ."""

_NQ = "google-research-datasets/natural-questions@fb26a307"
_DEEP = "GAIR-NLP/DeepResearcher@c93be8fd"
_R1 = "RUCAIBox/R1-Searcher@631167cb"
FILES: dict[str, str] = {
    "f15567f38099f3615f5b8a685c0aef449c11ad90d3da3735e8d1b98115b40616": f"{_NQ} NQ-open.dev.jsonl",
    "c37b3cb2069632dfef219fa770d7910ac77ff6d12a08e8f3d5f058b388aca8a6": f"{_NQ} NQ-open.efficientqa.test.1.1.jsonl",
    "30c21c7da1872af08d7db1aacb5f45a57d0a7f038dd7f7baed51231bf6c5e10e": f"{_DEEP} test.parquet",
    "43321626d8f20bb28c87db21615e76cca6df813d6047ab4d235de683c3726112": f"{_DEEP} dev.parquet",
    "0fb19dee8acbf146d60c699443b1164038727f9597f30f4894bab2da253b2f1a": f"{_R1} 2wiki_500.jsonl",
    "1c551e2f4c3387fd97a1cf711737258df5ffd4ea86996f1b2ba63a861cb7af29": f"{_R1} bamboogle.jsonl",
    "bf8a42f6e1abcaaaf050cf3c7ffa50231102dd1c021b77ab01eeac95fad04bea": f"{_R1} hotpotqa_500.jsonl",
    "d1342802b9b9850e44a946031de4557722427783c92421178d729dd6e113b50d": f"{_R1} musique_500.jsonl",
    "17d9eee9de22a25152ca0445fc9d7da06dde1f74ef44fb997d173c45d26d29f7": f"{_R1} stage_1.jsonl",
    "25ef0a7f3b91d36e87b46f269f039b5307e89a87b12a6ee5102fb93619286219": f"{_R1} stage_2.jsonl",
    "9d6e352952aafb18dab22bf8195039461321a44a949df902ae83bce134ad238a": "OSU-NLP-Group/HippoRAG@c617143f "
    "2wikimultihopqa_corpus.json",
}
"""SHA-256 of published files to where they are published."""
