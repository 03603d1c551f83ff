"""Apache Lucene itself, through Anserini's jar and one JVM per process: the witness for this package's own BM25.

Only the jar inside the pyserini package is used, never pyserini itself. A JVM does not survive a fork: a child that
inherits one gets :class:`JvmForked` at once, never a hang. Python 3.11 with Java 11 to 17 needs `pyserini==0.25.0`;
Python 3.12 or newer with Java 21 can use newer ones.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path
from typing import Any

from seed_envs.errors import DependencyMissing, SeedEnvsError
from seed_envs.forks import PerProcessLock

_INSTALL = (
    "pip install --no-deps pyserini==0.25.0 && pip install pyjnius, and a Java runtime "
    "(Debian: apt-get install openjdk-17-jre-headless)"
)
_SILENT = Path(__file__).parent / "data" / "log4j2.properties"
_jvm: list[int] = []
_lock = PerProcessLock()


class JvmForked(SeedEnvsError, RuntimeError):
    """The JVM was started before a fork and cannot be used in the child."""


def anserini_jar() -> Path:
    """The jar inside the installed pyserini package.

    Raises:
        DependencyMissing: It or pyjnius is not installed.
    """
    found = importlib.util.find_spec("pyserini")
    folder = Path(found.origin).parent / "resources" / "jars" if found and found.origin else None
    jars = sorted(folder.glob("anserini-*-fatjar.jar")) if folder and folder.is_dir() else []
    if not jars or importlib.util.find_spec("jnius_config") is None:
        raise DependencyMissing(f"Lucene needs pyserini's jar and pyjnius: {_INSTALL}")
    return jars[-1]


def find_java() -> str:
    """JAVA_HOME of a Java runtime, also where Debian puts it.

    Raises:
        DependencyMissing: There is none.
    """
    homes = [os.environ.get("JAVA_HOME", ""), *sorted(map(str, Path("/usr/lib/jvm").glob("java-*-openjdk*")))]
    for home in homes:
        if home and next(Path(home).glob("**/libjvm.so"), None):
            return home
    java = shutil.which("java")
    if java:
        return str(Path(java).resolve().parent.parent)
    raise DependencyMissing(f"no Java runtime found (JAVA_HOME, /usr/lib/jvm, PATH). {_INSTALL}")


def java_class(name: str) -> Any:
    """A Java class; starts the JVM of this process on first use.

    Raises:
        JvmForked: The JVM was started before a fork.
        DependencyMissing: Java, pyjnius or the jar is missing.
    """
    with _lock:
        if _jvm and _jvm[0] != os.getpid():
            raise JvmForked(
                "the JVM was started before a fork and cannot be used in the child; "
                "search first in the children, or start them with 'spawn'"
            )
        if not _jvm:
            jar = anserini_jar()
            os.environ["JAVA_HOME"] = find_java()
            import jnius_config

            if not jnius_config.vm_running:
                jnius_config.set_classpath(str(jar))
                jnius_config.add_options("-Xmx2g", "-XX:+UseSerialGC", "-Xrs", f"-Dlog4j2.configurationFile={_SILENT}")
            _jvm.append(os.getpid())
        from jnius import autoclass

        return autoclass(name)


def java_string(text: str) -> Any:
    """A Java string from UTF-8 bytes; direct conversion loses characters outside the basic plane."""
    return java_class("java.lang.String")(text.encode("utf-8", "replace"), "UTF-8")
