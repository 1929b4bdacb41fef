# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Find the `lockworks` command and run it."""

import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import warnings
from collections.abc import Iterable, Mapping, Sequence

Scalar = str | int | float | os.PathLike[str]
# The value of an option: words_of() says what each kind of value means.
Value = Scalar | Iterable[Scalar] | Mapping[str, Scalar] | None


class Error(Exception):
    """The command failed. The text is its line on standard error, without `lockworks: `.

    - status: the exit status. 1: a run found a violation, or failed. 2: bad input, or no command.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message, status)
        self.status = status

    def __str__(self) -> str:
        return str(self.args[0])


def find() -> str:
    """The path of the command: that of the wheel, else the one on PATH, else $LOCKWORKS."""
    in_wheel = shutil.which("lockworks", path=sysconfig.get_path("scripts"))
    command = in_wheel or shutil.which("lockworks") or os.environ.get("LOCKWORKS")
    if command is None:
        raise Error("no command lockworks; install the wheel, or set LOCKWORKS to its path", 2)
    return command


def words_of(options: Mapping[str, Value]) -> list[str]:
    """Options as the command line has them, with `-` for `_` in their names.

    None and False leave the option out. True stands for an option with no value. A list is joined
    by commas. A dict gives the option once for each KEY=VALUE.
    """
    words = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif isinstance(value, Mapping):
            words += [f"{option}={key}={item}" for key, item in value.items()]
        elif isinstance(value, str) or not isinstance(value, Iterable):
            words.append(f"{option}={value}")
        else:
            words.append(f"{option}={','.join(map(str, value))}")
    return words


def run(words: Sequence[str], *, progress: bool | None = None, good: Sequence[int] = (0,)) -> str:
    """Run the command and return what it prints on standard output.

    - progress: show the command's progress on standard error; None: if that is a terminal.
    - good: the exit statuses that are no error.

    Raises Error if the command ends with another status. An interruption ends the command too.
    """
    show = sys.stderr.isatty() if progress is None else progress
    # The command shows its progress on terminals only.
    ours, theirs = pty.openpty() if show else os.pipe()
    with tempfile.TemporaryFile() as output:
        try:
            command = find()
            child = subprocess.Popen(
                [command, *words], stdin=subprocess.DEVNULL, stdout=output, stderr=theirs
            )
        except OSError as error:
            os.close(ours)
            raise Error(f"cannot run {command}: {error.strerror}", 2) from error
        finally:
            os.close(theirs)
        messages = b""
        try:
            while chunk := _read(ours):
                messages += chunk
                if show:
                    sys.stderr.write(chunk.decode(errors="replace"))
                    sys.stderr.flush()
        except BaseException:
            child.send_signal(signal.SIGINT)
            raise
        finally:
            os.close(ours)
            status = child.wait()
        output.seek(0)
        printed = output.read().decode()
    # Progress may stand before a message, in the same line.
    lines = [line.decode() for line in re.findall(rb"lockworks: ([^\r\n\x1b]+)", messages)]
    errors = [line for line in lines if not line.startswith("warning: ")]
    if status not in good:
        # The error comes last.
        raise Error(errors[-1] if errors else f"lockworks ended with status {status}", status)
    for line in lines:
        if line not in errors and not show:
            warnings.warn(line.removeprefix("warning: "), stacklevel=3)
    return printed


def _read(file: int) -> bytes:
    try:
        return os.read(file, 1 << 16)
    except OSError:  # A pseudo-terminal that nobody has open any more.
        return b""
